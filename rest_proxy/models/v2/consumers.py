"""Bodies of consumer instances in API v2."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictInt, StrictStr

_MAX_ENTRIES = 10_000
_MAX_OFFSET = 2**63 - 2

Setting = StrictStr | StrictInt | StrictBool
"""Values may be written as JSON or as text: true and "true" are the same."""
Topic = Annotated[str, Field(min_length=1, max_length=249, description="The name of the topic.", examples=["orders"])]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1, description="The number of the partition.", examples=[0])]


def _example(document: JsonValue) -> ConfigDict:
    return ConfigDict(populate_by_name=True, json_schema_extra={"examples": [document]})


class V2CreateInstance(BaseModel):
    """What a consumer instance shall be like; all of it may be left out."""

    model_config = _example(
        {"name": "reader-1", "format": "json", "auto.offset.reset": "earliest", "auto.commit.enable": "false"}
    )

    name: str | None = Field(default=None, description="Its name in the group; left out: one is made up.")
    id: str | None = Field(default=None, description="The same, as older clients say; it counts more than `name`.")
    format: str | None = Field(
        default=None, description="Of keys and values: binary (the default), json, avro, jsonschema, protobuf."
    )
    auto_offset_reset: Setting | None = Field(
        default=None,
        alias="auto.offset.reset",
        description="Where partitions begin for which the group has committed nothing: latest (the default), earliest, "
        "or none, which makes it an error.",
    )
    auto_commit_enable: Setting | None = Field(
        default=None,
        alias="auto.commit.enable",
        description="Whether what a poll has answered is committed when the client comes back (the default), or by "
        "the client alone.",
    )
    fetch_min_bytes: Setting | None = Field(
        default=None,
        alias="fetch.min.bytes",
        description="How many bytes of records a poll waits for; -1: until its time is over.",
    )
    response_min_bytes: Setting | None = Field(
        default=None,
        alias="responseMinBytes",
        description="The same, as older clients say.",
        json_schema_extra={"deprecated": True},
    )
    consumer_request_timeout_ms: Setting | None = Field(
        default=None,
        alias="consumer.request.timeout.ms",
        description="How long a poll waits for records that does not say so itself.",
    )
    request_wait_ms: Setting | None = Field(
        default=None,
        alias="requestWaitMs",
        description="The same, as older clients say.",
        json_schema_extra={"deprecated": True},
    )
    isolation_level: Setting | None = Field(
        default=None, alias="isolation.level", description="read_committed (the default) or read_uncommitted."
    )
    session_timeout_ms: Setting | None = Field(
        default=None,
        alias="session.timeout.ms",
        description="After how long without a sign of life of the proxy the group gives the partitions to others.",
    )
    heartbeat_interval_ms: Setting | None = Field(
        default=None, alias="heartbeat.interval.ms", description="How often the proxy gives the group a sign of life."
    )
    metadata_refresh_ms: Setting | None = Field(
        default=None,
        alias="topic.metadata.refresh.interval.ms",
        description="How often it is looked for new topics and partitions.",
    )
    client_rack: Setting | None = Field(
        default=None, alias="client.rack", description="Where the client is, to be read from a replica nearby."
    )

    def further(self) -> dict[str, str | int | bool]:
        """What is handed on to the client library, by its names."""
        named = {
            "isolation.level": self.isolation_level,
            "session.timeout.ms": self.session_timeout_ms,
            "heartbeat.interval.ms": self.heartbeat_interval_ms,
            "topic.metadata.refresh.interval.ms": self.metadata_refresh_ms,
            "client.rack": self.client_rack,
        }
        return {key: value for key, value in named.items() if value is not None}


class V2CreatedInstance(BaseModel):
    """A consumer instance, and where it is found."""

    model_config = _example(
        {
            "instance_id": "reader-1",
            "base_uri": "http://localhost:8082/consumers/billing/instances/reader-1",
        }
    )

    instance_id: str = Field(description="Its name in the group.")
    base_uri: str = Field(description="The beginning of the addresses of everything that is done with it.")


class V2Subscription(BaseModel):
    """Topics by name, or by a pattern that their whole names match."""

    model_config = _example({"topics": ["orders", "payments"]})

    topics: list[Topic] | None = Field(default=None, max_length=_MAX_ENTRIES, description="Names of topics.")
    topic_pattern: str | None = Field(
        default=None, max_length=1000, description="A regular expression, in RE2's words.", examples=["orders-.*"]
    )


class V2SubscribedTopics(BaseModel):
    """What is subscribed to."""

    model_config = _example({"topics": ["orders", "payments"]})

    topics: list[str] = Field(description="Names of topics; for a pattern those that match it now.")


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
    metadata: str | None = Field(default=None, max_length=4096, description="A note that is kept beside it.")


def _in_range(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class V2Timestamp(V2Partition):
    """A time in a partition."""

    timestamp: Annotated[datetime, AfterValidator(_in_range)] = Field(
        description="A time in ISO 8601, or in seconds or milliseconds since 1970.", examples=["2026-01-01T00:00:00Z"]
    )


class V2Positions(BaseModel):
    """Where to read on: at offsets, or at the first records with a time or a later one."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 42}]})

    offsets: list[V2Offset] = Field(default=[], max_length=_MAX_ENTRIES, description="Positions by offset.")
    timestamps: list[V2Timestamp] = Field(default=[], max_length=_MAX_ENTRIES, description="Positions by time.")


class V2Commits(BaseModel):
    """What to commit."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 41}]})

    offsets: list[V2Offset] | None = Field(
        default=None,
        max_length=_MAX_ENTRIES,
        description="The last records that are done with, by partition: their offset plus one is committed. Left out: "
        "everything that was answered.",
    )


class V2CommittedOffset(BaseModel):
    """What the group has committed for a partition."""

    topic: str = Field(description="The name of the topic.")
    partition: int = Field(description="The number of the partition.")
    offset: int = Field(description="The offset of the next record to read.")
    metadata: str = Field(description="The note that was committed with it.")


class V2CommittedOffsets(BaseModel):
    """What the group has committed; partitions without a commit are left out."""

    model_config = _example({"offsets": [{"topic": "orders", "partition": 0, "offset": 42, "metadata": ""}]})

    offsets: list[V2CommittedOffset] = Field(description="One for each partition.")


class V2ConsumedHeader(BaseModel):
    """A header of a record."""

    name: str = Field(description="Its name.")
    value: str | None = Field(description="Its bytes in base64, or null.")


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

    topic: str = Field(description="The topic it is in.")
    key: JsonValue = Field(description="In the format of the instance; null for none.")
    value: JsonValue = Field(description="In the format of the instance; null for a tombstone.")
    partition: int = Field(description="The partition it is in.")
    offset: int = Field(description="Its offset there.")
    timestamp: int | None = Field(
        default=None, description="Its time in milliseconds since 1970; left out with `api.v2.plain.records`."
    )
    headers: list[V2ConsumedHeader] | None = Field(
        default=None, description="Its headers, in their order; left out where there are none."
    )
