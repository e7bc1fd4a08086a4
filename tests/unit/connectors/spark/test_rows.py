from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.api import data
from connect.api.data import Schema, array, decimal, mapping, struct
from connect.api.errors import DataError
from connect.api.record import Header, SinkRecord
from connectors.spark.config import SparkSinkConfig
from connectors.spark.naming import TableNames
from connectors.spark.partitions import by_folder
from connectors.spark.record_rows import RecordRows, array_of
from connectors.spark.rows import DELETED, Rows, fingerprint, flat
from connectors.spark.staging import Staging
from core_broker.client.records import IncomingRecord
from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.spark.commits.entries import WrittenRows

ORDER = struct({"id": data.INT32, "name": data.OPTIONAL_STRING})


@pytest.mark.parametrize(
    ("schema", "value", "arrow", "stored"),
    [
        (data.INT8, 7, pa.int8(), 7),
        (data.INT64, 1 << 40, pa.int64(), 1 << 40),
        (data.FLOAT32, 1.5, pa.float32(), 1.5),
        (data.BOOLEAN, True, pa.bool_(), True),
        (data.STRING, "é", pa.string(), "é"),
        (data.BYTES, b"\x00", pa.binary(), b"\x00"),
        (data.DATE, date(2026, 1, 2), pa.date32(), date(2026, 1, 2)),
        (data.TIME, time(1, 2, 3, 4000), pa.string(), "01:02:03.004000"),
        (data.TIMESTAMP, datetime(2026, 1, 2, 3, tzinfo=UTC), TIMESTAMP, datetime(2026, 1, 2, 3, tzinfo=UTC)),
        (decimal(2), Decimal("1.25"), pa.decimal128(38, 2), Decimal("1.25")),
        (array(data.TIME), [time(1), None], pa.list_(pa.string()), ["01:00:00", None]),
        (mapping(data.STRING, data.INT32), {"a": 1}, pa.map_(pa.string(), pa.int32()), [("a", 1)]),
        (
            mapping(data.INT32, data.TIME),
            {1: time(2)},
            pa.list_(pa.struct([("key", pa.int32()), ("value", pa.string())])),
            [{"key": 1, "value": "02:00:00"}],
        ),
        (
            struct({"at": data.TIME, "n": data.INT16}),
            {"at": time(1), "n": 2},
            pa.struct([("at", pa.string()), ("n", pa.int16())]),
            {"at": "01:00:00", "n": 2},
        ),
    ],
)
def test_values_become_columns_by_their_schemas(schema: Schema, value: Any, arrow: pa.DataType, stored: Any) -> None:
    column = array_of(schema, [value, None])
    assert column.type == arrow
    assert column.to_pylist() == [stored, None]


def test_fields_that_never_had_a_value_have_no_column_yet() -> None:
    values = array_of(None, [{"a": 1, "b": None, "c": {"d": None}, "e": [None], "f": {"g": 1, "h": None}}])
    columns = flat(values, "value")
    assert list(columns) == ["a", "f"]
    assert columns["f"].to_pylist() == [{"g": 1}]


def record(offset: int, value: Any, *, key: Any = None, schema: Schema | None = ORDER, **more: Any) -> SinkRecord:
    return SinkRecord(
        topic="orders",
        partition=3,
        key_schema=data.STRING if key is not None else None,
        key=key,
        value_schema=None if value is None else schema,
        value=value,
        timestamp_ms=1_700_000_000_000 + offset,
        offset=offset,
        original_topic="orders",
        original_partition=3,
        original_offset=offset,
        **more,
    )


def rows_of(options: dict[str, str], records: list[SinkRecord]) -> tuple[list[Rows], list[tuple[int, str]]]:
    config = SparkSinkConfig.parse(options)
    batch = [
        IncomingRecord(
            topic=item.original_topic,
            partition=item.original_partition,
            offset=item.original_offset,
            timestamp_ms=0,
            timestamp_type="CreateTime",
            key=None,
            value=b"\x00\x00\x00\x00\x09x",
            headers=[("h", b"1")],
        )
        for item in records
    ]
    places = {(raw.topic, raw.partition, raw.offset): index for index, raw in enumerate(batch)}
    refused: list[tuple[int, str]] = []
    maker = RecordRows(config, TableNames(config.table, {}), has_transforms=False)
    made = maker.of(records, places, batch, refused=lambda index, error: refused.append((index, str(error))))
    return made, refused


