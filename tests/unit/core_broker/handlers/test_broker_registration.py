"""BrokerRegistration and BrokerHeartbeat of a second broker, over the wire."""

import pytest

from core_broker.cluster.features import SUPPORTED_FEATURES
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from tests.support.handler_world import HandlerWorld


def registration(world: HandlerWorld, **fields: object) -> BrokerRegistrationRequest:
    values: dict[str, object] = {
        "broker_id": 2,
        "cluster_id": world.quorum.cluster_id,
        "incarnation_id": b"2" * 16,
        "listeners": [Listener("PLAINTEXT", "b2", 9092, 0)],
        "features": [Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
        "rack": None,
        "log_dirs": [b"d" * 16],
        **fields,
    }
    return BrokerRegistrationRequest(**values)  # type: ignore[arg-type] # fields by name


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_a_broker_registers_and_is_unfenced_by_its_heartbeat(world: HandlerWorld, version: int) -> None:
    response = await world.call(registration(world), BrokerRegistrationResponse, version)
    assert (response.error_code, response.broker_epoch) == (0, world.quorum.image.brokers[2].epoch)
    heartbeat = BrokerHeartbeatRequest(2, response.broker_epoch, world.quorum.image.offset)
    answer = await world.call(heartbeat, BrokerHeartbeatResponse, version - 2)
    assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, True, False)
    assert [broker.broker_id for broker in world.quorum.image.live_brokers()] == [1, 2]


async def test_versions_without_log_directories_are_refused_at_this_metadata_version(world: HandlerWorld) -> None:
    for version in (0, 1):
        response = await world.call(registration(world), BrokerRegistrationResponse, version)
        assert (response.error_code, response.broker_epoch) == (ErrorCode.INVALID_REGISTRATION, -1)


async def test_a_broker_of_another_cluster_is_refused(world: HandlerWorld) -> None:
    request = registration(world, cluster_id="other")
    response = await world.call(request, BrokerRegistrationResponse, 4)
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


async def test_a_heartbeat_of_an_unknown_broker_is_stale(world: HandlerWorld) -> None:
    answer = await world.call(BrokerHeartbeatRequest(7, 1), BrokerHeartbeatResponse, 2)
    assert (answer.error_code, answer.is_fenced) == (ErrorCode.STALE_BROKER_EPOCH, True)
