"""Options of the source and the sink, and those that both have: how to connect to Redis."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    LOWER_CASE,
    PASSWORD,
    STRING,
    UPPER_CASE,
    Check,
    Config,
    Importance,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
)
from connect.api.places import Place, path, servers, url

_ENTRY_ID: Final = re.compile(r"\d{1,20}(-\d{1,20})?|\$")
_SCHEMES: Final = ("redis://", "rediss://", "unix://")
_COMMANDS: Final = {
    "SET": "STRING",
    "HSET": "HASH",
    "JSONSET": "JSON",
    "XADD": "STREAM",
    "RPUSH": "LIST",
    "LPUSH": "LPUSH",
    "SADD": "SET",
    "ZADD": "ZSET",
}
"""The types by the commands that write them, as in newer versions of the Redis connector (redis.command)."""
TYPES: Final = ("STREAM", "HASH", "STRING", "JSON", "LIST", "SET", "ZSET")


class RedisConfig(Config):
    """Options of both."""

    redis_uri: str = option(STRING, default="", importance=Importance.HIGH, group="Redis")
    """The URI of Redis: `redis://host:6379/0`, or `rediss://…` for TLS; not set: redis.host and redis.port are used."""
    redis_host: str = option(STRING, default="localhost", importance=Importance.HIGH, group="Redis")
    """The host of Redis, without redis.uri."""
    redis_port: int = option(INT, default=6379, check=between(1, 65_535), importance=Importance.HIGH, group="Redis")
    """The port of Redis, without redis.uri."""
    redis_database: int = option(INT, default=0, check=at_least(0), group="Redis")
    """The number of the database, without redis.uri."""
    redis_username: str = option(STRING, default="", group="Redis")
    """The user; not set: the URI's."""
    redis_password: str = option(PASSWORD, default="", group="Redis")
    """The password; not set: the URI's."""
    redis_tls: bool = option(BOOLEAN, default=False, group="Redis")
    """Whether the connection is encrypted."""
    redis_insecure: bool = option(BOOLEAN, default=False, group="Redis")
    """Whether any certificate of the server is accepted; for tests only."""
    redis_cacert: str = option(STRING, default="", group="Redis")
    """A file with trusted certificates (PEM)."""
    redis_key_cert: str = option(STRING, default="", group="Redis")
    """A file with the client's certificate (PEM)."""
    redis_key_file: str = option(STRING, default="", group="Redis")
    """A file with the key (PEM) of that certificate."""
    redis_key_password: str = option(PASSWORD, default="", group="Redis")
    """The password of that file."""
    redis_timeout: float = option(DOUBLE, default=60.0, check=between(0.01, 3600), group="Redis")
    """Seconds to wait for a reply before Redis is considered unreachable."""
    redis_cluster: bool = option(BOOLEAN, default=False, importance=Importance.LOW, group="Redis")
    """Must be false: clusters of Redis are not supported."""

    @override
    def places(self) -> Iterable[Place]:
        if self.redis_uri:
            yield from url("redis.uri", self.redis_uri)
            # The client takes options in the query, which may be files.
            for _, text in parse_qsl(urlsplit(self.redis_uri).query):
                yield from path("redis.uri", text if "/" in text else "")
        else:
            yield from servers("redis.host", f"{self.redis_host}:{self.redis_port}")
        yield from path("redis.cacert", self.redis_cacert)
        yield from path("redis.key.cert", self.redis_key_cert)
        yield from path("redis.key.file", self.redis_key_file)

    @override
    def problems(self) -> Iterable[Problem]:
        if self.redis_uri and not self.redis_uri.startswith(_SCHEMES):
            yield Problem.invalid("redis.uri", "[hidden]", f"must begin with {', '.join(_SCHEMES)}")
        if self.redis_cluster:
            yield Problem.invalid("redis.cluster", "true", "must be false, clusters of Redis are not supported")


