import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import RecordRenderer, v2_renderer, v3_renderer
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings


@pytest.fixture
def registry() -> Iterator[RegistryClient]:
    """A registry that is never called."""
    with RegistryClient(RegistryClientSettings.parse({"url": "http://127.0.0.1:9"})) as client:
        yield client


def record(**changes: Any) -> IncomingRecord:
    usual: dict[str, Any] = {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp_ms": 5,
        "timestamp_type": "CreateTime",
        "key": b"k",
        "value": b"[1]",
    }
    return IncomingRecord(**(usual | changes))


def as_v3(registry: RegistryClient, key: Format, value: Format) -> RecordRenderer:
    return v3_renderer(Decoder(key, registry), Decoder(value, registry), key_format=key, value_format=value)


def as_v2(registry: RegistryClient, format_: Format, *, is_plain: bool = False) -> RecordRenderer:
    decoder = Decoder(format_, registry)
    return v2_renderer(decoder, decoder, is_plain=is_plain)


def test_lines_have_no_newline_inside(registry: RegistryClient) -> None:
    spread = [record(value=b'{"a":\n1}'), record(value=b'{"a":\r1}'), record(value=b"2")]
    for renderer in (as_v3(registry, Format.STRING, Format.JSON), as_v2(registry, Format.JSON)):
        text = renderer.render_lines([msgspec.structs.replace(one, key=b"1") for one in spread])
        assert text.count(b"\n") == 3
        assert b"\r" not in text
        assert len([json.loads(line) for line in text.splitlines()]) == 3


def test_no_records_are_no_lines_and_an_empty_list(registry: RegistryClient) -> None:
    renderer = as_v2(registry, Format.BINARY)
    assert (renderer.render_lines([]), renderer.render_list([])) == (b"", b"[]")


def test_plain_records_of_v2_have_the_fields_of_confluent_alone(registry: RegistryClient) -> None:
    [rendered] = json.loads(as_v2(registry, Format.BINARY, is_plain=True).render_list([record(headers=(("a", b"1"),))]))
    assert rendered == {"topic": "t", "key": "aw==", "value": "WzFd", "partition": 1, "offset": 7}


def test_records_without_a_timestamp_have_null(registry: RegistryClient) -> None:
    timeless = [record(timestamp_ms=-1, timestamp_type="")]
    assert json.loads(as_v2(registry, Format.BINARY).render_list(timeless))[0]["timestamp"] is None
    [rendered] = json.loads(as_v3(registry, Format.BINARY, Format.BINARY).render_list(timeless))
    assert (rendered["timestamp"], rendered["timestamp_type"]) == (None, None)


def test_a_bad_key_and_a_bad_value_are_rendered_each_on_its_own(registry: RegistryClient) -> None:
    bad = [record(key=b"\xff"), record(key=b"1", value=b"{"), record(key=b"\xff", value=b"\xfe")]
    rendered = json.loads(as_v2(registry, Format.JSON).render_list(bad))
    assert [(one["key"], one["value"]) for one in rendered] == [(None, [1]), (1, None), (None, None)]
    assert [(one.get("key_raw"), one.get("value_raw")) for one in rendered] == [
        ("/w==", None),
        (None, "ew=="),
        ("/w==", "/g=="),
    ]
    assert {one["error_code"] for one in rendered} == {42207}


def test_data_that_json_cannot_express_does_not_hide_the_other_records(registry: RegistryClient) -> None:
    class Odd(Decoder):
        @override
        def value(self, record: IncomingRecord) -> object:
            return object() if record.offset == 8 else 1

    odd, key = Odd(Format.AVRO, registry), Decoder(Format.STRING, registry)
    records = [record(offset=offset) for offset in (7, 8, 9)]
    third = v3_renderer(key, odd, key_format=Format.STRING, value_format=Format.AVRO)
    for rendered in (
        json.loads(third.render_list(records)),
        list(map(json.loads, third.render_lines(records).splitlines())),
    ):
        assert [one["offset"] for one in rendered] == [7, 8, 9]
        assert (rendered[1]["value"]["data"], rendered[1]["value"]["error_code"]) == ("WzFd", 42207)
    second = json.loads(v2_renderer(key, odd, is_plain=False).render_list(records))
    assert [one.get("value_raw") for one in second] == [None, "WzFd", None]
