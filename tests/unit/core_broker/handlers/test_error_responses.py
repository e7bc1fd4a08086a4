"""Every request that is forwarded has a response for the case that the controller cannot be reached."""

import zlib

import msgspec
import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access_table import BROKER_ROWS, CONTROLLER_ROWS, Row
from core_broker.handlers.api import Api
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.table import BROKER_APIS, CONTROLLER_APIS
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from core_broker.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from core_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.messages import MessageFactory

TIMED_OUT = BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer")

_CHECKED = [
    pytest.param(api, rows, id=f"{kind}-{api.name}")
    for kind, apis, rows in (("broker", BROKER_APIS, BROKER_ROWS), ("controller", CONTROLLER_APIS, CONTROLLER_ROWS))
    for api in apis
    if any(need.is_whole for need in rows[api.key].needs)
]
_SILENT = {("DescribeLogDirs", version) for version in (1, 2)}
"""Versions without a place for an error: the response is empty, as in Kafka."""


def codes_in(message: Message) -> list[int]:
    """All error codes of a response, at any depth."""
    codes = []
    for name, value in msgspec.structs.asdict(message).items():
        if name in ("error_code", "partition_error_code"):
            codes.append(value)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Message):
                codes += codes_in(item)
    return codes


def decode_again(response: Message, version: int) -> Message:
    """A response as a client of this version reads it."""
    return decode(type(response), version, encode(response, version))


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


@pytest.mark.parametrize("api,rows", _CHECKED)
def test_each_version_of_an_api_that_is_checked_as_a_whole_can_say_so(api: Api, rows: dict[int, Row]) -> None:
    factory = MessageFactory(zlib.crc32(api.name.encode()))
    for version in range(api.first_version, api.last_version + 1):
        needs = [need for need in rows[api.key].needs if need.is_whole]
        refused = next((need.denied for need in needs if need.versions[0] <= version <= need.versions[1]), None)
        if refused is None:
            continue
        # Many requests, since one without items may have no place for the error.
        requests = [factory.make(api.request, version) for _ in range(20)]
        responses = [error_response(request, api.response, BrokerError(refused)) for request in requests]
        shown = {code for response in responses for code in codes_in(decode_again(response, version))}
        assert shown - {0} == (set() if (api.name, version) in _SILENT else {refused}), version


def test_a_refused_request_is_repeated_without_what_is_known_about_it() -> None:
    topics = [ListPartitionReassignmentsTopics("orders", [0, 1])]
    response = error_response(
        ListPartitionReassignmentsRequest(topics=topics), ListPartitionReassignmentsResponse, TIMED_OUT
    )
    assert isinstance(response, ListPartitionReassignmentsResponse)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert [(topic.name, [item.partition_index for item in topic.partitions]) for topic in response.topics] == [
        ("orders", [0, 1])
    ]


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
