"""What a record is in Redis."""

from datetime import UTC, datetime

import pytest

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, DataError
from connect.testing.samples import sink_record
from connectors.redis.commands import Command, writer_of
from connectors.redis.config import RedisSinkConfig

ORDER = data.struct({"id": data.INT64, "name": data.OPTIONAL_STRING, "paid": data.BOOLEAN}, name="Order")
NESTED = data.struct({"at": data.TIMESTAMP, "parts": data.array(data.INT32)})
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def commands(
    config: dict[str, str],
    *,
    value: Value,
    key: Value = "k",
    schema: Schema | None = None,
    key_schema: Schema | None = None,
) -> list[Command]:
    record = sink_record("orders", 0, key=key, key_schema=key_schema, value=value, value_schema=schema)
    return writer_of(RedisSinkConfig.parse(config))(record)


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("STRING", "x", [("SET", "orders:k", "x")]),
        ("STRING", b"\x00", [("SET", "orders:k", b"\x00")]),
        ("STRING", 5, [("SET", "orders:k", "5")]),
        ("STRING", 1.5, [("SET", "orders:k", "1.5")]),
        ("STRING", True, [("SET", "orders:k", "true")]),
        ("STRING", {"a": 1}, [("SET", "orders:k", b'{"a":1}')]),
        ("STRING", None, [("DEL", "orders:k")]),
        ("HASH", {"a": 1, "b": "x"}, [("HSET", "orders:k", "a", "1", "b", "x")]),
        ("HASH", {"a": 1, "b": None}, [("HSET", "orders:k", "a", "1"), ("HDEL", "orders:k", "b")]),
        ("HASH", {"b": None}, [("HDEL", "orders:k", "b")]),
        ("HASH", {1: {"x": [1]}}, [("HSET", "orders:k", "1", b'{"x":[1]}')]),
        ("HASH", None, [("DEL", "orders:k")]),
        ("JSON", {"a": 1}, [("JSON.SET", "orders:k", "$", b'{"a":1}')]),
        ("JSON", '{"a": 1}', [("JSON.SET", "orders:k", "$", '{"a": 1}')]),
        ("JSON", None, [("DEL", "orders:k")]),
        ("STREAM", {"a": 1, "b": None}, [("XADD", "orders", "*", "a", "1")]),
        ("STREAM", "x", [("XADD", "orders", "*", "value", "x")]),
        ("LIST", {"a": 1}, [("RPUSH", "orders", "k")]),
        ("LIST", None, [("LREM", "orders", 0, "k")]),
        ("SET", "x", [("SADD", "orders", "k")]),
        ("SET", None, [("SREM", "orders", "k")]),
        ("ZSET", 3, [("ZADD", "orders", "3", "k")]),
        ("ZSET", 1.5, [("ZADD", "orders", "1.5", "k")]),
        ("ZSET", None, [("ZREM", "orders", "k")]),
    ],
)
def test_each_type_has_its_command(kind: str, value: Value, written: list[Command]) -> None:
    assert commands({"redis.type": kind}, value=value) == written


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("STRING", None, "x"),
        ("HASH", None, {"a": 1}),
        ("HASH", "k", "x"),
        ("HASH", "k", {}),
        ("JSON", None, {}),
        ("STREAM", "k", None),
        ("STREAM", "k", {}),
        ("STREAM", "k", {"a": None}),
        ("SET", None, None),
        ("ZSET", None, 1),
        ("ZSET", "k", "x"),
        ("ZSET", "k", True),
        ("ZSET", "k", float("nan")),
    ],
)
def test_what_has_no_place_in_redis_is_bad_data(kind: str, key: Value, value: Value) -> None:
    with pytest.raises(DataError):
        commands({"redis.type": kind}, key=key, value=value)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("XADD", "XADD"),
        ("hset", "HSET"),
        ("SET", "SET"),
        ("JSONSET", "JSON.SET"),
        ("LPUSH", "LPUSH"),
        ("RPUSH", "RPUSH"),
        ("SADD", "SADD"),
    ],
)
def test_the_type_may_be_told_as_a_command(command: str, written: str) -> None:
    assert commands({"redis.command": command}, value={"a": 1})[0][0] == written


def test_fields_are_those_of_the_schema_and_what_is_missing_is_removed() -> None:
    value = {"id": 7, "paid": False}
    written = commands({"redis.type": "HASH"}, value=value, schema=ORDER)
    assert written == [("HSET", "orders:k", "id", "7", "paid", "false"), ("HDEL", "orders:k", "name")]


def test_nested_values_are_json_and_moments_are_text() -> None:
    written = commands({"redis.type": "HASH"}, value={"at": NOON, "parts": [1, 2]}, schema=NESTED)
    assert written == [("HSET", "orders:k", "at", "2024-02-29T12:00:00.000Z", "parts", b"[1,2]")]


@pytest.mark.parametrize(
    ("config", "key", "found"),
    [
        ({}, "k", "orders:k"),
        ({}, 7, "orders:7"),
        ({}, b"\xff", b"orders:\xff"),
        ({"redis.keyspace": "x_${topic}", "redis.separator": "/"}, "k", "x_orders/k"),
        ({"redis.key": "", "redis.separator": "/"}, "k", "k"),
        ({"redis.keyspace": ""}, b"\x00", b"\x00"),
    ],
)
def test_keys_are_made_of_keyspace_separator_and_key(config: dict[str, str], key: Value, found: str | bytes) -> None:
    assert commands({"redis.type": "STRING", **config}, key=key, value="x") == [("SET", found, "x")]


def test_a_struct_as_key_is_written_as_kafka_connect_does() -> None:
    schema = data.struct({"id": data.INT32})
    written = commands({"redis.type": "STRING"}, key={"id": 1}, key_schema=schema, value="x")
    assert written == [("SET", "orders:Struct{id=1}", "x")]


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("STRING", [("SET", "orders:k", "1", "EX", 60)]),
        ("STREAM", [("XADD", "orders", "*", "value", "1"), ("EXPIRE", "orders", 60)]),
        ("ZSET", [("ZADD", "orders", "1", "k"), ("EXPIRE", "orders", 60)]),
    ],
)
def test_keys_live_as_long_as_they_are_told(kind: str, written: list[Command]) -> None:
    assert commands({"redis.type": kind, "redis.key.ttl": "60"}, value=1) == written


def test_a_stream_is_kept_short() -> None:
    written = commands({"redis.type": "STREAM", "redis.stream.maxlen": "10"}, value="x")
    assert written == [("XADD", "orders", "MAXLEN", "~", 10, "*", "value", "x")]


def test_a_record_without_key_is_a_member_by_its_value() -> None:
    assert commands({"redis.type": "SET"}, key=None, value="x") == [("SADD", "orders", "x")]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"redis.type": "TIMESERIES"}, "redis.type"),
        ({"redis.type": "SET", "redis.keyspace": ""}, "redis.keyspace"),
        ({"redis.charset": "klingon"}, "redis.charset"),
        ({"redis.cluster": "true"}, "redis.cluster"),
        ({"redis.uri": "http://x"}, "redis.uri"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(config: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        RedisSinkConfig.parse(config)
