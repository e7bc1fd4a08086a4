"""The last reader goes on while records come, and says so if it could not finish."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from tests.chaos.history import History, encode_value, read_history
from tests.chaos.run import read_to_end
from tests.chaos.topics import INPUT, TOPICS
from tests.chaos.workloads import Client

PARTITIONS = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
RECORDS = 1_000_000_000


class FakeMessage:
    def __init__(self, topic: str, partition: int, offset: int, *, is_end: bool = False) -> None:
        self._found = topic, partition, offset
        self._is_end = is_end

    def topic(self) -> str:
        return self._found[0]

    def partition(self) -> int:
        return self._found[1]

    def offset(self) -> int:
        return self._found[2]

    def value(self) -> bytes:
        return encode_value(self._found[2])

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._is_end else None


class FakeConsumer:
    """Returns lists of messages, and then nothing more."""

    def __init__(self, messages: list[list[FakeMessage]]) -> None:
        self._messages: Iterator[list[FakeMessage]] = iter(messages)

    def get_watermark_offsets(self, _partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, RECORDS

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert len(partitions) == len(PARTITIONS)

    def consume(self, _count: int, _timeout: float) -> list[FakeMessage]:
        return next(self._messages, [])

    def close(self) -> None:
        pass


class FakeClient(Client):
    """Reads what it was given."""

    def __init__(self, history: History, messages: list[list[FakeMessage]]) -> None:
        super().__init__(99, {}, 0, history)
        self._messages = messages

    def consumer(self, **_settings: Any) -> Any:
        return FakeConsumer(self._messages)


def last_read(directory: Path, messages: list[list[FakeMessage]], patience_s: float) -> list[dict[str, Any]]:
    with History(directory / "final.jsonl") as history:
        read_to_end(FakeClient(history, messages), "uncommitted", patience_s=patience_s)
    return [{**event, "t": 0.0} for event in read_history(directory / "final.jsonl")]


def ends(partitions: list[tuple[str, int]]) -> list[FakeMessage]:
    return [FakeMessage(topic, number, RECORDS, is_end=True) for topic, number in partitions]


def test_the_last_read_ends_with_the_last_partition(tmp_path: Path) -> None:
    events = last_read(tmp_path, [[FakeMessage(INPUT, 0, 0)], ends(PARTITIONS[1:]), ends(PARTITIONS[:1])], 60.0)
    assert [event["op"] for event in events] == ["read"]


def test_a_last_read_that_does_not_come_to_the_end_names_the_partitions(tmp_path: Path) -> None:
    events = last_read(tmp_path, [[FakeMessage(INPUT, 0, 0)], ends(PARTITIONS[1:])], 0.5)
    assert [event["op"] for event in events] == ["read", "unfinished"]
    assert (events[1]["isolation"], events[1]["partitions"]) == ("uncommitted", [[INPUT, 0]])
