"""The positions of a client in its partitions: what was sent, what has certainly arrived, what is not committed yet.

A client that sends its next request has received the response before it; until then that is not certain. So a response
moves the position only when the client comes back, and nothing is committed, or survives a crash, that may be lost.
"""

from collections.abc import Iterable, Mapping, Sequence

from core_broker.client.consumer import TopicPartition
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.instances.state import Position


class Positions:
    """Offsets of the next records, by partition."""

    def __init__(self, saved: Iterable[Position] = ()) -> None:
        items = list(saved)
        self._delivered = {(item.topic, item.partition): item.offset for item in items}
        self._explicit = {(item.topic, item.partition) for item in items if item.is_explicit}
        self._answered: dict[TopicPartition, int] = {}
        self._uncommitted: dict[TopicPartition, int] = {}
        self.answered_at = float("-inf")
        """When the last response was sent."""
        self.is_changed = False
        """Whether there are changes that are not saved."""

    def start(self, place: TopicPartition, committed: int | None) -> int | None:
        """Where to begin a partition: the target of a seek, else the commit, else the last position, or None.

        A last position without a commit, from before a restart or a revocation, still has to be committed.
        """
        own = self._delivered.get(place)
        if own is None or (committed is not None and place not in self._explicit):
            return committed
        self._uncommitted[place] = own
        return own

    def begin(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Partitions begin at these offsets, which the client did not choose."""
        if any(self._delivered.get(place) != offset for place, offset in offsets.items()):
            self._delivered.update(offsets)
            self.is_changed = True

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The client chooses to read on at these offsets."""
        self._delivered.update(offsets)
        self._uncommitted.update(offsets)
        self._explicit.update(offsets)
        for place in offsets:
            self._answered.pop(place, None)
        self.is_changed = True

    def answer(self, records: Sequence[IncomingRecord], *, now: float) -> None:
        """Records are sent to the client."""
        for record in records:
            self._answered[record.topic, record.partition] = record.offset + 1
        self.answered_at = now

    def take_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Responses that began at these offsets have not arrived."""
        self._answered.update(offsets)

    def confirm_delivery(self, arrived_at: float) -> None:
        """The client sent a request: responses that were sent before it have arrived."""
        if self._answered and arrived_at > self.answered_at:
            self._delivered.update(self._answered)
            self._uncommitted.update(self._answered)
            self._answered.clear()
            self.is_changed = True

    @property
    def uncommitted(self) -> dict[TopicPartition, int]:
        """What has certainly arrived and is not committed."""
        return dict(self._uncommitted)

    def mark_committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These offsets are committed, or the commit is in flight."""
        for place, offset in offsets.items():
            self._explicit.discard(place)
            if self._uncommitted.get(place) == offset:
                del self._uncommitted[place]
        self.is_changed = True

    def revoke(self, places: Iterable[TopicPartition]) -> None:
        """The group has revoked partitions: nothing is committed for them any more."""
        for place in places:
            self._answered.pop(place, None)
            self._uncommitted.pop(place, None)
            self._explicit.discard(place)
        self.is_changed = True

    def keep_only(self, places: Iterable[TopicPartition]) -> None:
        """Forget all other partitions: they are not read any more."""
        kept = set(places)
        for offsets in (self._delivered, self._answered, self._uncommitted):
            for place in [place for place in offsets if place not in kept]:
                del offsets[place]
        self._explicit &= kept
        self.is_changed = True

    def to_save(self, *, with_answered: bool = False) -> list[Position]:
        """What to save; `with_answered` counts responses that were sent as arrived."""
        offsets = self._delivered | self._answered if with_answered else self._delivered
        return [
            Position(topic, partition, offset, is_explicit=(topic, partition) in self._explicit)
            for (topic, partition), offset in sorted(offsets.items())
        ]