def listed(rows: Rows) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(rows.columns).to_pylist()
    return found


def test_a_record_is_a_row_with_its_place() -> None:
    ((rows,), refused) = rows_of({}, [record(5, {"id": 1, "name": "a"}), record(6, {"id": 2})])
    assert refused == []
    assert rows.table == "orders"
    assert list(rows.columns) == ["id", "name", "_topic", "_partition", "_offset", "_timestamp"]
    assert listed(rows)[1] == {
        "id": 2,
        "name": None,
        "_topic": "orders",
        "_partition": 3,
        "_offset": 6,
        "_timestamp": datetime.fromtimestamp(1_700_000_000.006, UTC),
    }


def test_key_headers_and_schema_id_are_kept_when_wanted() -> None:
    ((rows,), _) = rows_of({"metadata.columns": "key,headers,schema_id"}, [record(1, {"id": 1}, key="k")])
    assert listed(rows)[0] | {"id": 0, "name": ""} == {
        "id": 0,
        "name": "",
        "_key": "k",
        "_headers": [{"key": "h", "value": b"1"}],
        "_schema_id": 9,
    }


def test_headers_after_transforms_are_bytes_again() -> None:
    config = SparkSinkConfig.parse({"metadata.columns": "headers"})
    changed = record(1, {"id": 1}, headers=(Header("n", 5), Header("b", True), Header("x", None)))
    raw = IncomingRecord(topic="orders", partition=3, offset=1, timestamp_ms=0, timestamp_type="", key=None, value=None)
    maker = RecordRows(config, TableNames(config.table, {}), has_transforms=True)
    (rows,) = maker.of([changed], {("orders", 3, 1): 0}, [raw], refused=lambda *_: None)
    assert listed(rows)[0]["_headers"] == [
        {"key": "n", "value": b"5"},
        {"key": "b", "value": b"true"},
        {"key": "x", "value": None},
    ]


def test_schemas_of_one_batch_have_files_of_their_own() -> None:
    wider = struct({"id": data.INT64, "name": data.OPTIONAL_STRING})
    made, _ = rows_of({}, [record(1, {"id": 1}), record(2, {"id": 2}, schema=wider), record(3, {"id": 3})])
    assert [rows.sources.tolist() for rows in made] == [[0, 2], [1]]
    assert len({fingerprint(rows.schema) for rows in made}) == 2


def test_a_value_that_is_no_struct_has_a_column() -> None:
    ((rows,), _) = rows_of({"metadata.columns": "none", "value.column": "text"}, [record(1, "a", schema=data.STRING)])
    assert listed(rows) == [{"text": "a"}]


def test_only_what_cannot_be_a_row_is_refused() -> None:
    made, refused = rows_of({}, [record(1, {"id": 1}), record(2, {"id": 1 << 40}), record(3, {"id": 3})])
    assert sorted(index for rows in made for index in rows.sources) == [0, 2]
    assert [index for index, _ in refused] == [1]


def test_maps_without_a_schema_of_mixed_types_are_refused_one_by_one_only_where_they_must() -> None:
    values = [{"a": 1}, {"a": "x"}, {"a": 2}]
    made, refused = rows_of({}, [record(n, value, schema=None) for n, value in enumerate(values)])
    assert refused == []
    assert sorted(row["a"] for rows in made for row in listed(rows) if isinstance(row["a"], int)) == [1, 2]


@pytest.mark.parametrize(
    ("options", "rows", "refusals"),
    [
        ({}, 1, 0),
        ({"behavior.on.null.values": "ignore"}, 0, 0),
        ({"behavior.on.null.values": "fail"}, 0, 1),
    ],
)
def test_a_record_without_a_value_is_what_the_operator_says(options: dict[str, str], rows: int, refusals: int) -> None:
    made, refused = rows_of(options, [record(1, None)])
    assert (sum(len(some.sources) for some in made), len(refused)) == (rows, refusals)


UPSERT = {"write.mode": "upsert", "table.format": "delta", "pk.mode": "record_key"}


