import json
import struct
from typing import Any

import msgspec

from core_broker.client.records import IncomingRecord
from streams.formats.values import RecordCodec
from streams.materialized.changes import Changes, RecordReader
from streams.materialized.row_format import RowFormat
from streams.model.sources import Column, Format, Source, TimestampColumn
from tests.support.materialized_tables import NO_REGISTRY, SESSION, TUMBLING, table


def record(key: bytes | None, value: Any, *, offset: int = 0, partition: int = 0) -> IncomingRecord:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return IncomingRecord(
        topic="t",
        partition=partition,
        offset=offset,
        timestamp_ms=1000 + offset,
        timestamp_type="CreateTime",
        key=key,
        value=data,
    )


def changes(source: Source, *records: IncomingRecord) -> Changes:
    return RecordReader(RecordCodec(source, NO_REGISTRY), source, RowFormat(source)).changes_of(records)


def rows(source: Source, found: Changes) -> list[tuple[object, ...]]:
    return [RowFormat(source).row_of(row) for row in found.rows]


def test_only_the_last_record_of_a_key_matters() -> None:
    found = changes(
        table(), record(b"a", {"N": 1}), record(b"b", {"N": 2}), record(b"a", None), record(b"b", {"N": 3}, offset=5)
    )

    assert rows(table(), found) == [("b", 3, 1005, 0, 0)]
    assert found.deleted == [(RowFormat(table()).key(["a"]), 0, 0)]
    assert found.skipped == 0


def test_the_document_null_deletes_a_row() -> None:
    found = changes(table(), record(b"a", {"N": 1}), record(b"a", b" null\n"))

    assert (rows(table(), found), found.skipped) == ([], 0)
    assert found.deleted == [(RowFormat(table()).key(["a"]), 0, 0)]


def test_a_record_that_cannot_be_decoded_leaves_what_was_before() -> None:
    found = changes(table(), record(b"a", {"N": 1}), record(b"a", b"{"), record(b"b", b"["), record(None, {"N": 1}))

    assert rows(table(), found) == [("a", 1, 1000, 0, 0)]
    assert found.skipped == 3


def test_other_bytes_of_the_same_key_are_the_same_row() -> None:
    source = msgspec.structs.replace(table(), key_format=Format(name="JSON"))
    one, same = b'"a"', b' "a" '

    found = changes(source, record(one, {"N": 1}), record(same, {"N": 2}), record(one, {"N": 3}, offset=2))
    assert rows(source, found) == [("a", 3, 1002, 0, 0)]

    found = changes(source, record(one, {"N": 1}), record(same, {"N": 2}), record(one, {"N": 3}), record(same, None))
    assert (found.rows, len(found.deleted)) == ([], 1)


def test_windows_come_from_the_key() -> None:
    key = b"a" + struct.pack(">q", 5000)
    found = changes(table(window=TUMBLING), record(key, {"N": 1}), record(b"short", {"N": 1}))
    assert rows(table(window=TUMBLING), found) == [("a", 1, 1000, 5000, 6000)]
    assert found.skipped == 1

    session = b"a" + struct.pack(">qq", 7000, 5000)
    found = changes(table(window=SESSION), record(session, {"N": 1}), record(session, None))
    assert found.deleted == [(RowFormat(table()).key(["a"]), 5000, 7000)]


def test_the_time_of_a_row_may_be_one_of_its_columns() -> None:
    def of(kind: str, value: object) -> object:
        source = msgspec.structs.replace(table(value=(Column("AT", kind),)), timestamp=TimestampColumn(column="AT"))
        (row,) = rows(source, changes(source, record(b"a", {"AT": value})))
        return row[2]

    assert of("BIGINT", 77) == 77
    assert of("TIMESTAMP", 1_767_225_600_005) == 1_767_225_600_005
    assert of("BIGINT", None) == 1000
