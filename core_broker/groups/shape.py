"""What the two kinds of groups, classic and KIP-848, have in common, and what their coordinators ask of each other.

`coordinator.py` owns the shards (one for each `__consumer_offsets` partition led by this broker), the committed offsets
and the classic groups; `consumer_groups.py` serves the KIP-848 groups that live in the same shards. Neither imports the
other: both work to the protocols below.
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
        """The name that clients know it by."""

    @property
    def kind(self) -> GroupKind:
        """Which protocol its members speak."""

    @property
    def state_name(self) -> str:
        """The state in Kafka's spelling: Empty, Stable, PreparingRebalance, Assigning, ..."""

    @property
    def protocol_type(self) -> str:
        """`consumer` for consumers, whatever the client said for others, empty for a group that only holds offsets."""

    @property
    def members(self) -> Mapping[str, object]:
        """Its members, by their id."""

    @property
    def is_empty(self) -> bool:
        """True when it has no members; only then may it change its kind or be deleted."""

    def check_commit(
        self, member_id: str, generation_or_epoch: int, instance_id: str | None, *, is_transactional: bool
    ) -> None:
        """Refuse an offset commit of a stranger or of the past; raises BrokerError."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse an OffsetFetch that carries a member of the past (v9+); no member given is always fine."""

    def is_subscribed_to(self, topic: str) -> bool:
        """True when a member reads the topic: its offsets neither expire nor may be deleted."""

    def offsets_expire_from_ms(self, committed_at_ms: int) -> int | None:
        """The time from which `offsets.retention.minutes` counts for an offset committed then; None: not at all."""

    def tombstones(self) -> list[StoredRecord]:
        """The records that remove the group itself (not its offsets) from the log."""

    def next_deadline(self) -> float | None:
        """The earliest moment (`Clock.monotonic`) at which time alone changes something; may be too early, not late."""


class GroupShard(Protocol):
    """One partition of `__consumer_offsets` that this broker coordinates: its groups and their offsets."""

    partition_index: int
    groups: dict[str, Group]
    offsets: OffsetStore

    async def write(self, records: Sequence[StoredRecord]) -> int:
        """Append as one batch and wait until it is committed; returns the first offset.

        The append itself happens before the first suspension, so records of one group are in the order of the calls.
        Raises BrokerError with a code that a coordinator may answer (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, ...).
        """


class GroupOwner(Protocol):
    """What the coordinator offers to the part that serves KIP-848 groups."""

    settings: BrokerSettings
    clock: Clock

    def shard_for(self, group_id: str) -> GroupShard:
        """The loaded shard of a group; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID."""

    def loaded_shards(self) -> Iterable[GroupShard]:
        """All shards that are ready, e.g. to tell every group that a topic has changed."""

    def arm(self, shard: GroupShard, group: Group) -> None:
        """Look at `group.next_deadline()` again; call it after anything that may have moved it forward in time."""


class ConsumerGroupsPart(Protocol):
    """What the coordinator asks of the part that serves KIP-848 groups."""

    def replay(self, shard: GroupShard, key: Message, value: Message | None) -> None:
        """Apply one record of key types 3 to 16 while a shard loads; None is a deletion."""

    def on_loaded(self, shard: GroupShard) -> None:
        """All records have been replayed: give every member a fresh session and arm the groups."""

    async def on_deadline(self, shard: GroupShard, group: Group) -> None:
        """`next_deadline()` has passed: expire members and assignments; the coordinator arms the group afterwards."""

    def has_members(self, shard: GroupShard, group_id: str) -> bool:
        """True for a KIP-848 group with members: classic requests for it are served by the four methods below.

        So a running group can migrate, one member at a time. All four raise BrokerError.
        """

    async def join_classic(
        self, request: JoinGroupRequest, *, api_version: int, client_id: str, client_host: str
    ) -> JoinGroupResponse:
        """JoinGroup of a member that does not speak KIP-848."""

    def sync_classic(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """SyncGroup of a member that does not speak KIP-848."""

    def heartbeat_classic(self, group_id: str, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Heartbeat of a member that does not speak KIP-848."""

    async def leave_classic(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """LeaveGroup of members that do not speak KIP-848."""
