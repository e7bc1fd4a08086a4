"""The options of the source: those of Spark's Kafka source, with the same meaning, defaults and restrictions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from streams.errors import WrongOption
from streams.spark.topics.cluster import READ_COMMITTED, READ_UNCOMMITTED, Cluster
from streams.spark.topics.offsets import EARLIEST, LATEST, parse_assignment, parse_offsets
from streams.spark.topics.ranges import Offsets, TopicPartition

BOOTSTRAP: Final = "kafka.bootstrap.servers"
GROUP: Final = "kafka.group.id"
ISOLATION: Final = "kafka.isolation.level"
SUBSCRIPTIONS: Final = ("assign", "subscribe", "subscribePattern")
FORMATS: Final = ("none", "avro", "protobuf", "json_schema", "registry")
REGISTRY: Final = ("schema.", "basic.auth.", "bearer.auth.", "key.subject.", "value.subject.")
_KNOWN: Final = (
    *SUBSCRIPTIONS,
    *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
    *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition"),
    *("failOnDataLoss", "includeHeaders", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "decode", "decodeKey"),
    # Options of the sink, which may be set on both sides; and of Spark's source, for things that we do not have.
    *("topic", "checkpointLocation", "queryName", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
)
KNOWN: Final = {name.lower(): name for name in _KNOWN}
_REFUSED: Final = {
    "auto.offset.reset": "does not apply to queries, which keep their own offsets: use startingOffsets",
    "enable.auto.commit": "does not apply to queries, which keep their own offsets",
    "interceptor.classes": "is not supported: interceptors are Java classes",
    **dict.fromkeys(("key.deserializer", "value.deserializer"), "is not needed: key and value are bytes; use decode"),
    **dict.fromkeys(("key.serializer", "value.serializer"), "is not needed: key and value are bytes or text"),
}
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|min|h)?")
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, None: 1}
_LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read: given ones, or all of topics by name or by a pattern."""

    kind: Literal["assign", "subscribe", "subscribePattern"]
    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where reading begins or ends."""

    kind: Literal["earliest", "latest", "offsets", "timestamp", "timestamps"]
    key: str
    """The option that was used."""
    offsets: Offsets = field(default_factory=dict)
    """By partition: offsets (-2 earliest, -1 latest), or times in ms."""
    timestamp_ms: int = 0

    def is_at(self, kind: Literal["earliest", "latest"], offset: int) -> bool:
        """Whether any partition is read from or to this position."""
        return self.kind == kind or (self.kind == "offsets" and offset in self.offsets.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All options for reading topics."""

    cluster: Cluster
    subscription: Subscription
    starting: Boundary
    ending: Boundary
    starts_late_at_end: bool
    """Whether a time after the last record means the end; otherwise it is refused."""
    group_id: str | None
    max_offsets: int | None
    min_offsets: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int
    decode: str
    decode_key: str
    registry: Mapping[str, str]
    """Properties of the registry client and of deserializers, as given."""


