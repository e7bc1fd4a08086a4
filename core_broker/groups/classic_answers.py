"""What a classic group wants done, gathered while it handles an event."""

from core_broker.errors import ErrorCode
from core_broker.groups.classic_member import Action, AnswerJoin, AnswerSync, Join, Member, StoreGroup, Ticket
from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse


class Answers:
    """The actions of one event, in order."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        """All actions so far; the list begins anew."""
        actions, self._actions = self._actions, []
        return actions

    def store(self, store: StoreGroup) -> None:
        """Have the group written."""
        self._actions.append(store)

    def join(self, ticket: Ticket, response: JoinGroupResponse) -> None:
        """Answer a JoinGroup."""
        self._actions.append(AnswerJoin(ticket, response))

    def sync(self, ticket: Ticket, response: SyncGroupResponse) -> None:
        """Answer a SyncGroup."""
        self._actions.append(AnswerSync(ticket, response))

    def refuse_join(self, event: Join, error: ErrorCode, member_id: str | None = None) -> None:
        """Turn a JoinGroup away at once."""
        told = event.member_id if member_id is None else member_id
        self.join(event.ticket, JoinGroupResponse(error_code=error, member_id=told))

    def refuse_waiting_join(self, member: Member, error: ErrorCode, member_id: str = "") -> None:
        """Turn away a JoinGroup that has been waiting, if the member has one."""
        if member.join_ticket is not None:
            self.join(member.join_ticket, JoinGroupResponse(error_code=error, member_id=member_id))
            member.join_ticket = None

    def refuse_sync(self, ticket: Ticket, error: ErrorCode) -> None:
        """Turn a SyncGroup away."""
        self.sync(ticket, SyncGroupResponse(error_code=error))

    def refuse_waiting_sync(self, member: Member, error: ErrorCode) -> None:
        """Turn away a SyncGroup that has been waiting, if the member has one."""
        if member.sync_ticket is not None:
            self.refuse_sync(member.sync_ticket, error)
            member.sync_ticket = None

    def refuse_waiting(self, member: Member, error: ErrorCode) -> None:
        """Turn away whatever a member waits for."""
        self.refuse_waiting_join(member, error)
        self.refuse_waiting_sync(member, error)
