"""The commands that write a record to Redis: one function for each type."""

from collections.abc import Callable, Iterable
from typing import Final

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.json_text import json_bytes
from connect.api.record import SinkRecord
from connect.api.values import text_of
from connectors.redis.config import RedisSinkConfig

Part = str | bytes | int
Command = tuple[Part, ...]
Writer = Callable[[SinkRecord], list[Command]]

_BYTES: Final = (bytes, bytearray, memoryview)


def writer_of(config: RedisSinkConfig) -> Writer:
    """The function that returns the commands for a record; it raises DataError."""
    commands = _Commands(config)
    writers: dict[str, Writer] = {
        "STRING": commands.for_string,
        "HASH": commands.for_hash,
        "JSON": commands.for_json,
        "STREAM": commands.for_stream,
        "LIST": commands.for_list,
        "LPUSH": commands.for_list,
        "SET": commands.for_set,
        "ZSET": commands.for_sorted_set,
    }
    return writers[config.kind]


def text(schema: Schema | None, value: Value) -> str | bytes:
    """A value on its own: text and bytes unchanged, nested values as JSON, anything else as Java writes it."""
    kind = type(value)
    if kind is str or kind is bytes:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return str(value)
    if isinstance(value, dict | list | tuple):
        return json_bytes(schema, value)
    if isinstance(value, _BYTES):
        return bytes(value)
    return text_of(schema, value)


class _Commands:
    """The commands for each type."""

    def __init__(self, config: RedisSinkConfig) -> None:
        self._keyspace = config.redis_keyspace
        self._separator = config.redis_separator
        self._charset = config.redis_charset
        self._ttl = max(config.redis_key_ttl, 0)
        self._maxlen = config.redis_stream_maxlen
        self._push = "LPUSH" if config.kind == "LPUSH" else "RPUSH"
        self._prefixes: dict[str, str] = {}

    # --- types with a key for each record ---

    def for_string(self, record: SinkRecord) -> list[Command]:
        key = self._key(record)
        if record.value is None:
            return [("DEL", key)]
        written: Command = ("SET", key, text(record.value_schema, record.value))
        return [(*written, "EX", self._ttl)] if self._ttl else [written]

    def for_hash(self, record: SinkRecord) -> list[Command]:
        key = self._key(record)
        if record.value is None:
            return [("DEL", key)]
        parts: list[Part] = ["HSET", key]
        deleted: list[Part] = []
        for name, schema, item in _fields(record):
            if item is None:
                deleted.append(name)
            else:
                parts += (name, text(schema, item))
        if len(parts) == 2 and not deleted:
            raise DataError("a hash needs at least one field, but the value has none")
        commands = [tuple(parts)] if len(parts) > 2 else []
        if deleted:
            commands.append(("HDEL", key, *deleted))
        return self._with_ttl(key, commands)

    def for_json(self, record: SinkRecord) -> list[Command]:
        key = self._key(record)
        if record.value is None:
            return [("DEL", key)]
        value = record.value
        # Text is JSON already, as it comes from StringConverter.
        document = value if isinstance(value, str | bytes) else json_bytes(record.value_schema, value)
        return self._with_ttl(key, [("JSON.SET", key, "$", document)])

    # --- types that hold many records ---

    def for_stream(self, record: SinkRecord) -> list[Command]:
        if record.value is None:
            raise DataError("a stream cannot hold a record without a value")
        key = self._collection(record)
        parts: list[Part] = ["XADD", key]
        if self._maxlen:
            parts += ("MAXLEN", "~", self._maxlen)
        parts.append("*")
        start = len(parts)
        if isinstance(record.value, dict):
            for name, schema, item in _fields(record):
                if item is not None:
                    parts += (name, text(schema, item))
        else:
            parts += ("value", text(record.value_schema, record.value))
        if len(parts) == start:
            raise DataError("an entry of a stream needs at least one field, but the value has none")
        return self._with_ttl(key, [tuple(parts)])

    def for_list(self, record: SinkRecord) -> list[Command]:
        key, member = self._collection(record), _member(record)
        if record.value is None:
            return [("LREM", key, 0, member)]
        return self._with_ttl(key, [(self._push, key, member)])

    def for_set(self, record: SinkRecord) -> list[Command]:
        key, member = self._collection(record), _member(record)
        if record.value is None:
            return [("SREM", key, member)]
        return self._with_ttl(key, [("SADD", key, member)])

    def for_sorted_set(self, record: SinkRecord) -> list[Command]:
        if record.key is None:
            raise DataError("the record has no key, which would be the member of a sorted set")
        key, member = self._collection(record), _member(record)
        if record.value is None:
            return [("ZREM", key, member)]
        return self._with_ttl(key, [("ZADD", key, _score(record.value), member)])

    # --- keys ---

    def _key(self, record: SinkRecord) -> str | bytes:
        if record.key is None:
            raise DataError("the record has no key, which would be its key in Redis")
        prefix = self._prefixes.get(record.topic)
        if prefix is None:
            space = self._keyspace.replace("${topic}", record.topic)
            prefix = self._prefixes[record.topic] = f"{space}{self._separator}" if space else ""
        own = text_of_key(record)
        return prefix + own if isinstance(own, str) else prefix.encode(self._charset) + own

    def _collection(self, record: SinkRecord) -> str:
        return self._keyspace.replace("${topic}", record.topic)

    def _with_ttl(self, key: Part, commands: list[Command]) -> list[Command]:
        return [*commands, ("EXPIRE", key, self._ttl)] if self._ttl else commands


def text_of_key(record: SinkRecord) -> str | bytes:
    """The record's key as part of a key in Redis: `Struct{id=1}` for a struct, as in Kafka Connect."""
    return bytes(record.key) if isinstance(record.key, _BYTES) else text_of(record.key_schema, record.key)


def _fields(record: SinkRecord) -> Iterable[tuple[str, Schema | None, Value]]:
    value, schema = record.value, record.value_schema
    if not isinstance(value, dict):
        raise DataError(f"the value must have fields, but is {type(value).__name__}")
    if schema is not None and schema.type is Type.STRUCT:
        return [(field.name, field.schema, value.get(field.name)) for field in schema.fields]
    inner = schema.value_schema if schema else None
    return [(name if type(name) is str else text_of(None, name), inner, item) for name, item in value.items()]


def _member(record: SinkRecord) -> str | bytes:
    """The record's key, as in Kafka Connect's connector; its value when it has no key."""
    if record.key is not None:
        return text_of_key(record)
    if record.value is None:
        raise DataError("the record has neither key nor value to add or to remove")
    return text(record.value_schema, record.value)


def _score(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"the value is the score in a sorted set: it must be a number, not {type(value).__name__}")
    if value != value:
        raise DataError("the value is the score in a sorted set: it must not be NaN")
    return repr(value)
