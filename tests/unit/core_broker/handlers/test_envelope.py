"""A forwarded request is handled as if the client had sent it to the controller itself."""

from typing import cast

import msgspec
import pytest

from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.envelope import handler
from core_broker.handlers.session import Session
from core_broker.handlers.table import BY_KEY, _api
from core_broker.protocol.fields import decode
from core_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from core_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from core_broker.protocol.principals import Principal, encode_principal
from core_broker.security.operations import Operation, ResourceType
from tests.support.controller_location import KnownController
from tests.support.handler_world import HandlerWorld
from tests.support.wire import request_body

CREATE = CreateTopicsRequest([CreatableTopic("orders", 2, 1)])
FRAME = request_body(CREATE, 7, correlation_id=4711)
PRINCIPAL = encode_principal(Principal("User", "alice"))
HOST = bytes((192, 0, 2, 50))
SESSION = Session(host="10.0.0.2", listener_name="CONTROLLER", local_host="10.0.0.1")


async def send(world: HandlerWorld, envelope: EnvelopeRequest) -> EnvelopeResponse:
    return await world.call(envelope, EnvelopeResponse, 0)


async def test_the_request_is_handled_and_its_response_returned_with_a_header(world: HandlerWorld) -> None:
    answer = await send(world, EnvelopeRequest(FRAME, PRINCIPAL, HOST))
    assert answer.error_code == 0
    assert answer.response_data is not None
    assert answer.response_data[:5] == (4711).to_bytes(4) + b"\0"
    response = decode(CreateTopicsResponse, 7, answer.response_data, 5)
    assert [(topic.name, topic.error_code, topic.num_partitions) for topic in response.topics] == [("orders", 0, 2)]
    assert "orders" in world.quorum.image.topics


