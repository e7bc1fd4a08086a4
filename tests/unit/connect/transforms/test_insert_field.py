import datetime as dt

import pytest

from connect.api.data import (
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Schema,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, source, typed, value_of

ALL = {
    "topic_field": "topic_field!",
    "partition_field": "partition_field",
    "timestamp_field": "timestamp_field?",
    "static_field": "instance_id",
    "static_value": "my-instance-id",
}
MOMENT_MS = 1_790_000_000_123
MOMENT = dt.datetime(2026, 9, 21, 14, 13, 20, 123_000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "No field insertion configured"),
        ({"static_field": "a"}, "No value specified for static field: a"),
        ({"static_value": "a"}, "No field insertion configured"),
    ],
)
def test_something_must_be_inserted(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made("InsertField$Value", **options)


def test_place_time_and_text_are_inserted_into_structs() -> None:
    transform = made("InsertField$Value", **ALL, offset_field="offset_field!")
    schema = struct({"magic": OPTIONAL_INT64}, name="name", optional=True).but(version=1, doc="doc")
    new_schema, value = typed(transform, schema, {"magic": 42})
    expected = struct(
        {
            "magic": OPTIONAL_INT64,
            "topic_field": STRING,
            "partition_field": OPTIONAL_INT32,
            "offset_field": INT64,
            "timestamp_field": TIMESTAMP.as_optional(),
            "instance_id": OPTIONAL_STRING,
        },
        name="name",
    )
    assert new_schema == expected.but(version=1, doc="doc")
    assert value == {
        "magic": 42,
        "topic_field": "topic",
        "partition_field": 3,
        "offset_field": 42,
        "timestamp_field": MOMENT,
        "instance_id": "my-instance-id",
    }


def test_place_time_and_text_are_inserted_into_maps_where_time_is_a_number() -> None:
    assert value_of(made("InsertField$Value", **ALL), {"magic": 42}) == {
        "magic": 42,
        "topic_field": "topic",
        "partition_field": 3,
        "timestamp_field": MOMENT_MS,
        "instance_id": "my-instance-id",
    }


def test_what_a_record_does_not_have_is_left_out() -> None:
    record = changed(made("InsertField$Value", **ALL), source(None, {"magic": 42}))
    assert record.value == {"magic": 42, "topic_field": "topic", "instance_id": "my-instance-id"}
    with_schema = changed(made("InsertField$Value", **ALL), source(struct({"magic": INT32}), {"magic": 42}))
    assert with_schema.value == {"magic": 42, "topic_field": "topic", "instance_id": "my-instance-id"}


@pytest.mark.parametrize("schema", [None, struct({"a": INT32})])
def test_only_records_of_sinks_have_offsets(schema: Schema | None) -> None:
    with pytest.raises(DataError, match="Offset insertion is only supported for sink connectors"):
        made("InsertField$Value", offset_field="o").apply(source(schema, {"a": 1}))


@pytest.mark.parametrize("schema", [None, struct({"a": INT32}, optional=True)])
def test_tombstones_pass_as_they_are(schema: Schema | None) -> None:
    record = sink(schema, None, key={"a": 1})
    assert made("InsertField$Value", topic_field="t").apply(record) is record


def test_keys_of_tombstones_get_fields() -> None:
    record = changed(made("InsertField$Key", topic_field="t"), sink(None, None, key={"a": 1}))
    assert (record.key, record.value) == ({"a": 1, "t": "topic"}, None)


def test_keys_get_fields() -> None:
    record = changed(made("InsertField$Key", topic_field="t"), sink(None, 1, key_schema=struct({}), key={}))
    assert (record.key_schema, record.key, record.value) == (struct({"t": OPTIONAL_STRING}), {"t": "topic"}, 1)


def test_a_key_that_is_null_stays_null() -> None:
    record = sink(None, 1)
    assert made("InsertField$Key", topic_field="t").apply(record) is record


def test_a_field_that_is_there_already_cannot_be_added_to_a_schema_but_is_set_in_a_map() -> None:
    with pytest.raises(DataError, match="same name"):
        typed(made("InsertField$Value", topic_field="a"), struct({"a": INT32}), {"a": 1})
    assert value_of(made("InsertField$Value", topic_field="a"), {"a": 1}) == {"a": "topic"}


@pytest.mark.parametrize(("replaces", "expected"), [("true", 7), ("false", None)])
def test_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: int | None) -> None:
    transform = made("InsertField$Value", topic_field="t", replace_null_with_default=replaces)
    schema = struct({"a": OPTIONAL_INT32.but(default=7)})
    assert typed(transform, schema, {"a": None})[1] == {"a": expected, "t": "topic"}


def test_paths_insert_into_nested_structs_and_make_those_that_are_missing() -> None:
    transform = made("InsertField$Value", topic_field="a.t", partition_field="new.p", field_syntax_version="V2")
    value = {"a": {"x": 1}}
    assert typed(transform, struct({"a": struct({"x": INT32})}), value) == (
        struct(
            {
                "a": struct({"x": INT32, "t": OPTIONAL_STRING}),
                "new": struct({"p": OPTIONAL_INT32}, optional=True),
            }
        ),
        {"a": {"x": 1, "t": "topic"}, "new": {"p": 3}},
    )
    assert value == {"a": {"x": 1}}, "the record that came is not touched"
    assert value_of(transform, {"a": None}) == {"a": None, "new": {"p": 3}}
