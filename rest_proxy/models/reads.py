"""Records in pages and streams, read without a consumer instance; for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_TIME = "Milliseconds since 1970."
_TIME_TYPE = "Whether the producer (CreateTime) or the broker (LogAppendTime) set the timestamp."
_ERROR = "Only if the record cannot be decoded in the requested format: the error code."
_RECORD_V3: dict[str, Any] = {
    "partition_id": 0,
    "offset": 17,
    "timestamp": 1769860800000,
    "timestamp_type": "CreateTime",
    "headers": [{"name": "trace", "value": "YWJj"}],
    "key": {"type": "STRING", "data": "order-1"},
    "value": {"type": "AVRO", "data": {"amount": 3}, "schema_id": 7},
}
_RECORD_V2: dict[str, Any] = {
    "topic": "orders",
    "key": "order-1",
    "value": {"amount": 3},
    "partition": 0,
    "offset": 17,
    "timestamp": 1769860800000,
    "headers": [{"name": "trace", "value": "YWJj"}],
}
_PAGE = "http://localhost:8082/v3/clusters/c-1/topics/orders/partitions/0/records"


class ReadHeader(BaseModel):
    """A header of a record in API v3."""

    name: str = Field(description="The name; it need not be unique.")
    value: str | None = Field(description="The bytes in base64.")


class ReadPart(BaseModel):
    """A key or value in API v3."""

    type: str = Field(
        description="The format of the data: BINARY (base64), JSON, STRING, AVRO, JSONSCHEMA or PROTOBUF. Data that"
        " cannot be decoded in the requested format is BINARY, with an error.",
        examples=["JSON"],
    )
    data: Any = Field(description="The data, in that format.")
    schema_id: int | None = Field(default=None, description="The id of the schema, if the data has one.")
    error_code: int | None = Field(default=None, description=_ERROR)
    message: str | None = Field(default=None, description="The error message.")


class ReadRecord(BaseModel):
    """A record in API v3."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORD_V3]})

    partition_id: int = Field(description="The partition of the record.")
    offset: int = Field(description="The offset of the record.")
    timestamp: int | None = Field(description=_TIME)
    timestamp_type: str | None = Field(description=_TIME_TYPE)
    headers: list[ReadHeader] = Field(description="The headers, in order.")
    key: ReadPart | None = Field(description="The key; null if the record has none.")
    value: ReadPart | None = Field(description="The value; null for a tombstone, which deletes the key on compaction.")


class ReadMetadata(BaseModel):
    """Links of a page."""

    self: str = Field(description="The URL of this page.")
    next: str = Field(description="The URL of the next page; it may not have records yet.")


class RecordList(BaseModel):
    """A page of a partition in API v3."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "KafkaRecordList",
                    "metadata": {"self": f"{_PAGE}?offset=17", "next": f"{_PAGE}?offset=18"},
                    "data": [_RECORD_V3],
                    "beginning_offset": 0,
                    "next_offset": 18,
                    "end_offset": 18,
                }
            ]
        }
    )

    kind: str = Field(default="KafkaRecordList", description="The kind of this object.")
    metadata: ReadMetadata = Field(description="Links.")
    data: list[ReadRecord] = Field(description="The records.")
    beginning_offset: int = Field(description="The first offset of the partition.")
    next_offset: int = Field(description="The first offset of the next page.")
    end_offset: int = Field(description="The offset of the next record to be written.")


class V2ReadHeader(BaseModel):
    """A header of a record in API v2."""

    name: str = Field(description="The name; it need not be unique.")
    value: str | None = Field(description="The bytes in base64.")


class V2ReadRecord(BaseModel):
    """A record in API v2."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORD_V2]})

    topic: str = Field(description="The topic of the record.")
    key: Any = Field(description="The key, in the format of the response.")
    value: Any = Field(description="The value, in the format of the response.")
    partition: int = Field(description="The partition of the record.")
    offset: int = Field(description="The offset of the record.")
    timestamp: int | None = Field(default=None, description=_TIME)
    headers: list[V2ReadHeader] | None = Field(default=None, description="The headers; left out if there are none.")
    error_code: int | None = Field(default=None, description=_ERROR)
    message: str | None = Field(default=None, description="The error message.")
    key_raw: str | None = Field(default=None, description="The bytes of a key that cannot be decoded, in base64.")
    value_raw: str | None = Field(default=None, description="The bytes of a value that cannot be decoded, in base64.")


NDJSON_V3 = {"schema": {"$ref": "#/components/schemas/ReadRecord"}, "example": _RECORD_V3}
NDJSON_V2 = {"schema": {"$ref": "#/components/schemas/V2ReadRecord"}, "example": _RECORD_V2}
EVENTS = {
    "schema": {
        "description": "Events whose data is a record, and whose id is the position after it. If the proxy ends the"
        " stream, the last event is called `end`, and its data has the reason and the position."
    },
    "example": 'retry: 1000\nid: 0:17\n\nid: 0:18\ndata: {"partition_id":0,"offset":17}\n\n: heartbeat\n\n',
}
V2_PAGE = {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/V2ReadRecord"}}, "example": [_RECORD_V2]}
