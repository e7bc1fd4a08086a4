"""The roster of a classic group: members, static members, the leader, and the common assignor."""

from collections import Counter

from core_broker.errors import ErrorCode
from core_broker.groups.classic_member import Join, Member
from core_broker.protocol.messages.join_group import JoinGroupResponseMember
from core_broker.protocol.stored.groups import MemberMetadata


class Roster:
    """The members of a group, in the order in which they joined."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader_id: str | None = None
        self.static_ids: dict[str, str] = {}
        """Instance id -> member id (KIP-345)."""

    def __len__(self) -> int:
        return len(self.members)

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check a member id and instance id."""
        if instance_id is not None:
            known_id = self.static_ids.get(instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # --- adding and removing -----------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a member; the first one is the leader."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """Remove a member; if it is the leader, the oldest of the others becomes the leader."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            self.static_ids.pop(member.instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def rename_static(self, member: Member, member_id: str) -> None:
        """Give a static member another id; keeps the order, which decides ties and the next leader."""
        former_id = member.member_id
        self.members = {member_id if known == former_id else known: m for known, m in self.members.items()}
        member.member_id = member_id
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member_id
        if self.leader_id == former_id:
            self.leader_id = member_id

    def restore(self, stored: list[MemberMetadata], *, protocol_name: str, leader_id: str | None) -> None:
        """Load the members of a stored record."""
        self.members = {}
        self.static_ids = {}
        for member in stored:
            self.add(
                Member(
                    member_id=member.member_id,
                    instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    session_timeout_ms=member.session_timeout,
                    rebalance_timeout_ms=member.rebalance_timeout
                    if member.rebalance_timeout >= 0
                    else member.session_timeout,
                    protocols=((protocol_name, member.subscription),),
                    assignment=member.assignment,
                )
            )
        self.leader_id = leader_id if self.members else None

    # --- the rebalance -----------------------------------------------------------------------------------------------

    def waiting_count(self) -> int:
        """How many members have joined and wait for the generation."""
        return sum(member.join_ticket is not None for member in self.members.values())

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance time-out of the members applies to all."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_waiting_leader(self) -> bool:
        """Make sure that the leader has joined, since it computes the assignment; False if no member has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None or leader.join_ticket is None:
            leader = next((m for m in self.members.values() if m.join_ticket is not None), None)
            if leader is None:
                return False
            self.leader_id = leader.member_id
        return True

    def supports(self, event: Join, protocol_type: str) -> bool:
        """Whether a joining member has an assignor in common with all members, including its own previous state."""
        if not event.protocol_type or not event.protocols:
            return False
        if not self.members:
            return True
        return event.protocol_type == protocol_type and bool(self._common({name for name, _ in event.protocols}))

    def select_protocol(self) -> str | None:
        """The assignor that all support and most prefer; the earlier member decides a tie."""
        first = next(iter(self.members.values()), None)
        candidates = self._common({name for name, _ in first.protocols}) if first is not None else set()
        if not candidates:
            return None
        return Counter(member.vote(candidates) for member in self.members.values()).most_common(1)[0][0]

    def _common(self, names: set[str]) -> set[str]:
        """Those of `names` that every member supports."""
        for member in self.members.values():
            names = names.intersection(name for name, _ in member.protocols)
        return names

    # --- conversions -------------------------------------------------------------------------------------------------

    def subscriptions(self, protocol_name: str | None) -> list[bytes]:
        """The metadata of each member for the selected assignor."""
        return [member.metadata(protocol_name) for member in self.members.values()]

    def for_leader(self, protocol_name: str | None) -> list[JoinGroupResponseMember]:
        """The members for the JoinGroup response of the leader."""
        return [
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(protocol_name))
            for member in self.members.values()
        ]

    def for_log(self, protocol_name: str | None, assignments: dict[str, bytes] | None) -> list[MemberMetadata]:
        """The members for the stored record, with new assignments or their own."""
        return [
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol_name),
                assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        ]
