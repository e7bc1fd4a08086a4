"""Where a client stands in its partitions: what it was answered, what it has surely got, what is to be committed.

A client that comes back has got the answer before; until then nobody knows. So an answer moves the position only when
the client comes back, and nothing is committed, or survives a crash, that might not have arrived.
"""

from collections.abc import Iterable, Mapping, Sequence

from core_broker.client.consumer import Place
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.instances.state import Position


class Positions:
    """Offsets of the next records, by partition."""

    def __init__(self, saved: Iterable[Position] = ()) -> None:
        items = list(saved)
        self._sure = {(item.topic, item.partition): item.offset for item in items}
        self._sought = {(item.topic, item.partition) for item in items if item.is_sought}
        self._answered: dict[Place, int] = {}
        self._uncommitted: dict[Place, int] = {}
        self.answered_at = float("-inf")
        """When the last answer was handed over."""
        self.is_changed = False
        """Whether there is something that was not written down."""

    def start(self, place: Place, committed: int | None) -> int | None:
        """Where a partition begins: where the client went, else as committed, else where it stood; None if unknown.

        Where it stood without a commit, before a restart or before the group took the partition, is to be committed.
        """
        own = self._sure.get(place)
        if own is None or (committed is not None and place not in self._sought):
            return committed
        self._uncommitted[place] = own
        return own

    def begin(self, offsets: Mapping[Place, int]) -> None:
        """Partitions begin at these offsets."""
        if any(self._sure.get(place) != offset for place, offset in offsets.items()):
            self._sure.update(offsets)
            self.is_changed = True

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """The client goes elsewhere, and means it."""
        self._sure.update(offsets)
        self._uncommitted.update(offsets)
        self._sought.update(offsets)
        for place in offsets:
            self._answered.pop(place, None)
        self.is_changed = True

    def answer(self, records: Sequence[IncomingRecord], *, now: float) -> None:
        """Records are handed over to the client."""
        for record in records:
            self._answered[record.topic, record.partition] = record.offset + 1
        self.answered_at = now

    def take_back(self, offsets: Mapping[Place, int]) -> None:
        """Answers that began there have not arrived."""
        self._answered.update(offsets)

    def come_back(self, arrived_at: float) -> None:
        """The client sends a request: answers that were handed over before it have arrived."""
        if self._answered and arrived_at > self.answered_at:
            self._sure.update(self._answered)
            self._uncommitted.update(self._answered)
            self._answered.clear()
            self.is_changed = True

    @property
    def uncommitted(self) -> dict[Place, int]:
        """What has surely arrived, and is not committed."""
        return dict(self._uncommitted)

    def committed(self, offsets: Mapping[Place, int]) -> None:
        """These offsets are committed, or are on their way."""
        for place, offset in offsets.items():
            self._sought.discard(place)
            if self._uncommitted.get(place) == offset:
                del self._uncommitted[place]
        self.is_changed = True

    def revoke(self, places: Iterable[Place]) -> None:
        """The group has taken partitions away: nothing is committed for them any more."""
        for place in places:
            self._answered.pop(place, None)
            self._uncommitted.pop(place, None)
            self._sought.discard(place)
        self.is_changed = True

    def keep_only(self, places: Iterable[Place]) -> None:
        """Other partitions are not read any more."""
        kept = set(places)
        for offsets in (self._sure, self._answered, self._uncommitted):
            for place in [place for place in offsets if place not in kept]:
                del offsets[place]
        self._sought &= kept
        self.is_changed = True

    def saved(self, *, with_answered: bool = False) -> list[Position]:
        """What is written down; with answers that have arrived as far as anybody can know."""
        offsets = self._sure | self._answered if with_answered else self._sure
        return [
            Position(topic, partition, offset, is_sought=(topic, partition) in self._sought)
            for (topic, partition), offset in sorted(offsets.items())
        ]
