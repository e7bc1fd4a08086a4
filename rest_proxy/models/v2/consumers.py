"""Bodies of consumer instances in API v2."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictInt, StrictStr

_MAX_ENTRIES = 10_000
_MAX_OFFSET = 2**63 - 2

Setting = StrictStr | StrictInt | StrictBool
"""A value may be JSON or a string: true and "true" are the same."""
Topic = Annotated[str, Field(min_length=1, max_length=249, description="The name of the topic.", examples=["orders"])]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1, description="The number of the partition.", examples=[0])]


def _example(document: JsonValue) -> ConfigDict:
    return ConfigDict(populate_by_name=True, json_schema_extra={"examples": [document]})


class V2CreateInstance(BaseModel):
    """The configuration of a consumer instance; every field may be left out."""

    model_config = _example(
        {"name": "reader-1", "format": "json", "auto.offset.reset": "earliest", "auto.commit.enable": "false"}
    )

    name: str | None = Field(default=None, description="The name in the group; by default a generated one.")
    id: str | None = Field(default=None, description="The same for older clients; takes precedence over `name`.")
    format: str | None = Field(
        default=None,
        description="The format of keys and values: binary (the default), json, avro, jsonschema, protobuf.",
    )
    auto_offset_reset: Setting | None = Field(
        default=None,
        alias="auto.offset.reset",
        description="Where to begin in partitions without a commit: latest (the default), earliest, or none, which is "
        "an error.",
    )
    auto_commit_enable: Setting | None = Field(
        default=None,
        alias="auto.commit.enable",
        description="Whether received records are committed with the client's next request (the default), or only when "
        "the client commits them.",
    )
    fetch_min_bytes: Setting | None = Field(
        default=None,
        alias="fetch.min.bytes",
        description="How many bytes of records a poll waits for; -1: until its time is up.",
    )
    response_min_bytes: Setting | None = Field(
        default=None,
        alias="responseMinBytes",
        description="The same for older clients.",
        json_schema_extra={"deprecated": True},
    )
    consumer_request_timeout_ms: Setting | None = Field(
        default=None,
        alias="consumer.request.timeout.ms",
        description="How long a poll waits for records unless it has its own time-out.",
    )
    request_wait_ms: Setting | None = Field(
        default=None,
        alias="requestWaitMs",
        description="The same for older clients.",
        json_schema_extra={"deprecated": True},
    )
    isolation_level: Setting | None = Field(
        default=None, alias="isolation.level", description="read_committed (the default) or read_uncommitted."
    )
    session_timeout_ms: Setting | None = Field(
        default=None,
        alias="session.timeout.ms",
        description="After how long without a heartbeat the group reassigns the partitions.",
    )
    heartbeat_interval_ms: Setting | None = Field(
        default=None, alias="heartbeat.interval.ms", description="How often the proxy sends heartbeats to the group."
    )
    metadata_refresh_ms: Setting | None = Field(
        default=None,
        alias="topic.metadata.refresh.interval.ms",
        description="How often to look for new topics and partitions.",
    )
    client_rack: Setting | None = Field(
        default=None, alias="client.rack", description="The rack of the client, to fetch from a replica nearby."
    )

    def library_properties(self) -> dict[str, str | int | bool]:
        """Properties for the client library, by its names."""
        properties = {
            "isolation.level": self.isolation_level,
            "session.timeout.ms": self.session_timeout_ms,
            "heartbeat.interval.ms": self.heartbeat_interval_ms,
            "topic.metadata.refresh.interval.ms": self.metadata_refresh_ms,
            "client.rack": self.client_rack,
        }
        return {key: value for key, value in properties.items() if value is not None}


class V2CreatedInstance(BaseModel):
    """A new consumer instance."""

    model_config = _example(
        {"instance_id": "reader-1", "base_uri": "http://localhost:8082/consumers/billing/instances/reader-1"}
    )

    instance_id: str = Field(description="The name in the group.")
    base_uri: str = Field(description="The base of its URLs.")


class V2Subscription(BaseModel):
    """Topics by name, or by a pattern that their whole names match."""

    model_config = _example({"topics": ["orders", "payments"]})

    topics: list[Topic] | None = Field(default=None, max_length=_MAX_ENTRIES, description="Names of topics.")
    topic_pattern: str | None = Field(
        default=None, max_length=1000, description="A regular expression in RE2 syntax.", examples=["orders-.*"]
    )


class V2SubscribedTopics(BaseModel):
    """The subscribed topics."""

    model_config = _example({"topics": ["orders", "payments"]})

    topics: list[str] = Field(description="Names of topics; for a pattern, those that match at the moment.")


class V2Partition(BaseModel):
    """A partition."""

    topic: Topic
    partition: PartitionNumber


class V2Partitions(BaseModel):
    """Partitions."""

    model_config = _example({"partitions": [{"topic": "orders", "partition": 0}]})

    partitions: list[V2Partition] = Field(max_length=_MAX_ENTRIES, description="The partitions.")


class V2Offset(V2Partition):
    """An offset in a partition."""

    offset: int = Field(ge=0, le=_MAX_OFFSET, description="The offset.", examples=[41])
    metadata: str | None = Field(default=None, max_length=4096, description="A note that is stored with the commit.")


def _assume_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class V2Timestamp(V2Partition):
    """A timestamp in a partition."""

    timestamp: Annotated[datetime, AfterValidator(_assume_utc)] = Field(
        description="A time in ISO 8601, or in seconds or milliseconds since 1970.", examples=["2026-01-01T00:00:00Z"]
    )


class V2Positions(BaseModel):
    """Positions to move to: offsets, or the first records at or after a timestamp."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 42}]})

    offsets: list[V2Offset] = Field(default=[], max_length=_MAX_ENTRIES, description="Positions by offset.")
    timestamps: list[V2Timestamp] = Field(default=[], max_length=_MAX_ENTRIES, description="Positions by timestamp.")


