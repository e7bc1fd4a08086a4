from typing import Any

import msgspec
import pytest

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import NO_CHOICE, Format, SchemaChoice
from rest_proxy.produce.v3.requests import DataRequest, Malformed, entry_id, parse_batch, parse_record
from schema_registry.serdes.subject_names import SubjectNameStrategy


def test_a_record_is_parsed_with_all_its_fields() -> None:
    record = parse_record(
        b'{"partition_id":3,"timestamp":"2026-01-31T13:00:00.5+01:00","headers":[{"name":"a","value":"MQ"},{"name":"b"}],'
        b'"key":{"type":"STRING","data":"k"},"value":{"data":{"x":[1, 2]}},"unknown":{}}'
    )
    assert record.partition() == 3
    assert record.timestamp_ms() == 1_769_860_800_500
    assert record.header_pairs() == [("a", b"1"), ("b", None)]
    assert record.key is not None
    assert record.key.target() == (Format.STRING, NO_CHOICE)
    assert record.value is not None
    assert record.value.target() == (None, NO_CHOICE)
    assert bytes(record.value.data) == b'{"x":[1, 2]}'


def test_what_is_left_out_is_none() -> None:
    record = parse_record(b'{"value":{"type":"JSON"}}')
    assert (record.partition(), record.timestamp_ms(), record.header_pairs(), record.key) == (None, None, [], None)
    assert record.value is not None
    assert bytes(record.value.data) == b"null"


def test_a_schema_is_given_by_id_or_by_text() -> None:
    data = DataRequest(subject_name_strategy="RECORD_NAME", schema_id=7)
    assert data.target() == (None, SchemaChoice(schema_id=7, strategy=SubjectNameStrategy.RECORD_NAME))
    data = DataRequest(type="PROTOBUF", schema="…", subject="s")
    assert data.target() == (Format.PROTOBUF, SchemaChoice(schema="…", subject="s"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (DataRequest(type="XML"), "type='XML': must be one of BINARY, JSON, STRING, AVRO, JSONSCHEMA, PROTOBUF"),
        (DataRequest(subject_name_strategy="TOPIC"), "must be one of TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME"),
    ],
)
def test_the_error_lists_what_is_allowed(given: DataRequest, words: str) -> None:
    with pytest.raises(ProxyError, match=words):
        given.target()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"1970-01-01T00:00:01Z"', 1000),
        ('"1970-01-01T00:00:01.123456789Z"', 1123),
        ('"9999-12-31T23:59:59Z"', 253_402_300_799_000),
        ("1", 1000),
        ("1.5", 1500),
        ("1769860800.123", 1_769_860_800_123),
        ("null", None),
    ],
)
def test_timestamps(given: str, expected: int | None) -> None:
    assert parse_record(b'{"timestamp":%s}' % given.encode()).timestamp_ms() == expected


@pytest.mark.parametrize(
    "given",
    [
        "0",
        "-1",
        "1769860800123",
        "1" + "0" * 60,
        '"yesterday"',
        '"2026-01-31T12:00:00"',
        '""',
        '"0001-01-01T00:00:00Z"',
    ],
)
def test_invalid_timestamps_are_refused(given: str) -> None:
    with pytest.raises(ProxyError, match="timestamp=") as caught:
        parse_record(b'{"timestamp":%s}' % given.encode()).timestamp_ms()
    assert (caught.value.code, type(caught.value)) == (400, ProxyError)


@pytest.mark.parametrize("partition", [-1, 2**31, 10**30])
def test_invalid_partitions_are_refused(partition: int) -> None:
    with pytest.raises(ProxyError, match="Partition not found") as caught:
        parse_record(msgspec.json.encode({"partition_id": partition})).partition()
    assert caught.value.code == 40402


@pytest.mark.parametrize(
    "record",
    [
        {"headers": [{"value": "MQ=="}]},
        {"headers": {"a": 1}},
        {"headers": [{"name": "a"}] * 10_001},
        {"key": 1},
        {"value": {"schema": {"type": "string"}}},
        {"value": {"schema_id": "x"}},
        {"partition_id": {}},
        {"timestamp": []},
        [],
        1,
    ],
)
def test_json_that_is_not_a_record_is_refused_with_the_place_of_the_error(record: Any) -> None:
    with pytest.raises(ProxyError, match=r"Error processing JSON: \w+") as caught:
        parse_record(msgspec.json.encode(record))
    assert (caught.value.code, type(caught.value)) == (400, ProxyError)


@pytest.mark.parametrize("text", [b"", b"{", b"{]}", b'{"key":}', b'{"key":{"type":"\xff"}}', b"{}{}"])
def test_text_that_is_not_json_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse_record(text)
    assert caught.value.code == 400


def test_a_record_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ProxyError):
        parse_record(b'{"value":{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")


@pytest.mark.parametrize("value", ["!", "M", "MQ==\n"])
def test_headers_must_be_base64(value: str) -> None:
    record = parse_record(msgspec.json.encode({"headers": [{"name": "a", "value": value}]}))
    with pytest.raises(ProxyError, match="header 'a' is not base64"):
        record.header_pairs()


def test_a_header_with_a_nul_in_its_name_is_refused_since_it_would_arrive_under_another_one() -> None:
    with pytest.raises(ProxyError, match="contains a NUL"):
        parse_record(b'{"headers":[{"name":"a\\u0000b"}]}').header_pairs()


@pytest.mark.parametrize("text", [b'{"value":{"data":"\\uD800"}}', b'{"headers":[{"name":"\\udc00x"}]}'])
def test_an_unpaired_surrogate_spoils_its_own_record_only(text: bytes) -> None:
    with pytest.raises(ProxyError, match="surrogate") as caught:
        parse_record(text)
    assert type(caught.value) is ProxyError


def test_entries_of_a_batch_are_read_one_by_one() -> None:
    batch = parse_batch(b'{"entries":[{"id":"1","partition_id":[]},{"id":2}]}')
    assert batch.entries is not None
    assert [entry_id(entry) for entry in batch.entries] == ["1", 2]
