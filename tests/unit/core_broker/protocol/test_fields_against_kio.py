"""Our codec and kio's, which is generated from Kafka's own definitions, agree byte for byte in both directions."""

import io
import re
import zlib
from typing import Any

import pytest
from kio.index import UnknownAPIKey, UnknownEntity, load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message, decode, encode
from tests.support.messages import MessageFactory, message_classes, stored_classes

ROUNDS = 25
"""Random instances for each message and version; each differs in nulls, tags, lengths and extreme numbers."""

REQUESTS_AND_RESPONSES = message_classes()
DATA = [cls for cls in stored_classes() if cls.__module__.endswith((".control", ".consumer_protocol"))]


def versions_of(cls: type[Message]) -> list[int]:
    return list(range(cls.VERSIONS[0], cls.VERSIONS[1] + 1))


def kio_schema(cls: type[Message], version: int) -> Any:
    if cls.API_KEY is None:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        return load_entity_schema(name, version, EntityType.data)
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    return load(cls.API_KEY, version)


def common_pairs(classes: list[type[Message]]) -> list[tuple[type[Message], int]]:
    pairs = []
    for cls in classes:
        for version in versions_of(cls):
            try:
                kio_schema(cls, version)
            except (UnknownAPIKey, UnknownEntity):
                continue
            pairs.append((cls, version))
    return pairs


COMMON = common_pairs(REQUESTS_AND_RESPONSES + DATA)


@pytest.mark.parametrize("cls,version", COMMON, ids=lambda value: getattr(value, "__name__", f"v{value}"))
def test_kio_reads_and_writes_the_same_bytes(cls: type[Message], version: int) -> None:
    schema = kio_schema(cls, version)
    read, write = entity_reader(schema), entity_writer(schema)
    factory = MessageFactory(zlib.crc32(f"{cls.__name__}{version}".encode()), strict_times=True)
    for _ in range(ROUNDS):
        ours = factory.make(cls, version)
        data = bytes(encode(ours, version))
        theirs, size = read(data, 0)
        assert size == len(data)
        buffer = io.BytesIO()
        write(buffer, theirs)
        assert buffer.getvalue() == data
        assert decode(cls, version, buffer.getvalue()) == ours


def test_every_api_is_compared_in_every_version_that_kio_knows() -> None:
    compared = {(cls.__name__, version) for cls, version in COMMON}
    missing = {(c.__name__, v) for c in REQUESTS_AND_RESPONSES + DATA for v in versions_of(c)} - compared
    assert missing == set()
    assert len(COMMON) > 500


@pytest.mark.parametrize("cls", REQUESTS_AND_RESPONSES, ids=lambda cls: cls.__name__)
def test_flexible_versions_begin_where_kio_says(cls: type[Message]) -> None:
    for version in versions_of(cls):
        assert kio_schema(cls, version).__flexible__ == (version >= cls.FLEXIBLE_SINCE)


def test_error_codes_are_those_of_kio() -> None:
    theirs = {code.value: (code.name.upper(), code.retriable) for code in KioErrorCode}
    ours = {code.value: (code.name, code.retriable) for code in ErrorCode}
    assert ours == theirs