def test_in_upsert_mode_the_key_is_a_column_and_a_tombstone_deletes() -> None:
    made, _ = rows_of(UPSERT, [record(1, {"id": 1}, key="k"), record(2, None, key="k")])
    assert [rows.keys for rows in made] == [("key",), ("key",)]
    assert [row[DELETED] for rows in made for row in listed(rows)] == [False, True]
    assert list(made[1].columns) == ["key", "_topic", "_partition", "_offset", "_timestamp", DELETED]


def test_a_field_that_tells_of_deletions_itself_is_a_column_as_any_other() -> None:
    flagged = struct({"id": data.INT32, "_deleted": data.BOOLEAN})
    made, refused = rows_of(UPSERT, [record(1, {"id": 1, "_deleted": True}, key="k", schema=flagged)])
    assert refused == []
    assert [(row["_deleted"], row[DELETED]) for row in listed(made[0])] == [(True, False)]


def test_a_record_without_a_key_cannot_be_upserted() -> None:
    _, refused = rows_of(UPSERT, [record(1, {"id": 1})])
    assert refused == [(0, "The record has no key, and pk.mode is record_key")]


def test_fields_of_the_value_may_be_the_key() -> None:
    options = {**UPSERT, "pk.mode": "record_value", "pk.fields": "id"}
    made, refused = rows_of(options, [record(1, {"id": 1, "name": "a"}), record(2, {"name": "b"})])
    assert made[0].keys == ("id",)
    assert refused == [(1, "Field id is part of the key (pk.fields) and null")]


def test_a_field_with_the_name_of_a_metadata_column_is_refused() -> None:
    _, refused = rows_of({}, [record(1, {"_offset": 1}, schema=struct({"_offset": data.INT64}))])
    assert "metadata.columns" in refused[0][1]


def test_rows_go_to_the_folders_of_their_values() -> None:
    config = SparkSinkConfig.parse({"partition.by": "country,day(at)"})
    at = [datetime(2026, 1, day, 5, tzinfo=UTC) for day in (1, 2, 1)]
    columns = {"country": pa.array(["de", None, "de"]), "at": pa.array(at, TIMESTAMP), "n": pa.array([1, 2, 3])}
    found = dict(by_folder(Rows("t", columns, np.arange(3)), config.partitions))
    assert {folder: rows.columns["n"].to_pylist() for folder, rows in found.items()} == {
        (("country", "de"), ("at_day", "2026-01-01")): [1, 3],
        (("country", None), ("at_day", "2026-01-02")): [2],
    }
    assert all("country" not in rows.columns and "at" in rows.columns for rows in found.values())


def test_a_missing_partition_column_is_an_error_of_the_record() -> None:
    config = SparkSinkConfig.parse({"partition.by": "country"})
    with pytest.raises(DataError, match="country"):
        list(by_folder(Rows("t", {"n": pa.array([1])}, np.arange(1)), config.partitions))


def test_a_deletion_needs_no_column_of_a_partition(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path / "staging"), SparkSinkConfig.parse({**UPSERT, "partition.by": "country"}))
    made, _ = rows_of(UPSERT, [record(1, None, key="k"), record(2, None, key="l")])
    staging.add(made[0])
    (entry,) = [entry for entry in staging.finish() if isinstance(entry, WrittenRows)]
    assert (entry.file.partition, entry.file.rows) == ({"country": None}, 2)
    assert "country" not in entry.schema.names


def test_staged_files_hold_the_rows_without_what_their_folder_tells(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path / "staging"), SparkSinkConfig.parse({"partition.by": "c"}))
    columns = {"c": pa.array(["x", "y", "x"]), "n": pa.array([1, 2, 3])}
    staging.add(Rows("t", columns, np.arange(3)))
    staging.add(Rows("t", columns, np.arange(3)))
    entries = [entry for entry in staging.finish() if isinstance(entry, WrittenRows)]
    assert {entry.file.partition["c"]: entry.file.rows for entry in entries} == {"x": 4, "y": 2}
    for entry in entries:
        table = pq.read_table(entry.file.path, partitioning=None)
        assert table.schema.names == ["n"]
        assert len(table) == entry.file.rows
        assert entry.file.size == Path(entry.file.path).stat().st_size
        assert entry.schema.names == ["n", "c"]
