"""An oracle of records: what is sent, and what must become of each record, by topic, partition and offset."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from tests.support.spark_orders import Fields, Format, order, row

Spoiling = Literal["no magic byte", "truncated", "unknown schema id", "wrong type", "no number"]
"""How a record is bad; the last one is bad only for a transform that casts `name` to a number."""
Key = str | Mapping[str, Any] | None

STAGES: Final[Mapping[Spoiling, str]] = {
    "no magic byte": "VALUE_CONVERTER",
    "truncated": "VALUE_CONVERTER",
    "unknown schema id": "VALUE_CONVERTER",
    "wrong type": "VALUE_CONVERTER",
    "no number": "TRANSFORMATION",
}
_REGIONS: Final = ("north", "süd")


class Place(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecord:
    """A record that is to be sent."""

    number: int
    format: Format
    version: int
    key: Key
    fields: Fields | None
    """None: a tombstone."""
    headers: tuple[tuple[str, bytes], ...] = ()
    spoiled: Spoiling | None = None

    @property
    def row(self) -> dict[str, Any]:
        """What a table holds of it."""
        return row(self.fields, self.format)


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What kind of records are to be made."""

    format: Format
    version: int = 1
    spoilings: Sequence[Spoiling] = ()
    """One record of a hundred is bad, in these ways in turn."""
    tombstone_share: float = 0.03
    keys: int = 40
    """How many different ones."""


def made(making: Making, *, seed: int, first: int, count: int) -> Iterator[OrderRecord]:
    """Records, the same for the same seed; they are numbered."""
    chooser = random.Random(f"{seed} {making.format} {making.version} {first}")
    for position in range(count):
        number = first + position
        spoiled = _spoiling(making, position)
        is_tombstone = spoiled is None and chooser.random() < making.tombstone_share
        fields = order(chooser, number, format_=making.format, version=making.version)
        if spoiled == "no number":
            fields["name"] = f"no number {number}"
        yield OrderRecord(
            number=number,
            format=making.format,
            version=making.version,
            key=_key(making, chooser.randrange(making.keys)),
            fields=None if is_tombstone else fields,
            headers=(("number", str(number).encode()), ("raw", b"\x00\xff")) if number % 2 else (),
            spoiled=spoiled,
        )


def _spoiling(making: Making, position: int) -> Spoiling | None:
    if not making.spoilings or position % 100 != 50:
        return None
    return making.spoilings[position // 100 % len(making.spoilings)]


def _key(making: Making, number: int) -> Key:
    return {"number": number, "region": _REGIONS[number % 2]} if making.format == "avro" else f"k{number}"


@dataclass(slots=True)
class Oracle:
    """What was sent, and where it is."""

    records: dict[Place, OrderRecord] = field(default_factory=dict)

    def learn(self, sent: Iterable[tuple[Place, OrderRecord]]) -> None:
        """Records were acknowledged."""
        for place, record in sent:
            assert place not in self.records, f"two records were acknowledged at {place}"
            self.records[place] = record

    def of(self, topic: str) -> dict[Place, OrderRecord]:
        """All records of a topic."""
        return {place: record for place, record in self.records.items() if place.topic == topic}

    def bad(self, topic: str, *, ways: Iterable[Spoiling] = tuple(STAGES)) -> dict[Place, OrderRecord]:
        """Records that must become dead letters where these ways are bad."""
        among = set(ways)
        return {place: record for place, record in self.of(topic).items() if record.spoiled in among}

    def good(self, topic: str, *, ways: Iterable[Spoiling] = tuple(STAGES)) -> dict[Place, OrderRecord]:
        """Records that must be in the table, tombstones among them."""
        bad = self.bad(topic, ways=ways)
        return {place: record for place, record in self.of(topic).items() if place not in bad}

    def rows(self, topic: str, *, ways: Iterable[Spoiling] = tuple(STAGES)) -> dict[Place, dict[str, Any]]:
        """What a table of appended records must hold."""
        return {place: record.row for place, record in self.good(topic, ways=ways).items()}

    def latest(self, topic: str, *, ways: Iterable[Spoiling] = tuple(STAGES)) -> dict[Place, OrderRecord]:
        """What a table of the latest record of each key must hold, with deletes applied."""
        last: dict[str, Place] = {}
        good = self.good(topic, ways=ways)
        for place in sorted(good):  # All records of a key are in one partition.
            last[repr(good[place].key)] = place
        return {place: good[place] for place in sorted(last.values()) if good[place].fields is not None}