def source_options(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """Parse a user's options; WrongOption says which is wrong, and what is allowed."""
    options = normalize_names(given)
    starting = _boundary(options, "starting", default="latest" if is_stream else "earliest")
    if not is_stream and starting.is_at("latest", LATEST):
        raise WrongOption(starting.key, options[starting.key], "a batch cannot start at the latest offsets (-1)")
    ending = _boundary(options, "ending", default="latest")
    if is_stream and ending.key in options:
        raise WrongOption(ending.key, options[ending.key], "is only for batches: a stream has no end")
    if ending.is_at("earliest", EARLIEST):
        raise WrongOption(ending.key, options[ending.key], "a batch cannot end at the earliest offsets (-2)")
    return SourceOptions(
        cluster=parse_cluster(options),
        subscription=_subscription(options),
        starting=starting,
        ending=ending,
        starts_late_at_end=_one_of(options, "startingOffsetsByTimestampStrategy", ("error", "latest")) == "latest",
        group_id=options.get(GROUP),
        max_offsets=_positive(options, "maxOffsetsPerTrigger"),
        min_offsets=_positive(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", "15m"),
        min_partitions=_positive(options, "minPartitions"),
        max_records_per_partition=_positive(options, "maxRecordsPerPartition"),
        fail_on_data_loss=_boolean(options, "failOnDataLoss", default=True),
        include_headers=_boolean(options, "includeHeaders", default=False),
        poll_timeout_ms=_positive(options, "kafkaConsumer.pollTimeoutMs") or 120_000,
        decode=_one_of(options, "decode", FORMATS),
        decode_key=_one_of(options, "decodeKey", FORMATS),
        registry={key: value for key, value in options.items() if key.startswith(REGISTRY)},
    )


def normalize_names(given: Mapping[str, str]) -> dict[str, str]:
    """The options under their proper names, whatever their case; WrongOption for unknown ones."""
    options = {}
    for key, value in given.items():
        name = key.lower()
        if name not in KNOWN and not name.startswith(("kafka.", *REGISTRY)):
            raise WrongOption(key, value, f"is unknown; options are {', '.join(sorted(_KNOWN))}, kafka.*, schema.*")
        options[KNOWN.get(name, name)] = value
    return options


def parse_cluster(options: Mapping[str, str]) -> Cluster:
    """The cluster that the `kafka.*` options describe."""
    servers = options.get(BOOTSTRAP, "").strip()
    if not servers:
        raise WrongOption(BOOTSTRAP, servers, "must be given: host:port, one or more, separated by commas")
    for key, reason in _REFUSED.items():
        if f"kafka.{key}" in options:
            raise WrongOption(f"kafka.{key}", options[f"kafka.{key}"], reason)
    isolation = options.get(ISOLATION, READ_COMMITTED).strip().lower()
    if isolation not in (READ_COMMITTED, READ_UNCOMMITTED):
        raise WrongOption(ISOLATION, options[ISOLATION], f"must be {READ_COMMITTED} or {READ_UNCOMMITTED}")
    own = (BOOTSTRAP, ISOLATION, GROUP)
    names = {key: value for key, value in options.items() if key.startswith("kafka.") and key not in own}
    try:
        properties = to_librdkafka((key.removeprefix("kafka."), value) for key, value in names.items())
    except PropertyRefused as error:
        raise WrongOption(f"kafka.{error.key}", options.get(f"kafka.{error.key}"), error.reason) from error
    return Cluster(servers, properties, isolation)


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [key for key in SUBSCRIPTIONS if key in options]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise WrongOption("subscribe", found, "exactly one of subscribe, subscribePattern and assign must be given")
    key, value = given[0], options[given[0]].strip()
    if key == "assign":
        return Subscription("assign", partitions=tuple(parse_assignment(key, value)))
    if key == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
        if not topics:
            raise WrongOption(key, value, "must name topics, separated by commas")
        return Subscription("subscribe", topics=topics)
    try:
        re.compile(value)
    except re.error as error:
        raise WrongOption(key, value, f"must be a regular expression: {error}") from error
    if not value:
        raise WrongOption(key, value, "must be a regular expression")
    return Subscription("subscribePattern", pattern=value)


def _boundary(options: Mapping[str, str], side: str, *, default: Literal["earliest", "latest"]) -> Boundary:
    """One time for all partitions takes precedence over times for each, and these over offsets."""
    timestamp, timestamps, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if timestamp in options:
        return Boundary("timestamp", timestamp, timestamp_ms=_at_least(options, timestamp, 0) or 0)
    if timestamps in options:
        times = parse_offsets(timestamps, options[timestamps])
        if min(times.values()) < 0:
            raise WrongOption(timestamps, options[timestamps], "times must be milliseconds, and not negative")
        return Boundary("timestamps", timestamps, offsets=times)
    value = options.get(offsets, default).strip()
    if value.lower() == "earliest":
        return Boundary("earliest", offsets)
    if value.lower() == "latest":
        return Boundary("latest", offsets)
    if not value.startswith("{"):
        raise WrongOption(offsets, value, 'must be earliest, latest, or JSON such as {"topicA": {"0": 23, "1": -1}}')
    chosen = parse_offsets(offsets, value)
    if min(chosen.values()) < EARLIEST:
        raise WrongOption(offsets, value, "offsets must be -2 (earliest), -1 (latest), or not negative")
    return Boundary("offsets", offsets, offsets=chosen)


def _boolean(options: Mapping[str, str], key: str, *, default: bool) -> bool:
    value = options.get(key, str(default)).strip().lower()
    if value not in ("true", "false"):
        raise WrongOption(key, options[key], "must be true or false")
    return value == "true"


def _positive(options: Mapping[str, str], key: str) -> int | None:
    return _at_least(options, key, 1)


def _at_least(options: Mapping[str, str], key: str, least: int) -> int | None:
    if key not in options:
        return None
    text = options[key].strip()
    if not re.fullmatch(r"[+-]?\d{1,19}", text) or not least <= int(text) <= _LONG_MAX:
        raise WrongOption(key, options[key], f"must be a whole number, at least {least}")
    return int(text)


def _one_of(options: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words; the first by default."""
    value = options.get(key, allowed[0]).strip().lower()
    if value not in allowed:
        raise WrongOption(key, options[key], f"must be one of {', '.join(allowed)}")
    return value


def _duration_ms(options: Mapping[str, str], key: str, default: str) -> int:
    found = _DURATION.fullmatch(options.get(key, default).strip().lower())
    if found is None:
        raise WrongOption(key, options[key], "must be a duration such as 500ms, 30s, 15m or 1h")
    return int(found[1]) * _UNITS[found[2]]
