"""Bodies of produce requests and responses in API v3."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_TYPES = Literal["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"]
_SENT: dict[str, Any] = {
    "headers": [{"name": "origin", "value": "d2Vi"}],
    "key": {"type": "STRING", "data": "order-17"},
    "value": {"type": "JSON", "data": {"amount": 3, "currency": "EUR"}},
}
_WRITTEN: dict[str, Any] = {
    "cluster_id": "c-1",
    "topic_name": "orders",
    "partition_id": 0,
    "offset": 42,
    "timestamp": "2026-01-31T12:00:00.123Z",
    "key": {"type": "STRING", "size": 8},
    "value": {"type": "JSON", "size": 29},
}


class RecordHeader(BaseModel):
    """One header of a record."""

    name: str = Field(description="The name; it need not be unique.", examples=["origin"])
    value: str | None = Field(default=None, description="The bytes in base64, or null.", examples=["d2Vi"])


class RecordData(BaseModel):
    """A key or a value. With a schema: either `type` and `schema`, or one from the registry, without `type`."""

    type: _TYPES | None = Field(
        default=None, description="The format; left out with a schema from the registry.", examples=["JSON"]
    )
    subject: str | None = Field(default=None, description="The subject of the schema.", examples=["orders-value"])
    subject_name_strategy: Literal["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"] | None = Field(
        default=None, description="How the subject is named, instead of `subject`; TOPIC_NAME by default."
    )
    schema_id: int | None = Field(default=None, ge=0, le=2**31 - 1, description="The schema by its id.")
    schema_version: int | Literal["latest"] | None = Field(
        default=None, description="The schema by its version; the latest one if no schema is given at all."
    )
    schema_text: str | None = Field(
        default=None,
        alias="schema",
        description="The schema as text, registered if it is new. Needs `type`.",
        examples=['{"type":"string"}'],
    )
    data: Any = Field(
        default=None,
        description="BINARY: base64. STRING: a string. JSON: anything. With a schema: data that matches it. Or null.",
    )


class ProduceRecord(BaseModel):
    """A record to write."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SENT]})

    partition_id: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="The partition; by default chosen by the key."
    )
    timestamp: str | float | None = Field(
        default=None,
        description="The timestamp, in ISO 8601 with a zone, or in seconds since 1970; by default now.",
        examples=["2026-01-31T12:00:00Z"],
    )
    headers: list[RecordHeader] | None = Field(default=None, description="The headers, in order.")
    key: RecordData | None = Field(default=None, description="The key; by default none.")
    value: RecordData | None = Field(default=None, description="The value; by default none.")


class ProduceBatchEntry(ProduceRecord):
    """A record of a batch."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "1", **_SENT}]})

    id: str = Field(pattern="^[0-9a-zA-Z_-]+$", min_length=1, max_length=80, description="Its id in the response.")


class ProduceBatch(BaseModel):
    """Records to write, each with an id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [{"id": "1", **_SENT}]}]})

    entries: list[ProduceBatchEntry] = Field(
        min_length=1, description="The records; at most `produce.batch.max.entries` of them."
    )


class WrittenData(BaseModel):
    """How a key or value was encoded."""

    type: _TYPES = Field(description="The format.")
    subject: str | None = Field(default=None, description="The subject of the schema.")
    schema_id: int | None = Field(default=None, description="The id of the schema.")
    schema_version: int | None = Field(default=None, description="The version of the schema in the subject.")
    size: int = Field(description="The size in bytes; -1 for null.")


class RecordLocation(BaseModel):
    """Where a record was written."""

    cluster_id: str = Field(description="The cluster.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    offset: int = Field(description="The offset in the partition; -1 if it is not known (acks=0).")
    timestamp: str | None = Field(default=None, description="The timestamp of the record.")
    key: WrittenData | None = Field(default=None, description="How the key was encoded, if there is one.")
    value: WrittenData | None = Field(default=None, description="How the value was encoded, if there is one.")


class ProducedRecord(RecordLocation):
    """The result of a record that was written."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error_code": 200, **_WRITTEN}]})

    error_code: Literal[200] = Field(description="200: the record was written.")


class RefusedRecord(BaseModel):
    """The result of a record that was not written."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 400, "message": "'fooba' is not base64: expected a string"}]}
    )

    error_code: int = Field(description="The error code; its first three digits are an HTTP status other than 200.")
    message: str = Field(description="The error message.")


class ProducedEntry(RecordLocation):
    """The result of an entry that was written."""

    id: str = Field(description="The id of the entry.")


class RefusedEntry(RefusedRecord):
    """The result of an entry that was not written."""

    id: str = Field(description="The id of the entry.")


class ProducedBatch(BaseModel):
    """The results of a batch."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "successes": [{"id": "1", **_WRITTEN}],
                    "failures": [{"id": "2", "error_code": 400, "message": "'fooba' is not base64"}],
                }
            ]
        }
    )

    successes: list[ProducedEntry] = Field(description="Entries that were written.")
    failures: list[RefusedEntry] = Field(description="Entries that were not written.")
