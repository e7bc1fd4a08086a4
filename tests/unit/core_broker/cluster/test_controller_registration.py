"""A controller registers itself with whichever controller is active, once in each run."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

from core_broker.cluster.controller.registrations import plan_controller_registration
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.controller_registration import ControllerRegistration
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.metadata import EndpointImage, MetadataDraft, MetadataImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from core_broker.settings import BrokerSettings

ENDPOINTS = AdvertisedEndpoints(endpoints=(EndpointImage("CONTROLLER", "here", 9093, 0),))
SETTINGS = BrokerSettings(node_id=3, controller_quorum_fetch_timeout_ms=1)


@dataclass
class Metadata:
    """What the node knows of the cluster, and the active controller that changes it."""

    level: int = 30
    failures: int = 0
    requests: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = MetadataImage(cluster_id="c", features={"metadata.version": self.level})

    async def call(self, request: Message, *, timeout_seconds: float) -> Message:
        assert isinstance(request, ControllerRegistrationRequest)
        self.requests.append(request)
        if len(self.requests) <= self.failures:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the controller is unknown")
        draft = MetadataDraft(self.image)
        draft.replay(plan_controller_registration(request, self.image))
        self.image = draft.finish(offset=1, epoch=1)
        return ControllerRegistrationResponse(error_message=None)


async def run(metadata: Metadata, settings: BrokerSettings = SETTINGS) -> None:
    quorum, channel = cast(MetadataQuorum, metadata), cast(ControllerChannel, metadata)
    registration = ControllerRegistration(quorum, channel, settings=settings, endpoints=ENDPOINTS)
    task = asyncio.create_task(registration.run())
    for _ in range(50):
        await asyncio.sleep(0.001)
    task.cancel()


async def test_a_controller_registers_once_in_each_run() -> None:
    metadata = Metadata(failures=2)
    await run(metadata)
    assert len(metadata.requests) == 3, "it tries again after a failure, and not after a success"
    first = metadata.image.controllers[3]
    assert first.endpoints == ENDPOINTS.endpoints
    assert ("kraft.version", 0, 1) in first.features
    await run(metadata)
    assert metadata.image.controllers[3].incarnation_id != first.incarnation_id


async def test_a_controller_does_not_register_before_its_record_is_known() -> None:
    metadata = Metadata(level=14)
    await run(metadata)
    assert metadata.requests == []


async def test_a_node_that_is_only_a_broker_does_not_register_as_controller() -> None:
    metadata = Metadata()
    settings = BrokerSettings(node_id=3, process_roles=("broker",), controller_quorum_bootstrap_servers=("h:1",))
    await run(metadata, settings)
    assert metadata.requests == []
