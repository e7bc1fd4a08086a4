"""Records as they are read without a consumer instance: pages and streams, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_TIME = "Milliseconds since 1970."
_TIME_TYPE = "Whether the producer (CreateTime) or the broker (LogAppendTime) set the time."
_ERROR = "Only of a record that cannot be read as asked for: why."
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

    name: str = Field(description="Its name; several may have the same.")
    value: str | None = Field(description="Its bytes in base64.")


class ReadPart(BaseModel):
    """A key or value in API v3."""

    type: str = Field(
        description="How the data is written: BINARY (base64), JSON, STRING, AVRO, JSONSCHEMA or PROTOBUF. What cannot"
        " be read in the format that was asked for is BINARY, with an error.",
        examples=["JSON"],
    )
    data: Any = Field(description="The data, in that format.")
    schema_id: int | None = Field(default=None, description="The schema that the data is written by, if any.")
    error_code: int | None = Field(default=None, description=_ERROR)
    message: str | None = Field(default=None, description="The same in words.")


class ReadRecord(BaseModel):
    """A record in API v3."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORD_V3]})

    partition_id: int = Field(description="The partition it is in.")
    offset: int = Field(description="Its offset there.")
    timestamp: int | None = Field(description=_TIME)
    timestamp_type: str | None = Field(description=_TIME_TYPE)
    headers: list[ReadHeader] = Field(description="Its headers, in their order.")
    key: ReadPart | None = Field(description="null: the record has none.")
    value: ReadPart | None = Field(description="null: the record has none, and deletes its key in a compacted topic.")


class ReadMetadata(BaseModel):
    """Where a page is found, and what comes after it."""

    self: str = Field(description="The address of this page.")
    next: str = Field(description="The next page: what was written after this one, as soon as there is something.")


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

    kind: str = Field(default="KafkaRecordList", description="What this is.")
    metadata: ReadMetadata = Field(description="Where this is.")
    data: list[ReadRecord] = Field(description="The records.")
    beginning_offset: int = Field(description="The first offset that the partition holds.")
    next_offset: int = Field(description="The offset that the next page begins with.")
    end_offset: int = Field(description="The offset after the last one that was known of.")


class V2ReadHeader(BaseModel):
    """A header of a record in API v2."""

    name: str = Field(description="Its name; several may have the same.")
    value: str | None = Field(description="Its bytes in base64.")


class V2ReadRecord(BaseModel):
    """A record in API v2."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORD_V2]})

    topic: str = Field(description="The topic it is in.")
    key: Any = Field(description="The key, in the format of the answer.")
    value: Any = Field(description="The value, in the format of the answer.")
    partition: int = Field(description="The partition it is in.")
    offset: int = Field(description="Its offset there.")
    timestamp: int | None = Field(default=None, description=_TIME)
    headers: list[V2ReadHeader] | None = Field(default=None, description="Left out where there are none.")
    error_code: int | None = Field(default=None, description=_ERROR)
    message: str | None = Field(default=None, description="The same in words.")
    key_raw: str | None = Field(default=None, description="A key that cannot be read: its bytes in base64.")
    value_raw: str | None = Field(default=None, description="A value that cannot be read: its bytes in base64.")


NDJSON_V3 = {"schema": {"$ref": "#/components/schemas/ReadRecord"}, "example": _RECORD_V3}
NDJSON_V2 = {"schema": {"$ref": "#/components/schemas/V2ReadRecord"}, "example": _RECORD_V2}
EVENTS = {
    "schema": {
        "description": "Events: their data is a record, their id the position behind it. The last one, if the proxy"
        " ends the stream, is called `end`, and its data tells the reason and the position."
    },
    "example": 'retry: 1000\nid: 0:17\n\nid: 0:18\ndata: {"partition_id":0,"offset":17}\n\n: heartbeat\n\n',
}
V2_PAGE = {
    "schema": {"type": "array", "items": {"$ref": "#/components/schemas/V2ReadRecord"}},
    "example": [_RECORD_V2],
}
