"""The interfaces of the two kinds of groups, classic and KIP-848, and of their coordinators.

`coordinator.py` owns the shards (one for each `__consumer_offsets` partition led by this broker), the committed offsets
and the classic groups; `consumer_groups.py` serves the KIP-848 groups of the same shards. Neither imports the other:
both use the protocols below.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from core_broker.errors import ErrorCode
from core_broker.groups.offsets import OffsetStore
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

GroupKind: TypeAlias = Literal["classic", "consumer"]
StoredRecord: TypeAlias = tuple[bytes, bytes | None]
"""Key and value of a record of `__consumer_offsets`; a value of None deletes the key. See `records.py`."""


class Group(Protocol):
    """A group of either kind, as the offset APIs, ListGroups, DeleteGroups and the expiry see it."""

    @property
    def group_id(self) -> str:
        """The id of the group."""

    @property
    def kind(self) -> GroupKind:
        """The protocol of its members."""

    @property
    def state_name(self) -> str:
        """The state in Kafka's spelling: Empty, Stable, PreparingRebalance, Assigning, ..."""

    @property
    def protocol_type(self) -> str:
        """`consumer` for consumers, the client's own for others, empty for a group that only stores offsets."""

    @property
    def members(self) -> Mapping[str, object]:
        """Its members, by their id."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members; only then may it change its kind or be deleted."""

    def check_commit(
        self, member_id: str, generation_or_epoch: int, instance_id: str | None, *, is_transactional: bool
    ) -> None:
        """Reject an offset commit of an unknown member or an old generation; raises BrokerError."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Reject an OffsetFetch with an old member epoch (version 9+); one without a member is always allowed."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic: its offsets neither expire nor may be deleted."""

    def offsets_expire_from_ms(self, committed_at_ms: int) -> int | None:
        """When `offsets.retention.minutes` starts for an offset committed at this time; None if it never expires."""

    def tombstones(self) -> list[StoredRecord]:
        """The records that remove the group itself (not its offsets) from the log."""

    def next_deadline(self) -> float | None:
        """The earliest time (`Clock.monotonic`) at which something expires; may be too early, never too late."""


class GroupShard(Protocol):
    """One partition of `__consumer_offsets` that this broker coordinates: its groups and their offsets."""

    partition_index: int
    groups: dict[str, Group]
    offsets: OffsetStore

    async def write(self, records: Sequence[StoredRecord]) -> int:
        """Append as one batch and wait until it is committed; returns the first offset.

        The append itself happens before the first suspension, so records of one group are in the order of the calls.
        Raises BrokerError with an error code of coordinators (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, ...).
        """


class GroupOwner(Protocol):
    """What the coordinator provides to the server of KIP-848 groups."""

    settings: BrokerSettings
    clock: Clock

    def shard_for(self, group_id: str) -> GroupShard:
        """The loaded shard of a group; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID."""

    def loaded_shards(self) -> Iterable[GroupShard]:
        """All shards that are ready."""

    def arm(self, shard: GroupShard, group: Group) -> None:
        """Schedule `group.next_deadline()`; call it after anything that may have brought it forward."""


class ConsumerGroupsPart(Protocol):
    """What the coordinator needs from the server of KIP-848 groups."""

    def replay(self, shard: GroupShard, key: Message, value: Message | None) -> None:
        """Apply one record of key types 3 to 16 while a shard loads; None is a deletion."""

    def on_loaded(self, shard: GroupShard) -> None:
        """All records were replayed: restart the sessions and arm the groups."""

    async def on_deadline(self, shard: GroupShard, group: Group) -> None:
        """`next_deadline()` has passed: expire members and assignments; the coordinator arms the group afterwards."""

    def has_members(self, shard: GroupShard, group_id: str) -> bool:
        """Whether it is a KIP-848 group with members: then the four methods below serve its classic requests.

        So an active group can migrate one member at a time. All four raise BrokerError.
        """

    async def join_classic(
        self, request: JoinGroupRequest, *, api_version: int, client_id: str, client_host: str
    ) -> JoinGroupResponse:
        """JoinGroup of a member of the classic protocol."""

    def sync_classic(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """SyncGroup of a member of the classic protocol."""

    def heartbeat_classic(self, group_id: str, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Heartbeat of a member of the classic protocol."""

    async def leave_classic(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """LeaveGroup of members of the classic protocol."""
