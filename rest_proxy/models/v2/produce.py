"""Bodies of produce in API v2, for the OpenAPI document: requests are read without them, as bytes."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from rest_proxy.models.errors import ErrorBody


class V2RecordHeader(BaseModel):
    """A header of a record."""

    name: str = Field(description="Its name; `key` is understood as well.")
    value: str | None = Field(default=None, description="Its bytes in base64, or null.")


class V2ProduceRecord(BaseModel):
    """A record to be written."""

    key: Any = Field(default=None, description="In the format that the media type tells; null for none.")
    value: Any = Field(default=None, description="In the format that the media type tells; null for a tombstone.")
    partition: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Where it is written; left out: by its key, or anywhere."
    )
    headers: list[V2RecordHeader] | None = Field(default=None, description="Headers, in their order.")
    timestamp: int | str | None = Field(
        default=None,
        description="Its time, in milliseconds since 1970 or in ISO 8601; left out: now.",
        examples=[1_767_225_600_000, "2026-01-01T00:00:00Z"],
    )


class V2ProduceRequest(BaseModel):
    """Records to be written, with the schemas of their keys and values where the format has schemas."""

    records: list[V2ProduceRecord] = Field(min_length=1, description="The records.")
    key_schema: str | None = Field(default=None, description="Text of the keys' schema; registered if it is new.")
    key_schema_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Id of the keys' schema."
    )
    value_schema: str | None = Field(default=None, description="Text of the values' schema; registered if it is new.")
    value_schema_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Id of the values' schema."
    )


class V2PartitionOffset(BaseModel):
    """What became of one record."""

    partition: int | None = Field(description="Where it was written; null if it was not.")
    offset: int | None = Field(description="Its offset; null if it was not written, -1 if nobody knows it (acks=0).")
    error_code: int | None = Field(
        description="1 for a record that cannot be written, 2 if it may be tried again, 40301 if it is not allowed."
    )
    error: str | None = Field(description="The same in words.")


_WRITTEN: dict[str, JsonValue] = {"partition": 0, "offset": 42, "error_code": None, "error": None}
_BAD: dict[str, JsonValue] = {
    "partition": None,
    "offset": None,
    "error_code": 1,
    "error": "Record value contains invalid base64 encoding",
}


class V2ProduceResponse(BaseModel):
    """What became of the records, in the order of the request."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"offsets": [_WRITTEN, _BAD], "key_schema_id": None, "value_schema_id": None}]}
    )

    offsets: list[V2PartitionOffset] = Field(description="One for each record.")
    key_schema_id: int | None = Field(description="Id of the keys' schema, for a request that names one.")
    value_schema_id: int | None = Field(description="Id of the values' schema, for a request that names one.")


class V2ProduceError(ErrorBody):
    """Why none of the records was written."""

    offsets: list[V2PartitionOffset] | None = Field(
        default=None, description="What became of each record, if the request came so far."
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
    """Records to be written, their keys and values in base64."""


class V2ProduceJson(V2ProduceRequest):
    """Records to be written, their keys and values any JSON."""


class V2ProduceAvro(V2ProduceRequest):
    """Records to be written by an Avro schema, their keys and values in Avro's JSON."""


class V2ProduceJsonSchema(V2ProduceRequest):
    """Records to be written by a JSON Schema."""


class V2ProduceProtobuf(V2ProduceRequest):
    """Records to be written by a Protobuf schema, their keys and values in Protobuf's JSON."""


BODIES: dict[str, type[V2ProduceRequest]] = {
    "binary": V2ProduceBinary,
    "json": V2ProduceJson,
    "avro": V2ProduceAvro,
    "jsonschema": V2ProduceJsonSchema,
    "protobuf": V2ProduceProtobuf,
}
"""Bodies by format: clients that are made from the document choose the media type by their class."""