class RedisSinkConfig(RedisConfig):
    """Options of the sink."""

    redis_type: str = option(
        UPPER_CASE, default="STREAM", check=one_of(*TYPES), importance=Importance.HIGH, group="Writes"
    )
    """The type that records are written as: STREAM, HASH, STRING, JSON, LIST, SET or ZSET."""
    redis_command: str = option(
        UPPER_CASE, default="", check=one_of("", *_COMMANDS), importance=Importance.LOW, group="Writes"
    )
    """The same by the command that writes it: XADD, HSET, SET, JSONSET, RPUSH, LPUSH, SADD or ZADD; takes precedence
    over redis.type."""
    redis_keyspace: str = option(STRING, default="${topic}", aliases=("redis.key",), group="Writes")
    """The prefix of keys, `${topic}` is the topic; streams, lists and sets have just this key. Empty: keys are the
    records' keys alone."""
    redis_separator: str = option(STRING, default=":", group="Writes")
    """The separator between redis.keyspace and the record's key."""
    redis_key_ttl: int = option(LONG, default=-1, check=at_least(-1), group="Writes")
    """Seconds after which a key expires; -1 or 0: never."""
    redis_stream_maxlen: int = option(LONG, default=0, check=at_least(0), group="Writes")
    """About the most entries of a stream; 0: no limit."""
    redis_multiexec: bool = option(BOOLEAN, default=False, group="Writes")
    """Whether each batch is one transaction (MULTI/EXEC): other clients see all of it or nothing."""
    redis_wait_replicas: int = option(INT, default=0, check=at_least(0), group="Writes")
    """How many replicas must have the records before offsets are committed."""
    redis_wait_timeout: int = option(LONG, default=1000, check=at_least(1), group="Writes")
    """Milliseconds to wait for those replicas."""
    redis_charset: str = option(STRING, default="utf-8", check=not_empty(), importance=Importance.LOW, group="Writes")
    """The encoding of text."""
    batch_size: int = option(INT, default=1000, check=between(1, 100_000), group="Writes")
    """Most records of one pipeline."""
    retry_backoff_ms: int = option(INT, default=1000, check=at_least(0), group="Writes")
    """The pause before the same records are written again in an outage."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not self.redis_keyspace and self.kind not in ("STRING", "HASH", "JSON"):
            yield Problem.invalid("redis.keyspace", '""', f"must be set with redis.type={self.kind}: it is the key")
        try:
            "".encode(self.redis_charset)
        except LookupError:
            yield Problem.invalid("redis.charset", self.redis_charset, "must be the name of an encoding, such as utf-8")

    @property
    def kind(self) -> str:
        """The type that records are written as; LPUSH is a LIST that grows at its head."""
        return _COMMANDS[self.redis_command] if self.redis_command else self.redis_type


class RedisStreamConfig(RedisConfig):
    """Options of the source."""

    redis_stream_name: str = option(STRING, check=not_empty(), importance=Importance.HIGH, group="Stream")
    """The stream to read."""
    topic: str = option(STRING, default="${stream}", check=not_empty(), group="Stream")
    """The topic of the records; `${stream}` is the stream."""
    redis_stream_offset: str = option(
        STRING,
        default="0-0",
        check=Check(accepts=lambda text: _ENTRY_ID.fullmatch(text) is not None, allowed="an entry's id, 0-0, or $"),
        group="Stream",
    )
    """The entry after which a new group begins; `$`: the last one."""
    redis_stream_consumer_group: str = option(STRING, default="kafka-consumer-group", check=not_empty(), group="Stream")
    """The group of all tasks; created, with the stream, when it is missing."""
    redis_stream_consumer_name: str = option(STRING, default="consumer-${task}", check=not_empty(), group="Stream")
    """The name of each task in the group, by which it continues after a crash; `${task}` is its number."""
    redis_stream_delivery: str = option(
        LOWER_CASE, default="at-least-once", check=one_of("at-least-once", "at-most-once"), group="Stream"
    )
    """at-least-once: an entry is acknowledged when it is safe in Kafka. at-most-once: when it is read."""
    redis_stream_block: int = option(LONG, default=100, check=between(1, 1000), group="Stream")
    """Milliseconds that a read waits for entries."""
    redis_stream_claim_idle_ms: int = option(LONG, default=60_000, check=at_least(0), group="Stream")
    """After how long entries that another consumer has read and not acknowledged are taken over; 0: never."""
    batch_size: int = option(INT, default=500, check=between(1, 100_000), group="Stream")
    """Most entries of one read."""
