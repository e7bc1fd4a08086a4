import pytest

from connect.api.data import (
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Value,
    struct,
)
from connect.api.errors import ConfigError
from connect.api.record import Header, Record
from tests.support.transforming import changed, made, sink

NAME = "io.debezium.transforms.ExtractNewRecordState"
ROW = struct({"id": INT32, "name": OPTIONAL_STRING.but(default="d")}, name="shop.orders.Value", optional=True)
SOURCE = struct({"lsn": INT64, "ts_ms": INT64, "table": OPTIONAL_STRING})
TRANSACTION = struct({"id": STRING, "total_order": INT64}, optional=True)
ENVELOPE = struct(
    {
        "before": ROW,
        "after": ROW,
        "source": SOURCE,
        "op": STRING,
        "ts_ms": OPTIONAL_INT64,
        "transaction": TRANSACTION,
    },
    name="shop.orders.Envelope",
)
PLAIN = struct({"id": INT32, "name": OPTIONAL_STRING.but(default="d")}, name="shop.orders.Value")
DELETED = struct(
    {"id": INT32, "name": OPTIONAL_STRING.but(default="d"), "__deleted": OPTIONAL_STRING}, name="shop.orders.Value"
)
OLD, NEW = {"id": 1, "name": "old"}, {"id": 1, "name": "new"}


def event(operation: str, before: Value, after: Value, **attributes: Value) -> Record:
    value = {
        "before": before,
        "after": after,
        "source": {"lsn": 7, "ts_ms": 99, "table": None},
        "op": operation,
        "ts_ms": 100,
        "transaction": None,
    }
    return sink(ENVELOPE, value, **attributes)


CREATE = event("c", None, NEW)
UPDATE = event("u", OLD, NEW)
DELETE = event("d", OLD, None)
TOMBSTONE = sink(None, None)
DROPPED = "dropped"


@pytest.mark.parametrize("record", [CREATE, UPDATE, event("r", None, NEW)])
def test_the_new_state_is_taken_out(record: Record) -> None:
    result = changed(made(NAME), record)
    assert (result.value_schema, result.value) == (PLAIN, NEW)


REWRITTEN = (DELETED, {**OLD, "__deleted": "true"})
NULL = (ROW, None)


@pytest.mark.parametrize(
    ("options", "deletion", "tombstone"),
    [
        ({}, NULL, DROPPED),
        ({"delete_tombstone_handling_mode": "tombstone"}, NULL, DROPPED),
        ({"delete_tombstone_handling_mode": "drop"}, DROPPED, DROPPED),
        ({"delete_tombstone_handling_mode": "rewrite"}, REWRITTEN, DROPPED),
        ({"delete_tombstone_handling_mode": "REWRITE-with-tombstone"}, REWRITTEN, "kept"),
        ({"delete_tombstone_handling_mode": "delete-to-tombstone"}, (None, None), DROPPED),
        ({"drop_tombstones": "true"}, DROPPED, DROPPED),
        ({"drop_tombstones": "false"}, DROPPED, "kept"),
        ({"delete_handling_mode": "none"}, NULL, DROPPED),
        ({"delete_handling_mode": "rewrite", "drop_tombstones": "false"}, REWRITTEN, "kept"),
        ({"delete_handling_mode": "drop"}, DROPPED, DROPPED),
        ({"delete_handling_mode": "drop", "delete_tombstone_handling_mode": "tombstone"}, NULL, DROPPED),
    ],
)
def test_deletions_and_tombstones_are_handled_as_told(
    options: dict[str, str], deletion: tuple[Schema | None, Value] | str, tombstone: str
) -> None:
    transform = made(NAME, **options)
    result = transform.apply(DELETE)
    assert (DROPPED if result is None else (result.value_schema, result.value)) == deletion
    assert (DROPPED if transform.apply(TOMBSTONE) is None else "kept") == tombstone


def test_rewriting_tells_of_other_records_that_they_are_not_deleted() -> None:
    result = changed(made(NAME, delete_tombstone_handling_mode="rewrite"), UPDATE)
    assert (result.value_schema, result.value) == (DELETED, {**NEW, "__deleted": "false"})


def test_a_deletion_whose_last_state_nobody_knows_has_no_value() -> None:
    for mode in ("rewrite", "tombstone"):
        result = changed(made(NAME, delete_tombstone_handling_mode=mode), event("d", None, None))
        assert result.value is None


@pytest.mark.parametrize("record", [event("t", None, None), event("c", None, None)])
def test_truncations_are_dropped(record: Record) -> None:
    assert made(NAME, delete_tombstone_handling_mode="rewrite").apply(record) is None


@pytest.mark.parametrize(
    "record",
    [sink(struct({"a": INT32}, name="heartbeat"), {"a": 1}), sink(STRING, "x"), sink(None, {"a": 1}), sink(None, 1)],
)
def test_other_records_pass(record: Record) -> None:
    assert made(NAME).apply(record) is record


