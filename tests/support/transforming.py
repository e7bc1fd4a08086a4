"""Records for tests of transforms, and the transforms by the names that configurations have."""

from typing import Any

from connect.api.data import Schema, Value
from connect.api.record import Header, Record, SinkRecord, SourceRecord
from connect.api.transform import Transform
from connect.transforms.table import TRANSFORMS

BY_NAME = {alias: plugin for plugin in TRANSFORMS for alias in plugin.aliases}
KAFKA = "org.apache.kafka.connect.transforms."


def made(name: str, **options: str) -> Transform:
    """A transform by its full name, or Kafka's without the package; underscores in options are dots."""
    plugin = BY_NAME.get(name) or BY_NAME[KAFKA + name]
    return plugin({key.replace("_", "."): value for key, value in options.items()})


def sink(schema: Schema | None = None, value: Value = None, **attributes: Any) -> SinkRecord:
    """A record for a sink with this value."""
    given: dict[str, Any] = {"topic": "topic", "partition": 3, "offset": 42, "timestamp_ms": 1_790_000_000_123}
    given.update(value_schema=schema, value=value, **attributes)
    topic, partition, offset = given["topic"], given["partition"], given["offset"]
    return SinkRecord(**given, original_topic=topic, original_partition=partition, original_offset=offset)


def source(schema: Schema | None = None, value: Value = None, **attributes: Any) -> SourceRecord:
    """A record of a source with this value."""
    given: dict[str, Any] = {"topic": "topic", "source_partition": {}, "source_offset": {}, **attributes}
    return SourceRecord(**given, value_schema=schema, value=value)


def changed(transform: Transform, record: Record) -> Record:
    """The record afterwards; it must not be dropped."""
    result = transform.apply(record)
    assert result is not None
    return result


def value_of(transform: Transform, value: Value) -> Value:
    """What becomes of a value without a schema."""
    record = changed(transform, sink(None, value))
    assert record.value_schema is None
    return record.value


def typed(transform: Transform, schema: Schema | None, value: Value) -> tuple[Schema | None, Value]:
    """What becomes of a value with a schema."""
    record = changed(transform, sink(schema, value))
    return record.value_schema, record.value


__all__ = ["BY_NAME", "KAFKA", "Header", "changed", "made", "sink", "source", "typed", "value_of"]
