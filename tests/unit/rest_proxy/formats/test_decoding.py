import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from core_broker.client.records import Header, IncomingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.serdes.serializer import Serializer
from schema_registry.serdes.settings import IdPlace, SerializerSettings
from tests.support.fake_registry import FakeRegistry
from tests.support.serde_schemas import AVRO, JSON, PROTOBUF, Example

pytestmark = pytest.mark.processes

EXAMPLES: Mapping[Format, Example] = {Format.AVRO: AVRO, Format.JSONSCHEMA: JSON, Format.PROTOBUF: PROTOBUF}
WITH_SCHEMA = pytest.mark.parametrize("format_", EXAMPLES)


def record(value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()) -> IncomingRecord:
    return IncomingRecord(
        topic="orders", partition=3, offset=7, timestamp_ms=0, timestamp_type="", key=key, value=value, headers=headers
    )


async def decode(decoder: Decoder, incoming: IncomingRecord) -> tuple[Any, Any]:
    await decoder.prepare([incoming])
    key, value = decoder.key(incoming), decoder.value(incoming)
    return json.loads(msgspec.json.encode(key)), json.loads(msgspec.json.encode(value))


async def unreadable(decoder: Decoder, value: bytes) -> str:
    await decoder.prepare([record(value)])
    with pytest.raises(ProxyError) as error:
        decoder.value(record(value))
    assert error.value.code == 42207
    prefix = "The value of orders, partition 3, offset 7 cannot be read: value deserialization error for format "
    assert error.value.message.startswith(prefix)
    return error.value.message.removeprefix(prefix)


@pytest.mark.parametrize("format_", Format)
async def test_missing_data_is_null(client: RegistryClient, format_: Format) -> None:
    assert await decode(Decoder(format_, client), record(None)) == (None, None)


@pytest.mark.parametrize(
    ("format_", "data", "view"),
    [
        (Format.BINARY, b"\xff\xfe", "//4="),
        (Format.BINARY, b"", ""),
        (Format.JSON, b' {"a": [1.10, null]} ', {"a": [1.1, None]}),
        (Format.JSON, '"é"'.encode(), "é"),
        (Format.STRING, "é\n".encode(), "é\n"),
    ],
)
async def test_data_without_a_schema_is_decoded(
    client: RegistryClient, format_: Format, data: bytes, view: Any
) -> None:
    assert await decode(Decoder(format_, client), record(data, key=data)) == (view, view)


async def test_json_stays_as_it_was_written(client: RegistryClient, name: str) -> None:
    text = b'{"a":123456789012345678901234567890,"b":1.10}'
    prefix = Serializer(client, JSON.definition).writer(name).prefix
    for format_, data in ((Format.JSON, text), (Format.JSONSCHEMA, prefix + text)):
        decoder = Decoder(format_, client)
        await decoder.prepare([record(data)])
        assert msgspec.json.encode(decoder.value(record(data))) == text


@pytest.mark.parametrize(
    ("format_", "data"),
    [
        (Format.JSON, b""),
        (Format.JSON, b"{"),
        (Format.JSON, b"{} {}"),
        (Format.JSON, b'"\xff"'),
        (Format.JSON, b"NaN"),
        (Format.JSON, b"[" * 100_000),
        (Format.STRING, b"\xff"),
    ],
)
async def test_invalid_json_or_text_is_reported_with_its_place(
    client: RegistryClient, format_: Format, data: bytes
) -> None:
    assert f"{format_}: it is not {'JSON' if format_ is Format.JSON else 'text'} in UTF-8" in await unreadable(
        Decoder(format_, client), data
    )


@WITH_SCHEMA
@pytest.mark.parametrize("place", IdPlace)
async def test_data_with_a_schema_is_decoded(
    client: RegistryClient, name: str, format_: Format, place: IdPlace
) -> None:
    example = EXAMPLES[format_]
    serializer = Serializer(client, example.definition, settings=SerializerSettings(id_place=place))
    headers: list[Header] = []
    value = serializer.serialize_json(name, example.view, headers=headers)
    key = serializer.serialize_json(name, example.other_view, is_key=True, headers=headers)
    decoder = Decoder(format_, client)
    assert await decode(decoder, record(value, key=key, headers=headers)) == (example.other_view, example.view)


