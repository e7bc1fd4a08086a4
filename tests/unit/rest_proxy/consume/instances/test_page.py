import json
from collections.abc import Iterator

import msgspec
import pytest
from typing_extensions import override

from core_broker.client.records import Header, IncomingRecord
from rest_proxy.consume.instances.page import encode_page, size
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    """A decoder of JSON, which needs no registry."""
    with RegistryClient(RegistryClientSettings.parse({"url": "http://127.0.0.1:1"})) as registry:
        yield Decoder(Format.JSON, registry)


def record(
    offset: int, value: bytes | None, *, headers: tuple[Header, ...] = (), timestamp_type: str = "CreateTime"
) -> IncomingRecord:
    return IncomingRecord(
        topic="t",
        partition=1,
        offset=offset,
        timestamp_ms=7,
        timestamp_type=timestamp_type,
        key=b'"k"',
        value=value,
        headers=headers,
    )


def test_record_has_confluents_fields_then_ours(decoder: Decoder) -> None:
    body, count = encode_page([record(5, b"[1]", headers=(("h", b"\x00"), ("h", None)))], decoder, is_plain=False)
    assert count == 1
    assert body == (
        b'[{"topic":"t","key":"k","value":[1],"partition":1,"offset":5,"timestamp":7,'
        b'"headers":[{"name":"h","value":"AA=="},{"name":"h","value":null}]}]'
    )


def test_headers_are_left_out_where_there_are_none_and_a_time_that_is_none_is_null(decoder: Decoder) -> None:
    body, _ = encode_page([record(5, None, timestamp_type="")], decoder, is_plain=False)
    assert json.loads(body) == [
        {"topic": "t", "key": "k", "value": None, "partition": 1, "offset": 5, "timestamp": None}
    ]


def test_plain_records_have_confluents_fields_alone(decoder: Decoder) -> None:
    body, _ = encode_page([record(5, b"1", headers=(("h", b"\x00"),))], decoder, is_plain=True)
    assert list(json.loads(body)[0]) == ["topic", "key", "value", "partition", "offset"]


def test_page_ends_before_a_record_that_cannot_be_read(decoder: Decoder) -> None:
    body, count = encode_page([record(5, b"1"), record(6, b"{"), record(7, b"3")], decoder, is_plain=True)
    assert (len(json.loads(body)), count) == (1, 1)


def test_record_that_cannot_be_read_is_reported_with_what_to_do(decoder: Decoder) -> None:
    with pytest.raises(ProxyError) as caught:
        encode_page([record(6, b"{")], decoder, is_plain=True)
    assert caught.value.status == 422
    assert all(word in caught.value.message for word in ("offset 6", "offset 7", "partition 1", "binary"))


def test_keys_of_another_format_are_sent_in_base64(decoder: Decoder) -> None:
    text = msgspec.structs.replace(record(5, b"1"), key=b"order-1")
    body, _ = encode_page([text], decoder, is_plain=True)
    assert json.loads(body)[0]["key"] == "b3JkZXItMQ=="


def test_record_without_bytes_counts_for_one() -> None:
    empty = IncomingRecord(topic="t", partition=0, offset=0, timestamp_ms=0, timestamp_type="", key=None, value=None)
    assert size(empty) == 1
    assert size(record(0, b"12345")) == 8


def test_headers_count() -> None:
    assert size(record(0, b"12345", headers=(("ab", b"cde"), ("f", None)))) == 14


class Halving(Decoder):
    """Reads texts that UTF-8 does not have."""

    @override
    def value(self, record: IncomingRecord) -> object:
        return "\ud800" if record.value == b"half" else 1


def test_page_ends_before_a_record_that_json_cannot_express() -> None:
    with RegistryClient(RegistryClientSettings.parse({"url": "http://127.0.0.1:1"})) as registry:
        halving = Halving(Format.JSON, registry)
        body, count = encode_page([record(5, b"1"), record(6, b"half"), record(7, b"1")], halving, is_plain=True)
        assert (count, [answered["offset"] for answered in json.loads(body)]) == (1, [5])
        with pytest.raises(ProxyError, match="cannot be represented in JSON.*offset 7"):
            encode_page([record(6, b"half")], halving, is_plain=True)
