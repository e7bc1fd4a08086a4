"""What converters make of their registry's answers, and how often they ask it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api.data import INT32, OPTIONAL_INT32, STRING, struct
from connect.api.errors import ConfigError, DataError, Unavailable
from connect.converters.avro.converter import AvroConverter
from connect.converters.json_schema.converter import JsonSchemaConverter
from connect.converters.protobuf.converter import ProtobufConverter
from connect.converters.registry import RegistryConverter
from schema_registry.serdes.avro_numbers import varint
from tests.support.scripted_http import ScriptedHttp

EVERY = [AvroConverter, JsonSchemaConverter, ProtobufConverter]
RECORD = struct({"a": INT32}, name="R")
AVRO_ID = b"\x00\x00\x00\x00\x07"
FOUND = json.dumps({"schema": json.dumps({"type": "int"})}).encode()
LOOKED_UP = json.dumps({"subject": "t-value", "id": 7, "version": 3, "schema": json.dumps({"type": "int"})}).encode()
NOT_FOUND = json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()


def converter(kind: type[RegistryConverter], url: str, **options: str) -> RegistryConverter:
    given = {key.replace("_", "."): value for key, value in options.items()}
    quick = {"max.retries": "0", "http.read.timeout.ms": "2000"}
    return kind({"schema.registry.url": url, **quick, **given}, is_key=False)


def outcome(action: Any) -> type[Exception]:
    with pytest.raises(Exception) as raised:
        action()
    return raised.type


ANSWERS: list[tuple[int, bytes, type[Exception]]] = [
    (500, b"{}", Unavailable),
    (503, b"out of order", Unavailable),
    (429, b"{}", Unavailable),
    (401, b"{}", ConfigError),
    (403, b"{}", ConfigError),
    (404, NOT_FOUND, DataError),
    (422, b"{}", DataError),
]


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize(("status", "body", "expected"), ANSWERS)
def test_an_answer_of_the_registry_becomes_the_error_that_says_what_to_do(
    kind: type[RegistryConverter], status: int, body: bytes, expected: type[Exception]
) -> None:
    with ScriptedHttp((status, body)) as registry:
        one = converter(kind, registry.url)
        assert outcome(lambda: one.to_connect("t", AVRO_ID + b"\x00\x02")) is expected
        assert outcome(lambda: one.from_connect("t", RECORD, {"a": 1})) is expected
        one.close()


@pytest.mark.parametrize("kind", EVERY)
def test_an_incompatible_schema_is_an_error_of_the_record(kind: type[RegistryConverter]) -> None:
    body = json.dumps({"error_code": 409, "message": "incompatible with an earlier schema"}).encode()
    with ScriptedHttp((409, body)) as registry:
        one = converter(kind, registry.url)
        with pytest.raises(DataError, match="incompatible with an earlier schema"):
            one.from_connect("t", RECORD, {"a": 1})
        one.close()


@pytest.mark.parametrize("kind", EVERY)
def test_a_registry_that_is_not_there_is_asked_again_later(kind: type[RegistryConverter]) -> None:
    with ScriptedHttp(None) as registry:
        one = converter(kind, registry.url)
        with pytest.raises(Unavailable, match="Failed to serialize .* data from topic t: no answer"):
            one.from_connect("t", RECORD, {"a": 1})
        with pytest.raises(Unavailable, match="Failed to deserialize data for topic t to"):
            one.to_connect("t", AVRO_ID + b"\x00\x02")
        one.close()


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("data", [b"", b"\x00", b"{}", b"\x05\x00\x00\x00\x07\x00"])
def test_bytes_that_name_no_schema_are_an_error_of_the_record(kind: type[RegistryConverter], data: bytes) -> None:
    one = converter(kind, "http://127.0.0.1:9")
    with pytest.raises(DataError, match="Failed to deserialize data for topic t to"):
        one.to_connect("t", data)
    one.close()


@pytest.mark.parametrize("kind", EVERY)
def test_a_tombstone_passes_without_asking(kind: type[RegistryConverter]) -> None:
    one = converter(kind, "http://127.0.0.1:9")
    assert one.to_connect("t", None) == (None, None)
    assert one.from_connect("t", None, None) is None
    assert one.from_connect("t", RECORD.as_optional(), None) is None
    one.close()


def test_null_for_a_schema_without_null_is_refused_by_avro() -> None:
    one = converter(AvroConverter, "http://127.0.0.1:9")
    with pytest.raises(DataError, match="Found null value for non-optional schema"):
        one.from_connect("t", RECORD, None)
    one.close()


@pytest.mark.parametrize("kind", [JsonSchemaConverter, ProtobufConverter])
def test_a_value_without_a_schema_is_refused_where_there_is_none_for_it(kind: type[RegistryConverter]) -> None:
    one = converter(kind, "http://127.0.0.1:9")
    with pytest.raises(DataError, match="schema"):
        one.from_connect("t", None, {"a": 1})
    one.close()


def test_only_the_first_record_of_a_schema_asks_the_registry() -> None:
    with ScriptedHttp((200, FOUND), (200, LOOKED_UP)) as registry:
        one = converter(AvroConverter, registry.url)
        for number in (1, 2, 3):
            assert one.to_connect("t", AVRO_ID + varint(number)) == (INT32.but(version=3), number)
        assert registry.targets == ["GET /schemas/ids/7", "POST /subjects/t-value"]
        one.close()


def test_only_the_first_value_of_a_schema_asks_the_registry() -> None:
    with ScriptedHttp((200, b'{"id":7}')) as registry:
        one = converter(AvroConverter, registry.url)
        for number in (1, 2, 3):
            assert one.from_connect("t", INT32, number) == AVRO_ID + varint(number)
            assert one.from_connect("t", INT32.but(), number) == AVRO_ID + varint(number)
        assert registry.targets == ["POST /subjects/t-value/versions"]
        one.close()


def test_a_record_is_written_as_soon_as_the_registry_answers_again() -> None:
    with ScriptedHttp((503, b"{}"), (503, b"{}"), (200, b'{"id":7}')) as registry:
        one = converter(AvroConverter, registry.url)
        for _ in range(2):
            with pytest.raises(Unavailable):
                one.from_connect("t", INT32, 1)
        assert one.from_connect("t", INT32, 1) == AVRO_ID + b"\x02"
        one.close()


ANY_SCHEMA = {
    AvroConverter: (
        "AVRO",
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "u", "type": ["null", "int", "string", {"type": "map", "values": "double"}]},
                    {"name": "a", "type": {"type": "array", "items": ["null", "bytes"]}},
                    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
                    {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                ],
            }
        ),
    ),
    JsonSchemaConverter: (
        "JSON",
        json.dumps(
            {
                "type": "object",
                "properties": {
                    "a": {"type": "integer"},
                    "b": {"oneOf": [{"type": "boolean"}, {"type": "object", "properties": {"x": {"type": "number"}}}]},
                },
            }
        ),
    ),
    ProtobufConverter: (
        "PROTOBUF",
        """syntax = "proto3"; import "google/type/date.proto"; import "confluent/type/decimal.proto";
        message M { oneof o { int32 a = 1; M2 b = 2; } google.type.Date d = 3; confluent.type.Decimal e = 4;
        map<string, E> m = 5; message M2 { repeated uint64 x = 1; } enum E { A = 0; B = 1; } }""",
    ),
}
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("abx"), parts, max_size=3),
)
payloads = st.binary(max_size=60) | documents.map(lambda value: json.dumps(value).encode())


@pytest.mark.parametrize("kind", EVERY)
def test_whatever_the_data_is_it_is_read_or_an_error_of_the_record(kind: type[RegistryConverter]) -> None:
    schema_type, text = ANY_SCHEMA[kind]
    answer = {"schema": text, "schemaType": schema_type, "id": 7, "version": 1, "subject": "t-value"}
    with ScriptedHttp((200, json.dumps(answer).encode())) as registry:
        one = converter(kind, registry.url)

        @given(payloads)
        def read(data: bytes) -> None:
            with suppress(DataError):
                one.to_connect("t", AVRO_ID + data)

        read()
        one.close()


def test_a_schema_of_another_subject_has_no_version() -> None:
    with ScriptedHttp((200, FOUND), (404, NOT_FOUND)) as registry:
        one = converter(AvroConverter, registry.url)
        assert one.to_connect("t", AVRO_ID + b"\x02") == (INT32, 1)
        one.close()


def test_no_more_schemas_are_kept_than_allowed() -> None:
    with ScriptedHttp((200, b'{"id":7}')) as registry:
        one = converter(AvroConverter, registry.url, schemas_cache_config="2")
        for number in range(10):
            one.from_connect("t", INT32.but(doc=str(number)), number)
            assert len(one._writings) <= 2
        one.close()


def test_the_latest_schema_is_asked_for_again_when_it_is_old() -> None:
    latest = json.dumps({"schema": '"int"', "id": 7, "version": 1, "subject": "t-value"}).encode()
    with ScriptedHttp((200, latest)) as registry:
        options = {"auto.register.schemas": "false", "use.latest.version": "true", "latest.cache.ttl.sec": "0"}
        one = AvroConverter({"schema.registry.url": registry.url, **options}, is_key=False)
        one.from_connect("t", OPTIONAL_INT32, 1)
        asked = len(registry.requests)
        one.from_connect("t", OPTIONAL_INT32, 1)
        assert len(registry.requests) > asked
        one.close()


OPTIONS: list[Mapping[str, str]] = [
    {},
    {"schema.registry.url": "mock://x"},
    {"schema.registry.url": "http://x", "basic.auth.user.info": "no colon"},
    {"schema.registry.url": "http://x", "basic.auth.credentials.source": "SASL_INHERIT"},
    {"schema.registry.url": "http://x", "value.subject.name.strategy": "Unknown"},
    {"schema.registry.url": "http://x", "value.schema.id.serializer": "HeaderSchemaIdSerializer"},
    {"schema.registry.url": "http://x", "auto.register.schemas": "maybe"},
    {"schema.registry.url": "http://x", "schema.registry.ssl.truststore.location": "/a.jks"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_cannot_work_are_refused(options: Mapping[str, str]) -> None:
    with pytest.raises(ConfigError):
        AvroConverter(options, is_key=False)


@pytest.mark.parametrize("path", ["/apis/registry/v2", "/apis/registry/v3/", "/apis/ccompat/v7"])
def test_apicurios_registry_is_asked_where_it_speaks_confluents_api(path: str) -> None:
    with ScriptedHttp((200, FOUND), (200, LOOKED_UP)) as registry:
        one = AvroConverter({"apicurio.registry.url": registry.url + path}, is_key=False)
        assert one.to_connect("t", AVRO_ID + b"\x02")[1] == 1
        assert registry.targets[0] == "GET /apis/ccompat/v7/schemas/ids/7"
        one.close()


def test_a_schema_of_another_format_is_refused() -> None:
    with ScriptedHttp((200, FOUND)) as registry:
        one = converter(JsonSchemaConverter, registry.url)
        with pytest.raises(DataError, match="schema 7 is of AVRO, not JSON Schema"):
            one.to_connect("t", AVRO_ID + b"1")
        one.close()


def test_a_value_that_does_not_fit_is_told_with_topic_and_field() -> None:
    with ScriptedHttp((200, b'{"id":7}')) as registry:
        one = converter(AvroConverter, registry.url)
        with pytest.raises(DataError, match=r"^Failed to serialize Avro data from topic t: a: expected text, not"):
            one.from_connect("t", struct({"a": STRING}), {"a": 5})
        one.close()
