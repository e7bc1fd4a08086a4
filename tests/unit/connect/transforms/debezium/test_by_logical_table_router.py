import pytest

from connect.api.data import INT32, STRING, Value, struct
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink

NAME = "io.debezium.transforms.ByLogicalTableRouter"
OPTIONS = {"topic_regex": r"(.*)customers_shard_(\d)(.*)", "topic_replacement": "$1customers_all_shards$3"}
KEY = struct({"id": INT32}, name="db.customers_shard_1.Key")
ROW = struct({"id": INT32}, name="db.customers_shard_1.Value", optional=True)
ENVELOPE = struct({"before": ROW, "after": ROW, "op": STRING}, name="db.customers_shard_1.Envelope")


def shard(value: Value = None) -> dict[str, Value]:
    return {"topic": "db.customers_shard_1", "key_schema": KEY, "key": {"id": 1}, "value": value}


def test_shards_go_into_one_topic_with_keys_that_tell_them_apart() -> None:
    record = changed(made(NAME, **OPTIONS), sink(ENVELOPE, **shard({"after": {"id": 1}, "op": "c"})))
    assert record.topic == "db.customers_all_shards"
    field = "__dbz__physicalTableIdentifier"
    assert record.key_schema == struct({"id": INT32, field: STRING}, name="db.customers_all_shards.Key")
    assert record.key == {"id": 1, field: "db.customers_shard_1"}
    row = ROW.but(name="db.customers_all_shards.Value")
    name = "db.customers_all_shards.Envelope"
    assert record.value_schema == struct({"before": row, "after": row, "op": STRING}, name=name)


def test_the_field_and_its_value_are_made_as_told() -> None:
    options = {"key_field_name": "shard", "key_field_regex": r".*shard_(\d)", "key_field_replacement": "s$1"}
    record = changed(made(NAME, **OPTIONS, **options), sink(None, **shard()))
    assert record.key == {"id": 1, "shard": "s1"}


def test_keys_that_are_unique_stay_as_they_are() -> None:
    record = changed(made(NAME, **OPTIONS, key_enforce_uniqueness="false"), sink(None, **shard()))
    assert (record.key, record.value_schema) == ({"id": 1}, None)


def test_records_without_key_and_of_other_topics() -> None:
    transform = made(NAME, **OPTIONS)
    other = sink(None, 1, topic="other")
    assert transform.apply(other) is other
    assert changed(transform, sink(None, 1, topic="db.customers_shard_2")).key is None
    empty = made(NAME, topic_regex="(x?).*", topic_replacement="$1")
    assert empty.apply(other) is other, "a topic without name is none"


def test_keys_without_fields_are_refused() -> None:
    with pytest.raises(DataError, match=r"\[Updating schema\]"):
        made(NAME, **OPTIONS).apply(sink(None, 1, topic="db.customers_shard_1", key="text"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"topic_regex": "(", "topic_replacement": "a"},
        {**OPTIONS, "key_field_regex": "a"},
        {**OPTIONS, "key_field_regex": "a", "key_field_replacement": "$1"},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made(NAME, **options)
