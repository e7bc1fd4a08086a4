"""What Kafka Streams makes of given records: cases are kept as JSON with the results that it gave.

A case is run by a small program on Kafka Streams, against a broker of ours. It needs Java and the jars that
`make test-java` fetches. `python -m tests.support.kafka_streams BOOTSTRAP` writes the results of all cases anew.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

import msgspec
import pytest
from confluent_kafka import Producer

from core_broker.client.admin import Admin
from core_broker.client.consumer import Consumer
from core_broker.client.settings import ClientSettings
from tests.support.patience import eventually
from tests.support.service import REPOSITORY

JARS: Final = os.environ.get("CAUDAL_KAFKA_STREAMS")
CASES: Final = REPOSITORY / "tests" / "conformance" / "kafka_streams"
EPOCH_MS: Final = 1_767_225_600_000
"""The times of cases are milliseconds since then, the beginning of 2026."""
_SOURCES: Final = REPOSITORY / "tests" / "support" / "java" / "streams"
_RUN_TIMEOUT_S: Final = 120
_READ_TIMEOUT_S: Final = 240
"""Long enough for Spark to start on a busy machine."""
_numbers = count(1)

needs_kafka_streams: Final = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_KAFKA_STREAMS names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="the command javac is not installed"),
    pytest.mark.xdist_group("java"),
]
"""Marks of tests that run Kafka Streams."""

Value = dict[str, Any] | None
Place = tuple[str, tuple[int, int] | None]
"""A key and its window."""


class Input(msgspec.Struct, frozen=True, array_like=True):
    """A record to be written to the topic `<id>-<topic>`."""

    topic: str
    key: str
    value: Value
    time_ms: int


class Output(msgspec.Struct, frozen=True, array_like=True):
    """A record that was written to the topic `<id>-out`; the window is that of its key, if keys have one."""

    key: str
    window: tuple[int, int] | None
    value: Value
    time_ms: int


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A topology, the records that it reads, and those that it wrote."""

    topology: str
    parameters: dict[str, int | str | bool]
    steps: tuple[tuple[Input, ...], ...]
    """The records of a step are written when everything before has been processed."""
    result: tuple[Output, ...] = ()
    kafka_streams: str = ""
    """The version that gave the result."""


def case_names() -> list[str]:
    """All cases."""
    return sorted(path.stem for path in CASES.glob("*.json"))


def read_case(name: str) -> Case:
    """A case by its name."""
    return msgspec.json.decode((CASES / f"{name}.json").read_bytes(), type=Case)


def last_values(outputs: Sequence[Output]) -> dict[Place, tuple[dict[str, Any], int]]:
    """The table that records tell of: the last value of each key, and its time."""
    last = {(output.key, output.window): output for output in outputs}
    return {place: (output.value, output.time_ms) for place, output in last.items() if output.value is not None}


class Topics:
    """The topics of one run of a case."""

    def __init__(self, bootstrap: str, case: Case) -> None:
        self.id = f"case-{next(_numbers)}"
        self.case = case
        self._bootstrap = bootstrap
        self._settings = ClientSettings(bootstrap_servers=bootstrap)
        self._admin = Admin(self._settings)

    @property
    def sql_prefix(self) -> str:
        """What the names of streams and tables begin with."""
        return f"{self.id.replace('-', '_').upper()}_"

    @property
    def of_case(self) -> tuple[str, ...]:
        """What the topology reads."""
        return _TOPICS[self.case.topology]

    def create(self) -> None:
        """Create the topics of the case and the one of its result: of one partition, with records of any age."""
        for name in (*self.of_case, "out"):
            self._admin.create_topic(
                f"{self.id}-{name}", partitions=1, replication_factor=1, configs={"retention.ms": "-1"}
            )

    def write(self, step: Sequence[Input]) -> None:
        """Write the records of a step."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})
        for record in step:
            value = None if record.value is None else json.dumps(record.value).encode()
            producer.produce(f"{self.id}-{record.topic}", value, record.key, timestamp=EPOCH_MS + record.time_ms)
        producer.flush(30)

    def read_out(self) -> list[Output]:
        """All records that were written."""
        topic = f"{self.id}-out"
        found = []
        with Consumer(self._settings) as consumer:
            place = (topic, 0)
            consumer.assign({place: 0})
            while place not in consumer.ended:
                found += consumer.read(1000, timeout_ms=200)
        return [self._output(record.key or b"", record.value, record.timestamp_ms) for record in found]

    def _output(self, key: bytes, value: bytes | None, timestamp_ms: int) -> Output:
        key, window = split_key(self.case, key)
        read = None if value is None else json.loads(value)
        return Output(key.decode(), window, read, timestamp_ms - EPOCH_MS)

    def await_read(self, group: str) -> None:
        """Wait until an application has read everything that was written, and everything that it wrote for itself."""
        self._await_read(lambda name: name == group)

    def await_read_by_queries(self) -> None:
        """The same for the queries of the SQL service: their ids have the name that they make, which begins as here.

        The table of a stream-table join is not waited for: each batch of the stream looks it up as it is then.
        """
        looked_up = f"{self.id}-right" if self.case.topology == "stream-table" else None
        self._await_read(lambda name: name.startswith("_streams-") and self.sql_prefix in name, but=looked_up)

    def _await_read(self, is_reader: Callable[[str], bool], *, but: str | None = None) -> None:
        for _ in range(2):  # The second time for what the readers wrote for themselves at last.
            eventually(
                lambda: self._unread(is_reader, but), lambda unread: not unread, timeout_s=_READ_TIMEOUT_S, pause_s=0.2
            )

    def _unread(self, is_reader: Callable[[str], bool], but: str | None) -> dict[tuple[str, int], int]:
        committed: dict[tuple[str, int], int] = {}
        for group in self._admin.groups():
            if is_reader(group.group_id):
                try:
                    committed |= self._admin.group_offsets(group.group_id)
                except UnicodeDecodeError:
                    # librdkafka reads beyond the end of the metadata of commits now and then.
                    return {(group.group_id, 0): 0}
        places = [
            (name, number)
            for name, partitions in self._admin.topic_names().items()
            for number in range(partitions)
            if self._is_read(name) and name != but
        ]
        ends = self._admin.offsets(places, "latest")
        return {place: end for place, end in ends.items() if committed.get(place, 0) < end}

    def _is_read(self, topic: str) -> bool:
        """Whether something has to read a topic: the input, and what applications or queries write for themselves."""
        if topic.startswith("_streams-"):
            return self.sql_prefix in topic
        return topic.startswith(f"{self.id}-") and not topic.endswith(("-out", "-dlq", "-changelog"))


def split_key(case: Case, key: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """A key and its window, in milliseconds since the beginning of the cases' time."""
    if case.topology == "windowed-count":
        (start,) = struct.unpack(">q", key[-8:])
        return key[:-8], (start - EPOCH_MS, start - EPOCH_MS + int(case.parameters["size_ms"]))
    if case.topology == "session-count":
        end, start = struct.unpack(">qq", key[-16:])
        return key[:-16], (start - EPOCH_MS, end - EPOCH_MS)
    return key, None