class V2Commits(BaseModel):
    """Offsets to commit."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 41}]})

    offsets: list[V2Offset] | None = Field(
        default=None,
        max_length=_MAX_ENTRIES,
        description="The last processed record of each partition: its offset plus one is committed. By default, "
        "everything that was received.",
    )


class V2CommittedOffset(BaseModel):
    """The group's commit for a partition."""

    topic: str = Field(description="The name of the topic.")
    partition: int = Field(description="The number of the partition.")
    offset: int = Field(description="The offset of the next record to read.")
    metadata: str = Field(description="The note that was committed with it.")


class V2CommittedOffsets(BaseModel):
    """The group's commits; partitions without one are left out."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 42, "metadata": ""}]})

    offsets: list[V2CommittedOffset] = Field(description="One for each partition.")


class V2ConsumedHeader(BaseModel):
    """A header of a record."""

    name: str = Field(description="The name.")
    value: str | None = Field(description="The bytes in base64, or null.")


class V2ConsumedRecord(BaseModel):
    """A record that was read."""

    model_config = _example(
        {
            "topic": "orders",
            "key": "a",
            "value": {"amount": 1},
            "partition": 0,
            "offset": 41,
            "timestamp": 1_767_225_600_000,
            "headers": [{"name": "source", "value": "c2hvcA=="}],
        }
    )

    topic: str = Field(description="The topic of the record.")
    key: JsonValue = Field(description="The key, in the format of the instance; null for none.")
    value: JsonValue = Field(description="The value, in the format of the instance; null for a tombstone.")
    partition: int = Field(description="The partition of the record.")
    offset: int = Field(description="The offset of the record.")
    timestamp: int | None = Field(
        default=None, description="The timestamp in milliseconds since 1970; left out with `api.v2.plain.records`."
    )
    headers: list[V2ConsumedHeader] | None = Field(
        default=None, description="The headers, in order; left out if there are none."
    )
