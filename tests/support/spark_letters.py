"""Dead letters of a sink, read by confluent-kafka, and compared with the oracle."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import Received
from tests.support.spark_records import STAGES, OrderRecord, Place

_PREFIX: Final = "__connect.errors."
_TOLD: Final = ("connector.name", "task.id", "class.name", "exception.class.name", "exception.message")


class Letter(NamedTuple):
    """A dead letter, and what its headers tell."""

    place: Place
    told: Mapping[str, str]
    """By the part of the header's name after `__connect.errors.`"""
    received: Received

    @property
    def own_headers(self) -> tuple[tuple[str, bytes], ...]:
        """The headers that the record had."""
        return tuple(header for header in self.received.headers if not header[0].startswith(_PREFIX))


def letters(bootstrap: str, topic: str) -> list[Letter]:
    """All dead letters that are committed."""
    return [_letter(received) for received in read_to_end(bootstrap, topic, isolation="read_committed")]


def _letter(received: Received) -> Letter:
    told = {
        name.removeprefix(_PREFIX): (data or b"").decode()
        for name, data in received.headers
        if name.startswith(_PREFIX)
    }
    place = Place(told["topic"], int(told["partition"]), int(told["offset"]))
    return Letter(place, told, received)


def letter_places(found: Iterable[Letter]) -> "Counter[Place]":
    """How often each record is among the letters."""
    return Counter(letter.place for letter in found)


def letter_differences(
    found: Iterable[Letter],
    wanted: Mapping[Place, OrderRecord],
    *,
    connector: str,
    raw: Mapping[Place, Received],
) -> list[str]:
    """What is wrong with dead letters; `raw` are the records as they are in their topics."""
    found = list(found)
    counts = letter_places(found)
    problems = [f"lost: {place}, {record.spoiled}" for place, record in wanted.items() if place not in counts]
    problems += [f"doubled: {place}" for place, count in counts.items() if count > 1]
    for letter in found:
        if (record := wanted.get(letter.place)) is None:
            problems.append(f"not bad: {letter.place}, {letter.told.get('exception.message')}")
        else:
            problems += _wrong_letter(letter, record, connector, raw[letter.place])
    return problems


def _wrong_letter(letter: Letter, record: OrderRecord, connector: str, raw: Received) -> list[str]:
    assert record.spoiled is not None
    checks = {
        "stage": letter.told.get("stage") == STAGES[record.spoiled],
        "connector.name": letter.told.get("connector.name") == connector,
        "something told": all(letter.told.get(name) for name in _TOLD),
        "key": letter.received.key == raw.key,
        "value": letter.received.value == raw.value,
        "headers": letter.own_headers == raw.headers,
    }
    return [f"{letter.place}: wrong {what}: {letter}" for what, is_right in checks.items() if not is_right]


def raw_records(bootstrap: str, topic: str) -> dict[Place, Received]:
    """The records of a topic as they are in it."""
    found = read_to_end(bootstrap, topic, isolation="read_committed")
    return {Place(topic, record.partition, record.offset): record for record in found}
