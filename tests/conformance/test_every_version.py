"""Every API in every advertised version: kio, which shares no code with us, reads the answer to its last byte."""

import struct
import zlib
from collections.abc import Iterator

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader

from core_broker.protocol.fields import Message
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.join_group import JoinGroupRequest
from tests.support.apis import MUST
from tests.support.broker import BrokerProcess
from tests.support.messages import MessageFactory, message_classes
from tests.support.wire import API_VERSIONS, WireConnection, frame

REQUESTS = {cls.API_KEY: cls for cls in message_classes() if cls.__name__.endswith("Request")}
ROUNDS = 4
WITH_TIMES_OF_ERRORS = (38, 39, 40)
"""APIs that answer a refusal with times of -1, as in Kafka; kio does not read these."""
WITH_ENUMS = (29, 30, 31)
"""APIs that close the connection for a 0 where a kind of resource, pattern, operation or permission is expected."""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of its own, for requests that mean nothing."""
    with BrokerProcess(tmp_path_factory.mktemp("stranger")) as process:
        yield process


def test_only_what_is_in_the_list_is_advertised(stranger: BrokerProcess) -> None:
    assert set(advertised(stranger)) == set(MUST)


def advertised(broker: BrokerProcess) -> dict[int, tuple[int, int]]:
    with WireConnection(broker.bootstrap) as connection:
        answer = connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse)
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def make_answerable(request: Message) -> Message:
    """Random waits would outlast the test, and acks=0 has no answer at all."""
    changes = {"max_wait_ms": 0, "timeout_ms": 500, "acks": 1, "transaction_timeout_ms": 60_000}
    if isinstance(request, JoinGroupRequest):
        changes |= {"session_timeout_ms": 6_000, "rebalance_timeout_ms": 500}
    for name, value in changes.items():
        if hasattr(request, name):
            setattr(request, name, value)
    if request.API_KEY in WITH_ENUMS:
        for part in (request, *getattr(request, "creations", ()), *getattr(request, "filters", ())):
            for name in part.__struct_fields__:
                if getattr(part, name) == 0:
                    setattr(part, name, 3)
    return request


def answer_to(connection: WireConnection, request: Message, version: int) -> tuple[bytes, int]:
    """The answer without its length, and where its body begins."""
    connection.send(frame(request, version, correlation_id=77))
    answer = connection.receive()
    assert struct.unpack_from(">i", answer) == (77,)
    is_flexible = version >= request.FLEXIBLE_SINCE and request.API_KEY != API_VERSIONS
    if is_flexible:
        assert answer[4] == 0, "tags in a response header that nobody asked for"
    return answer, 5 if is_flexible else 4


@pytest.mark.parametrize("key", MUST)
def test_every_version_is_answered_in_its_own_shape(stranger: BrokerProcess, key: int) -> None:
    found = advertised(stranger)[key]
    cls = REQUESTS[key]
    factory = MessageFactory(zlib.crc32(cls.__name__.encode()), strict_times=True, array_max=2)
    with WireConnection(stranger.bootstrap) as connection:
        for version in range(max(found[0], cls.VERSIONS[0]), found[1] + 1):
            read = entity_reader(load_response_schema(key, version))
            for request in (cls(), *(factory.make(cls, version) for _ in range(ROUNDS))):
                answer, body = answer_to(connection, make_answerable(request), version)
                if key in WITH_TIMES_OF_ERRORS:
                    answer = answer.replace(b"\xff" * 8, bytes(8))
                _, size = read(answer, body)
                assert body + size == len(answer), f"version {version}: {len(answer) - body - size} bytes are left"