class KafkaStreams:
    """The program that runs topologies."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap: str) -> None:
        self._process = process
        self._bootstrap = bootstrap

    def run(self, case: Case) -> list[Output]:
        """What Kafka Streams writes."""
        topics = Topics(self._bootstrap, case)
        topics.create()
        topics.write(case.steps[0])
        self._tell({"id": topics.id, "topology": case.topology, "parameters": case.parameters}, "running")
        topics.await_read(topics.id)
        for step in case.steps[1:]:
            topics.write(step)
            topics.await_read(topics.id)
        self._tell(None, "stopped")
        return topics.read_out()

    def _tell(self, command: Mapping[str, Any] | None, expected: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{'' if command is None else json.dumps(command)}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == expected


_TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "word-count": ("lines",),
    "windowed-count": ("clicks",),
    "session-count": ("clicks",),
    "table-aggregate": ("people",),
    **dict.fromkeys(("stream-stream", "stream-table", "table-table", "foreign-key"), ("left", "right")),
}
"""The topics that a topology reads."""


@contextmanager
def running_kafka_streams(bootstrap: str, folder: Path) -> Iterator[KafkaStreams]:
    """The program, compiled and started."""
    sources = sorted(map(str, _SOURCES.glob("*.java")))
    classes = folder / "classes"
    subprocess.run(["javac", "-nowarn", "-cp", f"{JARS}/*", "-d", str(classes), *sources], check=True)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = ["java", "-XX:TieredStopAtLevel=1", quiet, "-cp", f"{classes}:{JARS}/*", "StreamsRunner"]
    with subprocess.Popen(
        [*command, bootstrap, str(folder / "state")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield KafkaStreams(process, bootstrap)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(_RUN_TIMEOUT_S)
        finally:
            process.kill()


def version() -> str:
    """The version of Kafka Streams in the folder of jars."""
    (jar,) = Path(JARS or "").glob("kafka-streams-*.jar")
    return jar.stem.removeprefix("kafka-streams-")


def write_case(name: str, case: Case) -> None:
    """Keep a case, one record on a line."""

    def lines(records: Sequence[Input] | Sequence[Output], indent: int) -> str:
        written = [f"{' ' * (indent + 2)}{json.dumps(msgspec.to_builtins(record))}" for record in records]
        return "[\n" + ",\n".join(written) + f"\n{' ' * indent}]" if written else "[]"

    steps = ",\n".join(f"    {lines(step, 4)}" for step in case.steps)
    text = "".join(
        [
            "{\n",
            f'  "topology": {json.dumps(case.topology)},\n',
            f'  "parameters": {json.dumps(case.parameters)},\n',
            f'  "steps": [\n{steps}\n  ],\n',
            f'  "kafka_streams": {json.dumps(case.kafka_streams)},\n',
            f'  "result": {lines(case.result, 2)}\n',
            "}\n",
        ]
    )
    (CASES / f"{name}.json").write_text(text)


def record_all(bootstrap: str, names: Sequence[str], out: IO[str]) -> None:
    """Write the results of cases anew."""
    with TemporaryDirectory() as folder, running_kafka_streams(bootstrap, Path(folder)) as streams:
        for name in names:
            case = read_case(name)
            result = tuple(streams.run(case))
            write_case(name, msgspec.structs.replace(case, result=result, kafka_streams=version()))
            out.write(f"{name}: {len(result)} records\n")


if __name__ == "__main__":
    record_all(sys.argv[1], sys.argv[2:] or case_names(), sys.stdout)
