"""What DirectorySink writes, DirectorySource reads: the same values and, where files have schemas, the same schema."""

from pathlib import Path

import pytest

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.record import SourceRecord
from connect.testing.contexts import FakeSinkContext, FakeSourceContext
from connect.testing.samples import EVERY_TYPE, sink_record
from connectors.file.config import DirectorySinkConfig, DirectorySourceConfig
from connectors.file.directory_sink import DirectorySinkTask
from connectors.file.directory_source import DirectorySourceTask

PLACE = ("t", 0)
EVERY_SCHEMA = data.struct({name: schema for name, (schema, _) in EVERY_TYPE.items()}, name="Every")
EVERY_VALUE = {name: value for name, (_, value) in EVERY_TYPE.items()}
NULLS = {name: schema.as_optional() for name, (schema, _) in EVERY_TYPE.items()}


def round_trip(folder: Path, kind: str, values: list[Value], schema: Schema | None) -> list[SourceRecord]:
    sink = DirectorySinkTask(
        DirectorySinkConfig.parse({"path": str(folder), "format": kind, "flush.size": str(len(values))}),
        FakeSinkContext([PLACE]),
    )
    sink.start()
    sink.open([PLACE])
    sink.put([sink_record("t", number, value=value, value_schema=schema) for number, value in enumerate(values)])
    assert sink.pre_commit({PLACE: len(values)}) == {PLACE: len(values)}
    sink.stop()
    config = {"path": str(folder / "topics"), "pattern": "**/*", "format": kind, "topic": "t", "batch.size": "7"}
    source = DirectorySourceTask(
        DirectorySourceConfig.parse({**config, "file.minimum.age.ms": "0"}), FakeSourceContext()
    )
    source.start()
    records: list[SourceRecord] = []
    while len(records) < len(values):
        records += source.poll()
    source.stop()
    return records


@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_every_type_is_the_same_again(kind: str, tmp_path: Path) -> None:
    records = round_trip(tmp_path, kind, [EVERY_VALUE] * 20, EVERY_SCHEMA)
    assert [record.value for record in records] == [EVERY_VALUE] * 20
    found = records[0].value_schema
    assert found is not None
    names = {field.name: (field.schema.type, field.schema.optional) for field in found.fields}
    assert names == {field.name: (field.schema.type, field.schema.optional) for field in EVERY_SCHEMA.fields}


def test_the_schema_of_avro_files_is_equal(tmp_path: Path) -> None:
    [record] = round_trip(tmp_path, "avro", [EVERY_VALUE], EVERY_SCHEMA)
    assert record.value_schema == EVERY_SCHEMA


@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_nulls_are_nulls_again(kind: str, tmp_path: Path) -> None:
    [record] = round_trip(tmp_path, kind, [{}], data.struct(NULLS))
    assert record.value == dict.fromkeys(NULLS)


def test_json_without_schema_is_the_same_again(tmp_path: Path) -> None:
    values: list[Value] = [{"a": 1, "b": [None, "x\ny", {"c": 0.5}]}, "text", 7, [True]]
    assert [record.value for record in round_trip(tmp_path, "json", values, None)] == values


def test_csv_is_text_again(tmp_path: Path) -> None:
    values = [{"a": 'x, "y"\nz', "b": 1}, {"a": None, "b": 2}]
    records = round_trip(tmp_path, "csv", values, data.struct({"a": data.OPTIONAL_STRING, "b": data.INT32}))
    assert [record.value for record in records] == [{"a": 'x, "y"\nz', "b": "1"}, {"a": None, "b": "2"}]
