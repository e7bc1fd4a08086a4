"""Consumer groups: members, committed offsets and lag."""

import msgspec

from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import NotFound
from core_broker.client.models import Broker, Member
from deploy.views.positions import Position, resolve


class OffsetView(msgspec.Struct, frozen=True):
    """A group's progress in one partition."""

    topic: str
    partition: int
    committed: int | None
    end: int

    @property
    def lag(self) -> int | None:
        """Records that are still to be read; None if nothing was committed."""
        return None if self.committed is None else self.end - self.committed


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its members and offsets."""

    group: str
    state: str
    type: str
    assignor: str
    coordinator: Broker | None
    members: tuple[Member, ...]
    offsets: list[OffsetView]
    lag: int

    def client_of(self, offset: OffsetView) -> str | None:
        """The client that reads a partition."""
        partition = (offset.topic, offset.partition)
        return next((member.client_id for member in self.members if partition in member.partitions), None)


def describe_group(admin: Admin, group_id: str) -> GroupView:
    """One group; raises NotFound."""
    group = admin.group(group_id)
    if group.state == "dead":
        raise NotFound(f"group {group_id} does not exist")
    committed = admin.group_offsets(group_id)
    assigned = {partition for member in group.members for partition in member.partitions}
    ends = admin.offsets(sorted(assigned | committed.keys()), "latest")
    offsets = [OffsetView(*partition, committed.get(partition), end) for partition, end in sorted(ends.items())]
    return GroupView(
        group=group.group_id,
        state=group.state,
        type=group.kind,
        assignor=group.assignor,
        coordinator=group.coordinator,
        members=group.members,
        offsets=offsets,
        lag=sum(offset.lag or 0 for offset in offsets),
    )


def offsets_at(admin: Admin, partitions: list[TopicPartition], position: Position) -> dict[TopicPartition, int]:
    """The offset of a position in each partition."""
    first, end = admin.offsets(partitions, "earliest"), admin.offsets(partitions, "latest")
    timed = admin.offsets(partitions, position.value) if position.kind == "time" else {}
    return {item: resolve(position, first=first[item], end=end[item], timed=timed.get(item, -1)) for item in partitions}
