import datetime as dt
from typing import Any

import pytest

from connect.api.data import (
    INT32,
    INT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    array,
    struct,
)
from connect.api.errors import ConfigError, ConnectError, DataError
from connect.api.record import Header, Record
from tests.support.transforming import changed, made, sink

NAME = "io.debezium.transforms.outbox.EventRouter"
COLUMNS = {"id": STRING, "aggregatetype": STRING, "aggregateid": STRING, "type": STRING, "payload": OPTIONAL_STRING}
ROW = {"id": "da8d", "aggregatetype": "User", "aggregateid": "10711fa5", "type": "UserCreated", "payload": "{}"}


def insert(row: dict[str, Any] | None = None, columns: dict[str, Schema] | None = None, op: str = "c") -> Record:
    after = struct({**COLUMNS, **(columns or {})}, name="event.Value", optional=True)
    envelope = struct({"after": after, "op": STRING, "ts_ms": INT64, "source": struct({})}, name="event.Envelope")
    return sink(envelope, {"after": {**ROW, **(row or {})}, "op": op, "ts_ms": 123, "source": {}}, partition=1)


def test_an_inserted_row_becomes_an_event() -> None:
    record = changed(made(NAME), insert())
    assert (record.topic, record.partition, record.timestamp_ms) == ("outbox.event.User", None, 123)
    assert (record.key_schema, record.key) == (STRING, "10711fa5")
    assert (record.value_schema, record.value) == (OPTIONAL_STRING, "{}")
    assert record.headers == (Header("id", "da8d", STRING),)


def test_tombstones_and_deletions_are_dropped_and_other_records_pass() -> None:
    assert made(NAME).apply(sink(None, None)) is None
    assert made(NAME).apply(insert(op="d")) is None
    other = sink(STRING, "x")
    assert made(NAME).apply(other) is other


def test_updates_are_told_or_stop_the_task(caplog: pytest.LogCaptureFixture) -> None:
    for behavior, level in (("warn", "WARNING"), ("error", "ERROR")):
        caplog.clear()
        assert made(NAME, table_op_invalid_behavior=behavior).apply(insert(op="u")) is None
        assert [record.levelname for record in caplog.records] == [level]
    with pytest.raises(ConnectError, match="Unexpected update message received"):
        made(NAME, debezium_op_invalid_behavior="fatal").apply(insert(op="u"))


def test_the_topic_is_made_by_a_pattern() -> None:
    options = {"route_topic_regex": "(?<a>.).*", "route_topic_replacement": "to.${a}", "route_by_field": "type"}
    assert changed(made(NAME, **options), insert()).topic == "to.U"


def test_columns_have_other_names_when_told() -> None:
    options = {
        "table_field_event_id": "type",
        "table_field_event_key": "aggregatetype",
        "table_field_event_payload": "id",
    }
    record = changed(made(NAME, **options), insert())
    assert (record.key, record.value, record.headers[0].value) == ("User", "da8d", "UserCreated")


def test_more_columns_go_into_headers_envelope_and_partition() -> None:
    placement = "type:header:eventType,id:header,type:envelope,version:envelope:v,shard:partition"
    columns = {"version": INT32, "shard": OPTIONAL_INT32}
    transform = made(NAME, table_fields_additional_placement=placement, table_field_event_schema_version="version")
    record = changed(transform, insert({"version": 3, "shard": 5}, columns))
    assert record.headers == (
        Header("id", "da8d", STRING),
        Header("eventType", "UserCreated", STRING),
        Header("id", "da8d", STRING),
    )
    assert record.partition == 5
    fields = (Field("payload", OPTIONAL_STRING), Field("type", STRING), Field("v", INT32))
    assert record.value_schema == struct(fields, name="event.User.Value").but(version=3)
    assert record.value == {"payload": "{}", "type": "UserCreated", "v": 3}


@pytest.mark.parametrize("payload", [None, "", "  "])
def test_an_empty_payload_makes_a_tombstone_when_told(payload: str | None) -> None:
    record = changed(made(NAME, route_tombstone_on_empty_payload="true"), insert({"payload": payload}))
    assert (record.value_schema, record.value) == (None, None)
    assert changed(made(NAME), insert({"payload": payload})).value == payload


def test_json_in_text_becomes_a_struct_when_told() -> None:
    payload = '{"name": "x", "n": 1, "ok": true, "none": null, "list": [{"a": 1}]}'
    record = changed(made(NAME, table_expand_json_payload="true"), insert({"payload": payload}))
    inner = struct({"a": OPTIONAL_INT32}, optional=True)
    expected = {
        "name": OPTIONAL_STRING,
        "n": OPTIONAL_INT32,
        "ok": OPTIONAL_BOOLEAN,
        "list": array(inner, optional=True),
    }
    assert record.value_schema == struct(expected, optional=True)
    assert record.value["list"] == [{"a": 1}]


@pytest.mark.parametrize("payload", ["{broken", "plain", '[1, "mixed"]'])
def test_text_that_is_no_json_stays_text(payload: str) -> None:
    record = changed(made(NAME, table_expand_json_payload="true"), insert({"payload": payload}))
    assert (record.value_schema, record.value) == (OPTIONAL_STRING, payload)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INT64.but(name="io.debezium.time.Timestamp"), 5_000, 5_000),
        (INT64.but(name="io.debezium.time.MicroTimestamp"), 5_000_000, 5_000),
        (INT64.but(name="io.debezium.time.NanoTimestamp"), 5_000_000_000, 5_000),
        (TIMESTAMP, dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC), 5_000),
        (INT64.as_optional(), None, 123),
    ],
)
def test_a_column_tells_the_time(schema: Schema, value: Any, expected: int) -> None:
    record = changed(made(NAME, table_field_event_timestamp="at"), insert({"at": value}, {"at": schema}))
    assert record.timestamp_ms == expected


@pytest.mark.parametrize(
    ("options", "row", "columns"),
    [
        ({"table_field_event_timestamp": "at"}, {"at": 5}, {"at": INT64}),
        ({"table_field_event_timestamp": "none"}, {}, {}),
        ({"table_field_event_id": "none"}, {}, {}),
        ({"table_field_event_payload": "none"}, {}, {}),
        ({"route_by_field": "none"}, {}, {}),
        ({}, {"aggregatetype": None}, {}),
    ],
)
def test_rows_that_do_not_fit_are_refused(options: dict[str, str], row: dict[str, Any], columns: Any) -> None:
    with pytest.raises(DataError):
        made(NAME, **options).apply(insert(row, columns))


def test_rows_without_schema_become_events_too() -> None:
    value = {"after": ROW, "op": "c", "source": {}, "ts_ms": 9}
    record = changed(made(NAME, table_fields_additional_placement="type:envelope"), sink(None, value))
    assert (record.key_schema, record.key, record.topic) == (None, "10711fa5", "outbox.event.User")
    assert (record.value_schema, record.value) == (None, {"payload": "{}", "type": "UserCreated"})


@pytest.mark.parametrize("placement", ["a", "a:nowhere", "a:header:b:c"])
def test_places_must_be_known(placement: str) -> None:
    with pytest.raises(ConfigError, match="table.fields.additional.placement"):
        made(NAME, table_fields_additional_placement=placement)