@WITH_SCHEMA
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the data is empty and does not name a schema"),
        (b'{"id":1}', "the data begins with byte 0x7b, not with the 0x00 of a schema id"),
        (b"\0\0\0", "the data ends within the name of its schema"),
        (b"\0\x7f\xff\xff\xff\0", "the registry has no schema 2147483647"),
        (b"\0\xff\xff\xff\xff\0", "4294967295"),
        (b"\1" + bytes(16), "the registry has no schema 00000000-0000-0000-0000-000000000000"),
    ],
)
async def test_data_without_a_schema_id_is_reported_with_the_reason(
    client: RegistryClient, format_: Format, data: bytes, reason: str
) -> None:
    assert reason in await unreadable(Decoder(format_, client), data)


async def test_data_that_does_not_match_its_schema_is_reported(client: RegistryClient, name: str) -> None:
    value = Serializer(client, AVRO.definition).serialize_json(name, AVRO.view)
    assert "does not fit the Avro schema" in await unreadable(Decoder(Format.AVRO, client), value[:6])


async def test_the_schema_determines_the_format(client: RegistryClient, name: str) -> None:
    value = Serializer(client, AVRO.definition).serialize_json(name, AVRO.view)
    decoder = Decoder(Format.PROTOBUF, client)
    assert await decode(decoder, record(value)) == (None, AVRO.view)
    assert decoder.format_by(int.from_bytes(value[1:5])) is Format.AVRO


@pytest.mark.parametrize("format_", [Format.AVRO, Format.JSON])
async def test_a_key_of_another_format_is_its_bytes(client: RegistryClient, format_: Format) -> None:
    incoming = record(None, key=b"order-1")
    decoder = Decoder(format_, client)
    await decoder.prepare([incoming])
    assert decoder.key_or_base64(incoming) == "b3JkZXItMQ=="


async def test_a_key_with_an_unknown_schema_is_reported(client: RegistryClient) -> None:
    incoming = record(None, key=b"\0\x7f\xff\xff\xff\0")
    decoder = Decoder(Format.AVRO, client)
    await decoder.prepare([incoming])
    with pytest.raises(ProxyError, match="the registry has no schema 2147483647"):
        decoder.key_or_base64(incoming)


async def test_records_that_were_not_prepared_cause_no_requests(name: str) -> None:
    with FakeRegistry() as registry, _client(registry.url) as client:
        registered = registry.register(f"{name}-value")
        data = b"\0" + registered.id.to_bytes(4, "big") + b"\0"
        with pytest.raises(ProxyError, match="was not fetched"):
            Decoder(Format.AVRO, client).value(record(data))
        assert registry.asked == []


async def test_garbage_costs_few_requests(name: str) -> None:
    with FakeRegistry() as registry, _client(registry.url) as client:
        decoder = Decoder(Format.AVRO, client)
        records = [record(b"\0" + number.to_bytes(4, "big") + b"x") for number in range(1_000, 2_000)]
        with suppress(ProxyError):  # on a busy machine, the answers may take longer than the proxy waits
            await decoder.prepare(records)
        assert len(registry.asked) <= 100
        for incoming in records:
            with pytest.raises(ProxyError):
                decoder.value(incoming)


async def test_a_registry_that_is_down_is_503_and_what_is_known_is_still_read(
    client: RegistryClient, name: str
) -> None:
    with FakeRegistry() as registry, _client(registry.url) as own:
        one = registry.register(f"{name}-value", '"string"')
        decoder = Decoder(Format.AVRO, own)
        known = record(b"\0" + one.id.to_bytes(4, "big") + b"\x02a")
        await decoder.prepare([known])
        registry.stop()
        with pytest.raises(ProxyError, match=registry.url) as error:
            await decoder.prepare([known, record(b"\0\0\0\0\x7fx")])
        assert error.value.code == 503
        await decoder.prepare([known])
        assert decoder.value(known) == "a"


def _client(url: str) -> RegistryClient:
    return RegistryClient(RegistryClientSettings.parse({"url": url, "max.retries": 0}))
