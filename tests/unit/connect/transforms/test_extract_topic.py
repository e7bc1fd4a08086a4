"""ExtractTopic and ExtractTimestamp, TombstoneHandler, Drop, and Filter by JSON paths."""

import datetime as dt

import pytest

from connect.api.data import BYTES, FLOAT32, INT32, INT64, OPTIONAL_STRING, STRING, TIMESTAMP, Schema, Value, struct
from connect.api.errors import ConfigError, DataError
from connect.api.record import Header, Record
from tests.support.transforming import changed, made, sink, typed

CONFLUENT = "io.confluent.connect.transforms."
AIVEN = "io.aiven.kafka.connect.transforms."


@pytest.mark.parametrize("name", [f"{CONFLUENT}ExtractTopic$Value", f"{AIVEN}ExtractTopic$Value"])
@pytest.mark.parametrize(
    ("schema", "value", "field", "topic"),
    [
        (STRING, "a", "", "a"),
        (INT64, 5, "", "5"),
        (FLOAT32, 0.10000000149011612, "", "0.1"),
        (struct({"t": STRING}), {"t": "a"}, "t", "a"),
        (struct({"n": struct({"t": STRING})}), {"n": {"t": "a"}}, "n.t", "a"),
        (struct({"n": struct({"t": STRING})}), {"n": {"t": "a"}}, "$.n.t", "a"),
        (None, "a", "", "a"),
        (None, True, "", "true"),
        (None, {"t": "a"}, "t", "a"),
    ],
)
def test_the_topic_stands_in_the_value(name: str, schema: Schema | None, value: Value, field: str, topic: str) -> None:
    key = "field_name" if name.startswith(AIVEN) else "field"
    assert changed(made(name, **{key: field}), sink(schema, value)).topic == topic


@pytest.mark.parametrize(
    ("schema", "value", "field"),
    [
        (OPTIONAL_STRING, None, ""),
        (STRING, "", ""),
        (struct({"t": OPTIONAL_STRING}), {}, "t"),
        (struct({"x": STRING}), {"x": ""}, "t"),
        (None, {}, "t"),
        (None, None, ""),
    ],
)
def test_a_topic_that_is_missing_is_refused_or_skipped(schema: Schema | None, value: Value, field: str) -> None:
    name = f"{CONFLUENT}ExtractTopic$Value"
    with pytest.raises(DataError, match="can't be null or empty"):
        made(name, field=field).apply(sink(schema, value))
    assert changed(made(name, field=field, skip_missing_or_null="true"), sink(schema, value)).topic == "topic"


@pytest.mark.parametrize(
    ("schema", "value", "field"),
    [
        (BYTES, b"x", ""),
        (struct({}), {}, ""),
        (None, [1], ""),
        (None, None, "t"),
        (STRING, "x", "t"),
        (struct({"t": BYTES}), {"t": b"x"}, "t"),
    ],
)
def test_what_can_be_no_topic_is_refused(schema: Schema | None, value: Value, field: str) -> None:
    with pytest.raises(DataError):
        made(f"{CONFLUENT}ExtractTopic$Value", field=field, skip_missing_or_null="true").apply(sink(schema, value))


def test_the_topic_stands_in_the_key_or_in_a_header() -> None:
    record = sink(None, None, key="k", headers=(Header("h", "one"), Header("h", "two")))
    assert changed(made(f"{CONFLUENT}ExtractTopic$Key"), record).topic == "k"
    assert changed(made(f"{CONFLUENT}ExtractTopic$Header", field="h"), record).topic == "two"
    with pytest.raises(DataError, match="none in headers"):
        made(f"{CONFLUENT}ExtractTopic$Header", field="none").apply(record)


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ({}, 5, 5),
        ({"timestamp_resolution": "seconds"}, 5, 5000),
        ({}, dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC), 5000),
    ],
)
def test_the_time_stands_in_the_data(options: dict[str, str], value: Value, expected: int) -> None:
    transform = made(f"{AIVEN}ExtractTimestamp$Value", field_name="a.t", **options)
    assert changed(transform, sink(None, {"a": {"t": value}})).timestamp_ms == expected
    schema = struct({"a": struct({"t": INT64 if isinstance(value, int) else TIMESTAMP})})
    assert changed(transform, sink(schema, {"a": {"t": value}})).timestamp_ms == expected
    key = made(f"{CONFLUENT}ExtractTimestamp$Key", field_name="t", **options)
    assert changed(key, sink(None, None, key={"t": value})).timestamp_ms == expected


