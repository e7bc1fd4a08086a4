"""Collects the actions of a classic group while it processes an event."""

from core_broker.errors import ErrorCode
from core_broker.groups.classic_member import Action, AnswerJoin, AnswerSync, Join, Member, StoreGroup, Ticket
from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse


class Answers:
    """The actions of one event, in order."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        """Return and clear the actions."""
        actions, self._actions = self._actions, []
        return actions

    def store(self, store: StoreGroup) -> None:
        """Write the group."""
        self._actions.append(store)

    def join(self, ticket: Ticket, response: JoinGroupResponse) -> None:
        """Answer a JoinGroup."""
        self._actions.append(AnswerJoin(ticket, response))

    def sync(self, ticket: Ticket, response: SyncGroupResponse) -> None:
        """Answer a SyncGroup."""
        self._actions.append(AnswerSync(ticket, response))

    def refuse_join(self, event: Join, error: ErrorCode, member_id: str | None = None) -> None:
        """Reject a JoinGroup at once."""
        answered_id = event.member_id if member_id is None else member_id
        self.join(event.ticket, JoinGroupResponse(error_code=error, member_id=answered_id))

    def refuse_waiting_join(self, member: Member, error: ErrorCode, member_id: str = "") -> None:
        """Reject the waiting JoinGroup of a member, if there is one."""
        if member.join_ticket is not None:
            self.join(member.join_ticket, JoinGroupResponse(error_code=error, member_id=member_id))
            member.join_ticket = None

    def refuse_sync(self, ticket: Ticket, error: ErrorCode) -> None:
        """Reject a SyncGroup."""
        self.sync(ticket, SyncGroupResponse(error_code=error))

    def refuse_waiting_sync(self, member: Member, error: ErrorCode) -> None:
        """Reject the waiting SyncGroup of a member, if there is one."""
        if member.sync_ticket is not None:
            self.refuse_sync(member.sync_ticket, error)
            member.sync_ticket = None

    def refuse_waiting(self, member: Member, error: ErrorCode) -> None:
        """Reject all waiting requests of a member."""
        self.refuse_waiting_join(member, error)
        self.refuse_waiting_sync(member, error)
