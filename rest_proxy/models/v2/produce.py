"""Bodies of produce requests in API v2, for the OpenAPI document only: requests are parsed without them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from rest_proxy.models.errors import ErrorBody


class V2RecordHeader(BaseModel):
    """A header of a record."""

    name: str = Field(description="The name; `key` is accepted as well.")
    value: str | None = Field(default=None, description="The bytes in base64, or null.")


class V2ProduceRecord(BaseModel):
    """A record to write."""

    key: Any = Field(default=None, description="The key, in the format of the media type; null for none.")
    value: Any = Field(default=None, description="The value, in the format of the media type; null for a tombstone.")
    partition: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="The partition; by default chosen by the key, or at random."
    )
    headers: list[V2RecordHeader] | None = Field(default=None, description="The headers, in order.")
    timestamp: int | str | None = Field(
        default=None,
        description="The timestamp, in milliseconds since 1970 or in ISO 8601; by default now.",
        examples=[1_767_225_600_000, "2026-01-01T00:00:00Z"],
    )


class V2ProduceRequest(BaseModel):
    """Records to write, with the schemas of their keys and values if the format has schemas."""

    records: list[V2ProduceRecord] = Field(min_length=1, description="The records.")
    key_schema: str | None = Field(default=None, description="The key schema as text; registered if it is new.")
    key_schema_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="The id of the key schema."
    )
    value_schema: str | None = Field(default=None, description="The value schema as text; registered if it is new.")
    value_schema_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="The id of the value schema."
    )


class V2PartitionOffset(BaseModel):
    """The outcome of one record."""

    partition: int | None = Field(description="The partition; null if the record was not written.")
    offset: int | None = Field(description="The offset; null if it was not written, -1 if it is not known (acks=0).")
    error_code: int | None = Field(
        description="1 if the record cannot be written, 2 if it may be retried, 40301 if it is not authorized."
    )
    error: str | None = Field(description="The error message.")


_WRITTEN: dict[str, JsonValue] = {"partition": 0, "offset": 42, "error_code": None, "error": None}
_BAD: dict[str, JsonValue] = {
    "partition": None,
    "offset": None,
    "error_code": 1,
    "error": "Record value contains invalid base64 encoding",
}


class V2ProduceResponse(BaseModel):
    """The outcomes of the records, in the order of the request."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"offsets": [_WRITTEN, _BAD], "key_schema_id": None, "value_schema_id": None}]}
    )

    offsets: list[V2PartitionOffset] = Field(description="One for each record.")
    key_schema_id: int | None = Field(description="The id of the key schema, if the request has one.")
    value_schema_id: int | None = Field(description="The id of the value schema, if the request has one.")


class V2ProduceError(ErrorBody):
    """Why none of the records was written."""

    offsets: list[V2PartitionOffset] | None = Field(
        default=None, description="The outcome of each record, if they were sent."
    )


_AVRO = '{"type":"record","name":"Payment","fields":[{"name":"amount","type":"int"}]}'
_JSON_SCHEMA = '{"type":"object","properties":{"amount":{"type":"integer"}}}'
_PROTOBUF = 'syntax = "proto3"; message Payment { int32 amount = 1; }'
_AMOUNT: list[JsonValue] = [{"value": {"amount": 1}}]
EXAMPLES: dict[str, JsonValue] = {
    "binary": {"records": [{"key": "a2V5", "value": "dmFsdWU="}, {"key": "a2V5", "value": None}]},
    "json": {
        "records": [
            {
                "key": "a",
                "value": {"amount": 1},
                "headers": [{"name": "source", "value": "c2hvcA=="}],
                "timestamp": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "avro": {"value_schema": _AVRO, "records": _AMOUNT},
    "jsonschema": {"value_schema": _JSON_SCHEMA, "records": _AMOUNT},
    "protobuf": {"value_schema": _PROTOBUF, "records": _AMOUNT},
}
"""A body in each format."""


class V2ProduceBinary(V2ProduceRequest):
    """Records to write, with keys and values in base64."""


class V2ProduceJson(V2ProduceRequest):
    """Records to write, with any JSON as keys and values."""


class V2ProduceAvro(V2ProduceRequest):
    """Records to write with an Avro schema, with keys and values in Avro's JSON encoding."""


class V2ProduceJsonSchema(V2ProduceRequest):
    """Records to write with a JSON Schema."""


class V2ProduceProtobuf(V2ProduceRequest):
    """Records to write with a Protobuf schema, with keys and values in Protobuf's JSON."""


BODIES: dict[str, type[V2ProduceRequest]] = {
    "binary": V2ProduceBinary,
    "json": V2ProduceJson,
    "avro": V2ProduceAvro,
    "jsonschema": V2ProduceJsonSchema,
    "protobuf": V2ProduceProtobuf,
}
"""Bodies by format: generated clients choose the media type by the class of the body."""
