"""What groups of either protocol, classic and KIP-848, have in common."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

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