@pytest.mark.parametrize("value", [None, "text", {}, {"t": None}, {"t": "text"}, {"t": True}])
def test_what_is_no_time_is_refused(value: Value) -> None:
    with pytest.raises(DataError):
        made(f"{AIVEN}ExtractTimestamp$Value", field_name="t").apply(sink(None, value))


@pytest.mark.parametrize(
    ("behavior", "outcome"), [("drop_silent", None), ("DROP_WARN", "warned"), ("ignore", "kept"), ("fail", "refused")]
)
def test_tombstones_are_handled_as_told(behavior: str, outcome: str | None, caplog: pytest.LogCaptureFixture) -> None:
    transform = made(f"{CONFLUENT}TombstoneHandler", behavior=behavior)
    alive = sink(None, 1)
    assert transform.apply(alive) is alive
    if outcome == "refused":
        with pytest.raises(DataError, match="Tombstone record encountered"):
            transform.apply(sink(None, None))
        return
    assert (transform.apply(sink(None, None)) is not None) is (outcome == "kept")
    assert bool(caplog.records) is (outcome == "warned")


def test_keys_and_values_are_made_null() -> None:
    record = sink(INT32, 1, key_schema=STRING, key="k")
    assert typed(made(f"{CONFLUENT}Drop$Value"), INT32, 1) == (None, None)
    optional = changed(made(f"{CONFLUENT}Drop$Key", schema_behavior="force_optional"), record)
    assert (optional.key_schema, optional.key, optional.value) == (OPTIONAL_STRING, None, 1)
    with pytest.raises(DataError):
        made(f"{CONFLUENT}Drop$Value", schema_behavior="retain").apply(record)


@pytest.mark.parametrize(
    ("condition", "meets"),
    [
        ("$[?(@.status == 'open')]", True),
        ("$[?(@.status == 'open' && @.amount > 5)]", True),
        ("$[?(@.status == 'open' && @.amount > 50)]", False),
        ("$[?(@.status == 'shut' || @.inner.x == 1)]", True),
        ("$[?(@['status'] != 'shut')]", True),
        ("$[?(@.status =~ /op.*/)]", True),
        ("$[?(@.none == 'x')]", False),
        ("$[?(@.status == 'a@b')]", False),
        ("$.inner.x", True),
        ("$.inner.y", False),
        ("$['status']", True),
    ],
)
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_conditions_of_json_paths_include_and_exclude(condition: str, meets: bool, side: str) -> None:
    data = {"status": "open", "amount": 7, "inner": {"x": 1}}
    record: Record = sink(None, data) if side == "Value" else sink(None, None, key=data)
    for filter_type, kept in (("include", meets), ("exclude", not meets)):
        transform = made(f"{CONFLUENT}Filter${side}", filter_condition=condition, filter_type=filter_type)
        assert (transform.apply(record) is not None) is kept


@pytest.mark.parametrize(("behavior", "kept"), [("include", True), ("exclude", False)])
def test_null_is_refused_by_conditions_kept_or_dropped(behavior: str, kept: bool) -> None:
    options = {"filter_condition": "$.a", "filter_type": "include"}
    transform = made(f"{CONFLUENT}Filter$Value", **options, missing_or_null_behavior=behavior)
    assert (transform.apply(sink(None, None)) is not None) is kept
    with pytest.raises(DataError, match="is null"):
        made(f"{CONFLUENT}Filter$Value", **options).apply(sink(None, None))


@pytest.mark.parametrize("condition", ["", "status", "$..a", "$[?(@.a == )]", "$[0]"])
def test_conditions_that_cannot_be_understood_are_refused(condition: str) -> None:
    with pytest.raises(ConfigError, match="filter.condition"):
        made(f"{CONFLUENT}Filter$Value", filter_condition=condition, filter_type="include")