def test_fields_of_the_envelope_are_added() -> None:
    transform = made(NAME, add_fields="op,source.ts_ms,lsn,table:from,transaction.id,no_such,ts_ms")
    result = changed(transform, CREATE)
    assert result.value_schema == PLAIN.but(
        fields=(
            *PLAIN.fields,
            *struct(
                {
                    "__op": OPTIONAL_STRING,
                    "__source_ts_ms": OPTIONAL_INT64,
                    "__lsn": OPTIONAL_INT64,
                    "__from": OPTIONAL_STRING,
                    "__transaction_id": OPTIONAL_STRING,
                    "__ts_ms": OPTIONAL_INT64,
                }
            ).fields,
        )
    )
    assert result.value == {
        **NEW,
        "__op": "c",
        "__source_ts_ms": 99,
        "__lsn": 7,
        "__from": None,
        "__transaction_id": None,
        "__ts_ms": 100,
    }


def test_fields_are_added_to_what_was_deleted_too() -> None:
    transform = made(NAME, delete_tombstone_handling_mode="rewrite", add_fields="op", add_fields_prefix="cdc.")
    assert changed(transform, DELETE).value == {**OLD, "__deleted": "true", "cdc.op": "d"}


def test_fields_of_the_envelope_become_headers() -> None:
    transform = made(NAME, add_headers="op,source.lsn:position", add_headers_prefix="h_")
    result = changed(transform, event("c", None, NEW, headers=(Header("old", 1),)))
    assert result.headers == (
        Header("old", 1),
        Header("h_op", "c", OPTIONAL_STRING),
        Header("h_position", 7, OPTIONAL_INT64),
    )


def test_a_tombstone_that_is_kept_is_told_to_be_a_deletion() -> None:
    transform = made(NAME, delete_tombstone_handling_mode="rewrite-with-tombstone", add_headers="op,source.lsn")
    assert changed(transform, TOMBSTONE).headers == (Header("__op", "d", STRING),)


@pytest.mark.parametrize(
    ("record", "topic"), [(UPDATE, "new"), (DELETE, "old"), (event("c", None, {"id": 1}), "topic")]
)
def test_a_field_tells_the_topic(record: Record, topic: str) -> None:
    assert changed(made(NAME, route_by_field="name"), record).topic == topic


@pytest.mark.parametrize(("replaces", "expected"), [("true", "d"), ("false", None)])
def test_when_rewriting_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: str | None) -> None:
    transform = made(NAME, delete_tombstone_handling_mode="rewrite", replace_null_with_default=replaces)
    assert changed(transform, event("c", None, {"id": 1, "name": None})).value["name"] == expected


@pytest.mark.parametrize(
    ("options", "names", "key", "value"),
    [
        ({}, ["name", "id"], {"id": 1}, {"id": 1}),
        ({"drop_fields_keep_schema_compatible": "false"}, ["name", "id"], {"id": 1}, {}),
        ({"drop_fields_keep_schema_compatible": "false", "drop_fields_from_key": "true"}, ["id"], {}, {"name": "new"}),
        ({}, None, {"id": 1}, NEW),
        ({}, [], {"id": 1}, NEW),
    ],
)
def test_fields_that_a_header_names_are_taken_away(
    options: dict[str, str], names: list[str] | None, key: Value, value: Value
) -> None:
    transform = made(NAME, drop_fields_header_name="unchanged", **options)
    headers = () if names is None else (Header("unchanged", names),)
    keys = {"key_schema": struct({"id": INT32}), "key": {"id": 1}}
    record = changed(transform, event("u", OLD, NEW, headers=headers, **keys))
    assert (record.key, record.value) == (key, value)
    assert record.value_schema is not None
    assert set(record.value_schema.by_name) == set(value)
    without = changed(transform, sink(None, UPDATE.value, headers=headers))
    assert set(without.value) == {"id", "name"} - set(names or ())


def test_envelopes_without_schema_are_taken_apart_too() -> None:
    transform = made(NAME, delete_tombstone_handling_mode="rewrite", add_fields="op", add_headers="source.lsn")
    result = changed(transform, sink(None, CREATE.value))
    assert (result.value_schema, result.value) == (None, {**NEW, "__deleted": "false", "__op": "c"})
    assert result.headers == (Header("__source_lsn", 7),)
    deleted = changed(made(NAME), sink(None, DELETE.value))
    assert (deleted.value_schema, deleted.value) == (None, None)


def test_documents_in_text_stay_text() -> None:
    envelope = struct({"after": OPTIONAL_STRING, "op": STRING, "source": SOURCE}, name="mongo.Envelope")
    result = changed(made(NAME, delete_tombstone_handling_mode="rewrite"), sink(envelope, {"after": "{}", "op": "c"}))
    assert (result.value_schema, result.value) == (OPTIONAL_STRING, "{}")


@pytest.mark.parametrize(
    "options", [{"delete_tombstone_handling_mode": "no"}, {"delete_handling_mode": "no"}, {"add_fields": "a:b:c"}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made(NAME, **options)