@pytest.mark.parametrize(
    "envelope,code",
    [
        (EnvelopeRequest(FRAME, None, HOST), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(FRAME, b"\0\1" + PRINCIPAL[2:], HOST), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(b"", b"", b""), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(FRAME, PRINCIPAL, b"\1\2\3"), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(b"\0\x13\0", PRINCIPAL, HOST), ErrorCode.UNSUPPORTED_VERSION),
        (EnvelopeRequest(b"\x7f\x13" + FRAME[2:], PRINCIPAL, HOST), ErrorCode.UNSUPPORTED_VERSION),
        (EnvelopeRequest(FRAME[:3] + b"\x63" + FRAME[4:], PRINCIPAL, HOST), ErrorCode.UNSUPPORTED_VERSION),
        (EnvelopeRequest(FRAME[:-9], PRINCIPAL, HOST), ErrorCode.UNSUPPORTED_VERSION),
        (EnvelopeRequest(request_body(DescribeClusterRequest(), 1), PRINCIPAL, HOST), ErrorCode.INVALID_REQUEST),
        (
            EnvelopeRequest(request_body(EnvelopeRequest(FRAME, PRINCIPAL, HOST), 0), PRINCIPAL, HOST),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
    ids=[
        "no principal",
        "newer principal",
        "nothing",
        "address",
        "no header",
        "unknown key",
        "unknown version",
        "cut off",
        "not forwarded",
        "envelope in an envelope",
    ],
)
async def test_an_envelope_that_cannot_be_opened_is_refused(
    world: HandlerWorld, envelope: EnvelopeRequest, code: ErrorCode
) -> None:
    assert await send(world, envelope) == EnvelopeResponse(None, code)
    assert "orders" not in world.quorum.image.topics


class Inner:
    """An API that keeps its context and answers as a test wants."""

    def __init__(self, error: ErrorCode | Exception) -> None:
        self.error = error
        self.context: RequestContext | None = None

    async def handle(self, request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
        self.context = context
        if isinstance(self.error, Exception):
            raise self.error
        return UnregisterBrokerResponse(error_code=self.error, error_message=None)

    async def call(self, world: HandlerWorld) -> EnvelopeResponse:
        """Send a request of this API in an envelope."""
        envelope = EnvelopeRequest(request_body(UnregisterBrokerRequest(3), 0, client_id="admin"), PRINCIPAL, HOST)
        context = RequestContext(world.services, 58, 0, 1, "broker-2", SESSION, world.services.authorizer)
        return await handler([_api(self.handle, 0, 0, is_forwarded=True)])(envelope, context)


async def test_the_handler_sees_the_client_and_not_the_forwarding_broker(world: HandlerWorld) -> None:
    inner = Inner(ErrorCode.NONE)
    await inner.call(world)
    assert inner.context is not None
    seen = inner.context
    assert (str(seen.session.principal), seen.client_host, seen.client_id) == ("User:alice", "192.0.2.50", "admin")
    assert (seen.api_key, seen.api_version, seen.listener_name) == (64, 0, "CONTROLLER")


async def test_the_client_needs_the_right_and_not_the_forwarding_broker(world: HandlerWorld) -> None:
    everything = [(Operation.ALL, kind, "*") for kind in (ResourceType.CLUSTER, ResourceType.TOPIC)]
    world.enforce(*everything, principal="User:ANONYMOUS")
    answer = await send(world, EnvelopeRequest(FRAME, PRINCIPAL, HOST))
    assert answer.error_code == 0
    assert answer.response_data is not None
    (refused,) = decode(CreateTopicsResponse, 7, answer.response_data, 5).topics
    assert (refused.error_code, refused.topic_id) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, bytes(16))
    assert "orders" not in world.quorum.image.topics


async def test_only_nodes_of_the_cluster_may_speak_for_others(world: HandlerWorld) -> None:
    world.enforce((Operation.ALL, ResourceType.TOPIC, "*"))
    answer = await send(world, EnvelopeRequest(FRAME, PRINCIPAL, HOST))
    assert (answer.error_code, answer.response_data) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


async def test_not_controller_in_the_response_becomes_the_error_of_the_envelope(world: HandlerWorld) -> None:
    assert await Inner(ErrorCode.NOT_CONTROLLER).call(world) == EnvelopeResponse(None, ErrorCode.NOT_CONTROLLER)


async def test_a_node_that_is_not_the_controller_handles_no_envelopes(world: HandlerWorld) -> None:
    other = cast("MetadataQuorum", KnownController())
    world.services = msgspec.structs.replace(world.services, metadata=other)
    assert await send(world, EnvelopeRequest(FRAME, PRINCIPAL, HOST)) == EnvelopeResponse(
        None, ErrorCode.NOT_CONTROLLER
    )
    assert "orders" not in world.quorum.image.topics


async def test_another_error_stays_in_the_response(world: HandlerWorld) -> None:
    answer = await Inner(ErrorCode.BROKER_ID_NOT_REGISTERED).call(world)
    assert answer.error_code == 0
    assert answer.response_data is not None
    response = decode(UnregisterBrokerResponse, 0, answer.response_data, 5)
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_a_handler_that_fails_gives_the_client_an_error(world: HandlerWorld) -> None:
    answer = await Inner(ZeroDivisionError()).call(world)
    assert answer.response_data is not None
    response = decode(UnregisterBrokerResponse, 0, answer.response_data, 5)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_apis_of_kafka_are_forwarded_and_no_others() -> None:
    names = {api.name for api in BY_KEY.values() if api.is_forwarded}
    assert names == {
        "AddRaftVoter",
        "AlterClientQuotas",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "AlterUserScramCredentials",
        "CreateAcls",
        "CreateDelegationToken",
        "CreatePartitions",
        "CreateTopics",
        "DeleteAcls",
        "DeleteTopics",
        "DescribeQuorum",
        "ElectLeaders",
        "ExpireDelegationToken",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "RemoveRaftVoter",
        "RenewDelegationToken",
        "UnregisterBroker",
        "UpdateFeatures",
    }
