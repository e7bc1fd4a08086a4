"""Connectors, converters and transforms of tests: they give and take what a test holds, and fail when it says so."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from connect.api.config import INT, STRING, Config, option
from connect.api.converter import Converter, RawHeader, SchemaAndValue
from connect.api.data import OPTIONAL_STRING, Schema, Value
from connect.api.errors import DataError, RetriableError
from connect.api.record import SinkRecord, SourceRecord
from connect.api.sink import SinkConnector, SinkTask, TopicPartition
from connect.api.source import SourceConnector, SourceTask
from connect.api.transform import R, Transform


class Script:
    """What one connector of a test is to give or take; found by the name in its option `script`."""

    _all: ClassVar[dict[str, "Script"]] = {}

    def __init__(self, name: str) -> None:
        self.lock = threading.Lock()
        self.to_give: list[str] = []
        self.taken: list[SinkRecord] = []
        self.batches: list[list[object]] = []
        self.events: list[str] = []
        self.key_for: Callable[[str], str | None] = lambda _: None
        self.on_start: Callable[[], None] = lambda: None
        self.on_put: Callable[[Sequence[SinkRecord]], None] = lambda _: None
        self.on_flush: Callable[[], None] = lambda: None
        self.on_poll: Callable[[], None] = lambda: None
        self.on_convert: Callable[[str, Any], None] = lambda _, __: None
        self.on_transform: Callable[[Any], None] = lambda _: None
        self.confirmed: list[object] = []
        self.commits = 0
        self.context: Any = None
        self._all[name] = self

    @classmethod
    def of(cls, name: str) -> "Script":
        return cls._all[name]

    @property
    def values(self) -> list[object]:
        """What arrived, in order."""
        with self.lock:
            return [record.value for record in self.taken]


class ScriptConfig(Config):
    """Which script."""

    script: str = option(STRING)
    """Its name."""
    topic: str = option(STRING, default="")
    """Where a source's records go."""
    batch: int = option(INT, default=100)
    """Most records of one poll."""


class ScriptedSinkTask(SinkTask):
    config: ScriptConfig

    @override
    def start(self) -> None:
        self._script = Script.of(self.config.script)
        self._script.context = self.context
        self._script.on_start()
        self._script.events.append("start")

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        self._script.events.append(f"open {sorted(places)}")

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        script = self._script
        if records:
            script.batches.append([record.value for record in records])
        script.on_put(records)
        with script.lock:
            script.taken += records

    @override
    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._script.on_flush()

    @override
    def close(self, places: Collection[TopicPartition]) -> None:
        self._script.events.append(f"close {sorted(places)}")

    @override
    def stop(self) -> None:
        Script.of(self.config.script).events.append("stop")


class ScriptedSink(SinkConnector):
    config_class = ScriptConfig
    task_class = ScriptedSinkTask


class ScriptedSourceTask(SourceTask):
    config: ScriptConfig

    @override
    def start(self) -> None:
        self._script = Script.of(self.config.script)
        self._script.context = self.context
        offset = self.context.offset({"script": self.config.script})
        self._position = 0 if offset is None else int(offset["position"])
        self._script.events.append(f"start at {self._position}")

    @override
    def poll(self) -> Sequence[SourceRecord]:
        self._script.on_poll()
        given = self._script.to_give[self._position : self._position + self.config.batch]
        if not given:
            self.context.wait(0.05)
        records = [self._record(text, self._position + number) for number, text in enumerate(given, 1)]
        self._position += len(given)
        return records

    def _record(self, text: str, position: int) -> SourceRecord:
        return SourceRecord(
            topic=self.config.topic,
            key_schema=OPTIONAL_STRING,
            key=self._script.key_for(text),
            value_schema=OPTIONAL_STRING,
            value=text,
            source_partition={"script": self.config.script},
            source_offset={"position": position},
        )

    @override
    def commit_record(self, record: SourceRecord) -> None:
        self._script.confirmed.append(record.value)

    @override
    def commit(self) -> None:
        self._script.commits += 1

    @override
    def stop(self) -> None:
        Script.of(self.config.script).events.append("stop")


class ScriptedSource(SourceConnector):
    config_class = ScriptConfig
    task_class = ScriptedSourceTask
    is_exactly_once = True


class ScriptedConverter(Converter):
    """Text, unless the script objects."""

    config_class = ScriptConfig
    aliases = ("org.example.ScriptedConverter",)

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        self._script = Script.of(config["script"])
        self._side = "key" if is_key else "value"

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        self._script.on_convert(self._side, data)
        return OPTIONAL_STRING, None if data is None else data.decode()

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        self._script.on_convert(self._side, value)
        return None if value is None else str(value).encode()


class ScriptedTransform(Transform):
    """Changes nothing, unless the script objects."""

    config_class = ScriptConfig
    aliases = ("org.example.ScriptedTransform",)

    def __init__(self, config: Mapping[str, str]) -> None:
        self._script = Script.of(config["script"])

    @override
    def apply(self, record: R) -> R | None:
        self._script.on_transform(record)
        return record


def refuse(*bad: object, error: type[Exception] = DataError) -> Callable[[Sequence[SinkRecord]], None]:
    """A `put` that fails for batches with one of these values."""

    def put(records: Sequence[SinkRecord]) -> None:
        found = [record.value for record in records if record.value in bad]
        if found:
            raise error(f"bad value {found[0]}")

    return put


def fail_times(count: int, error: type[Exception] = RetriableError) -> Callable[..., None]:
    """Something that fails so many times, then never again."""
    left = [count]

    def attempt(*_: object) -> None:
        if left[0]:
            left[0] -= 1
            raise error(f"not now, {left[0]} to go")

    return attempt
