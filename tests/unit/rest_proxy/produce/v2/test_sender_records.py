"""Encoding the records of API v2."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from core_broker.client.records import OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats import rules
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.produce.v2.requests import parse
from rest_proxy.produce.v2.sender import RecordWriter
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings


@pytest.fixture
def encoders() -> Iterator[Encoders]:
    """Encoders of API v2 that no registry answers."""
    with RegistryClient(RegistryClientSettings.parse({"url": "http://127.0.0.1:9"})) as registry:
        yield Encoders(registry, rules.V2)


def written(
    encoders: Encoders, format_: Format, body: dict[str, Any], partition: int | None = None
) -> list[OutgoingRecord | ProxyError]:
    """What is to be sent for a body."""

    async def write() -> list[OutgoingRecord | ProxyError]:
        request = parse(msgspec.json.encode(body), max_records=100_000)
        writer = RecordWriter(format_, "t", partition)
        await writer.prepare(request, encoders)
        assert (writer.key_schema_id, writer.value_schema_id) == (None, None)
        return await writer.write(request.records)

    return asyncio.run(write())


def test_a_record_has_what_the_request_says(encoders: Encoders) -> None:
    record = {
        "key": "a2V5",
        "value": "MQ==",
        "partition": 3,
        "timestamp": 5,
        "headers": [{"key": "h", "value": "Mg=="}],
    }
    assert written(encoders, Format.BINARY, {"records": [record]}, 7) == [
        OutgoingRecord(topic="t", key=b"key", value=b"1", partition=3, timestamp_ms=5, headers=[("h", b"2")])
    ]


def test_a_record_without_a_partition_goes_where_the_path_says(encoders: Encoders) -> None:
    assert written(encoders, Format.JSON, {"records": [{"value": 1}]}, 7) == [
        OutgoingRecord(topic="t", value=b"1", partition=7)
    ]


def test_a_bad_record_is_an_error_among_the_others(encoders: Encoders) -> None:
    first, second, third = written(
        encoders, Format.BINARY, {"records": [{"value": "MQ=="}, {"key": "!"}, {"value": "Mg=="}]}
    )
    assert isinstance(second, ProxyError)
    assert [record.value for record in (first, third) if isinstance(record, OutgoingRecord)] == [b"1", b"2"]


def test_all_records_of_a_large_request_are_written_in_their_order(encoders: Encoders) -> None:
    many = written(encoders, Format.JSON, {"records": [{"value": number} for number in range(5_001)]})
    assert [record.value for record in many if isinstance(record, OutgoingRecord)] == [
        str(number).encode() for number in range(5_001)
    ]


@pytest.mark.parametrize(("part", "code"), [("key", 42201), ("value", 42202)])
@pytest.mark.parametrize("format_", [Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF])
def test_a_format_with_schemas_needs_one_for_what_is_not_null(
    encoders: Encoders, format_: Format, part: str, code: int
) -> None:
    with pytest.raises(ProxyError) as refused:
        written(encoders, format_, {"records": [{part: None}, {part: 0}]})
    assert refused.value.code == code


@pytest.mark.parametrize("format_", [Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF])
def test_null_needs_no_schema(encoders: Encoders, format_: Format) -> None:
    assert written(encoders, format_, {"records": [{"key": None, "value": None}]}) == [
        OutgoingRecord(topic="t", value=None)
    ]


def test_formats_without_schemas_ignore_those_that_are_given(encoders: Encoders) -> None:
    body = {"key_schema": "x", "value_schema_id": 1, "records": [{"key": "k", "value": 1}]}
    assert written(encoders, Format.JSON, body) == [OutgoingRecord(topic="t", key=b'"k"', value=b"1")]
