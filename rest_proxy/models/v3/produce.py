"""Records of API v3: what is sent, and what is answered."""

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

    name: str = Field(description="Its name; several may have the same.", examples=["origin"])
    value: str | None = Field(default=None, description="Its bytes in base64, or null.", examples=["d2Vi"])


class RecordData(BaseModel):
    """A key or a value. By schema: with `type` and `schema`, or with one that the registry has, without `type`."""

    type: _TYPES | None = Field(
        default=None, description="The format; left out where the registry's schema tells it.", examples=["JSON"]
    )
    subject: str | None = Field(default=None, description="The schema's subject.", examples=["orders-value"])
    subject_name_strategy: Literal["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"] | None = Field(
        default=None, description="How the subject is named, instead of `subject`; TOPIC_NAME if neither is given."
    )
    schema_id: int | None = Field(default=None, ge=0, le=2**31 - 1, description="The schema by its id.")
    schema_version: int | Literal["latest"] | None = Field(
        default=None, description="The schema by its version; the latest if no schema is named at all."
    )
    schema_text: str | None = Field(
        default=None,
        alias="schema",
        description="The schema's text, registered if it is new. Needs `type`.",
        examples=['{"type":"string"}'],
    )
    data: Any = Field(
        default=None,
        description="BINARY: base64. STRING: a text. JSON: anything. By schema: what it describes. Null: no bytes.",
    )


class ProduceRecord(BaseModel):
    """A record to be written."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SENT]})

    partition_id: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="The partition; chosen by the key if it is not given."
    )
    timestamp: str | float | None = Field(
        default=None,
        description="The record's time, in ISO 8601 with a zone, or in seconds since 1970; now if it is not given.",
        examples=["2026-01-31T12:00:00Z"],
    )
    headers: list[RecordHeader] | None = Field(default=None, description="Headers, in their order.")
    key: RecordData | None = Field(default=None, description="The key; none if it is not given.")
    value: RecordData | None = Field(default=None, description="The value; none if it is not given.")


class ProduceBatchEntry(ProduceRecord):
    """A record of a batch."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "1", **_SENT}]})

    id: str = Field(pattern="^[0-9a-zA-Z_-]+$", min_length=1, max_length=80, description="Its name in the answer.")


class ProduceBatch(BaseModel):
    """Records to be written, each under a name of its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [{"id": "1", **_SENT}]}]})

    entries: list[ProduceBatchEntry] = Field(
        min_length=1, description="The records; at most `produce.batch.max.entries` of them."
    )


class WrittenData(BaseModel):
    """How a key or value was written."""

    type: _TYPES = Field(description="The format.")
    subject: str | None = Field(default=None, description="The subject of its schema.")
    schema_id: int | None = Field(default=None, description="The id of its schema.")
    schema_version: int | None = Field(default=None, description="The version of its schema in the subject.")
    size: int = Field(description="How many bytes it has in Kafka; -1 for null.")


class WrittenPlace(BaseModel):
    """Where a record went."""

    cluster_id: str = Field(description="The cluster.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    offset: int = Field(description="The offset in the partition; -1 when nobody told it (acks=0).")
    timestamp: str | None = Field(default=None, description="The record's time.")
    key: WrittenData | None = Field(default=None, description="How the key was written, if there is one.")
    value: WrittenData | None = Field(default=None, description="How the value was written, if there is one.")


class ProducedRecord(WrittenPlace):
    """What became of a record that was written."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error_code": 200, **_WRITTEN}]})

    error_code: Literal[200] = Field(description="200: the record was written.")


class RefusedRecord(BaseModel):
    """What became of a record that was not written."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 400, "message": "'fooba' is not base64: expected a string"}]}
    )

    error_code: int = Field(description="Why; its first three digits are an HTTP status other than 200.")
    message: str = Field(description="The same in words.")


class ProducedEntry(WrittenPlace):
    """What became of an entry that was written."""

    id: str = Field(description="The name of the entry.")


class RefusedEntry(RefusedRecord):
    """What became of an entry that was not written."""

    id: str = Field(description="The name of the entry.")


class ProducedBatch(BaseModel):
    """What became of a batch."""

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
    failures: list[RefusedEntry] = Field(description="Entries that were not.")
