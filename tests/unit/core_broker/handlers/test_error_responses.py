"""Every request that is forwarded has a response for the case that the controller cannot be reached."""

import zlib

import msgspec
import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.api import Api
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.table import BROKER_APIS
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from core_broker.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.messages import MessageFactory

TIMED_OUT = BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer")


def codes_in(message: Message) -> list[int]:
    """All error codes of a response, at any depth."""
    codes = []
    for name, value in msgspec.structs.asdict(message).items():
        if name == "error_code":
            codes.append(value)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Message):
                codes += codes_in(item)
    return codes


@pytest.mark.parametrize("api", [api for api in BROKER_APIS if api.is_forwarded], ids=lambda api: api.name)
def test_each_version_of_a_forwarded_api_can_say_what_failed(api: Api) -> None:
    factory = MessageFactory(zlib.crc32(api.name.encode()))
    for version in range(api.first_version, api.last_version + 1):
        for _ in range(20):
            request = factory.make(api.request, version)
            has_items = any(isinstance(value, list) and value for value in msgspec.structs.asdict(request).values())
            response = error_response(request, api.response, TIMED_OUT)
            codes = codes_in(decode(api.response, version, encode(response, version)))
            assert set(codes_in(response)) <= {ErrorCode.REQUEST_TIMED_OUT}
            assert not has_items or codes


def test_an_old_client_finds_the_error_of_an_election_at_the_partitions() -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions("orders", [0, 1])])
    response = error_response(request, ElectLeadersResponse, TIMED_OUT)
    decoded = decode(ElectLeadersResponse, 0, encode(response, 0))
    assert codes_in(decoded.replica_election_results[0]) == [ErrorCode.REQUEST_TIMED_OUT] * 2


def test_topics_are_named_as_in_the_request() -> None:
    response = error_response(DeleteTopicsRequest(topic_names=["a", "b"]), DeleteTopicsResponse, TIMED_OUT)
    assert isinstance(response, DeleteTopicsResponse)
    assert [(topic.name, topic.error_message) for topic in response.responses] == [
        ("a", "the controller did not answer"),
        ("b", "the controller did not answer"),
    ]


def test_an_error_without_a_place_in_the_response_is_raised() -> None:
    class NoError(Message):
        pass

    with pytest.raises(BrokerError, match="REQUEST_TIMED_OUT"):
        error_response(MetadataRequest(), NoError, TIMED_OUT)
    assert isinstance(error_response(MetadataRequest(), MetadataResponse, TIMED_OUT), MetadataResponse)
