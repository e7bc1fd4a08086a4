import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from typing_extensions import override

from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.registration import BrokerRegistration
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from core_broker.settings import BrokerSettings


class ScriptedController:
    """The channel to a controller that answers each request as a test says."""

    def __init__(self, *answers: Message | BrokerError) -> None:
        self.answers = list(answers)
        self.requests: list[Message] = []

    async def call(self, request: Message, *, timeout_seconds: float) -> Message:
        """The next answer; without one, the request times out."""
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else BrokerError(ErrorCode.REQUEST_TIMED_OUT, "no controller")
        await asyncio.sleep(0)
        if isinstance(answer, BrokerError):
            raise answer
        return answer


def registration(
    controller: ScriptedController, *, has_quorum: bool = True, features: dict[str, int] | None = None, **settings: int
) -> BrokerRegistration:
    return BrokerRegistration(
        cast("Any", controller),
        settings=BrokerSettings(
            node_id=4,
            broker_heartbeat_interval_ms=settings.get("interval", 1),
            broker_session_timeout_ms=settings.get("session", 9_000),
            initial_broker_registration_timeout_ms=settings.get("limit", 60_000),
        ),
        cluster_id="c",
        endpoints=AdvertisedEndpoints(endpoints=()),
        log_dirs=[b"d" * 16],
        previous_epoch=17,
        image=lambda: MetadataImage(cluster_id="c", offset=99, features=features or {}),
        has_quorum=lambda: has_quorum,
    )


async def test_a_refused_registration_is_repeated_as_the_same_incarnation() -> None:
    controller = ScriptedController(
        BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        BrokerError(ErrorCode.REQUEST_TIMED_OUT, "lost"),
        BrokerRegistrationResponse(broker_epoch=23),
    )
    broker = registration(controller)
    await broker.register()
    assert broker.epoch == 23
    first, *others = controller.requests
    assert isinstance(first, BrokerRegistrationRequest)
    assert others == [first, first]
    assert (first.broker_id, first.cluster_id, first.previous_broker_epoch) == (4, "c", 17)


async def test_a_broker_that_cannot_register_says_what_to_check() -> None:
    with pytest.raises(BrokerError, match=r"timeout\.ms=9: no controller; check that the controllers run") as refusal:
        await registration(ScriptedController(), limit=9).register()
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT


class RefusingThenSilentController(ScriptedController):
    """A controller that refuses a broker once, and then does not answer."""

    @override
    async def call(self, request: Message, *, timeout_seconds: float) -> Message:
        if self.requests:
            await asyncio.sleep(timeout_seconds)
        return await super().call(request, timeout_seconds=timeout_seconds)


async def test_the_last_answer_counts_and_not_the_attempt_that_ran_out_of_time() -> None:
    answer = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    with pytest.raises(BrokerError) as refusal:
        await registration(RefusingThenSilentController(answer), limit=50).register()
    assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


async def test_a_broker_that_lacks_a_feature_says_which_and_how_to_lower_it(caplog: pytest.LogCaptureFixture) -> None:
    refused = BrokerRegistrationResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    controller = ScriptedController(refused, BrokerRegistrationResponse(broker_epoch=23))
    broker = registration(controller, features={"metadata.version": 30, "share.version": 1, "streams.version": 1})
    await broker.register()
    (record,) = [record for record in caplog.records if "not registered yet" in record.message]
    reason = vars(record)["reason"]
    assert reason.startswith("the cluster uses share.version=1, streams.version=1, which this broker does not support")
    assert reason.endswith("downgrade --feature share.version=0 --feature streams.version=0")
    assert broker.epoch == 23, "it tries again, as the level may have been lowered"


async def test_a_broker_that_has_not_read_the_metadata_says_which_levels_it_supports() -> None:
    refused = BrokerRegistrationResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    with pytest.raises(BrokerError, match=r"it supports .*metadata\.version 7 to 30"):
        await registration(ScriptedController(*[refused] * 1000), limit=9).register()


@pytest.mark.parametrize(
    ("wait", "answer", "wanted"),
    [
        (BrokerRegistration.wait_until_caught_up, BrokerHeartbeatResponse(is_caught_up=True), (True, False)),
        (BrokerRegistration.wait_until_unfenced, BrokerHeartbeatResponse(is_fenced=False), (False, False)),
        (BrokerRegistration.shut_down, BrokerHeartbeatResponse(should_shut_down=True), (False, True)),
    ],
)
async def test_heartbeats_go_on_until_the_controller_agrees(
    wait: Callable[[BrokerRegistration], Awaitable[None]], answer: BrokerHeartbeatResponse, wanted: tuple[bool, bool]
) -> None:
    controller = ScriptedController(
        BrokerHeartbeatResponse(),
        BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        BrokerError(ErrorCode.REQUEST_TIMED_OUT),
        answer,
    )
    await wait(registration(controller))
    last = controller.requests[-1]
    assert isinstance(last, BrokerHeartbeatRequest)
    assert len(controller.requests) == 4
    assert (last.want_fence, last.want_shut_down) == wanted
    assert last.current_metadata_offset == 99


@pytest.mark.parametrize(("has_quorum", "session"), [(False, 3_600_000), (True, 100)])
async def test_a_broker_stops_when_there_is_no_controller_to_move_its_leaders(
    has_quorum: bool, session: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = registration(ScriptedController(), has_quorum=has_quorum, session=session)
    await asyncio.wait_for(broker.shut_down(), 20)
    assert "may still lead partitions" in caplog.text


async def test_a_broker_that_stops_sends_no_ordinary_heartbeat_any_more() -> None:
    controller = ScriptedController(*(BrokerHeartbeatResponse() for _ in range(1000)))
    broker = registration(controller)
    heartbeats = asyncio.ensure_future(broker.run())
    await asyncio.sleep(0.01)
    controller.answers = [BrokerHeartbeatResponse(), BrokerHeartbeatResponse(should_shut_down=True)]
    await broker.shut_down()
    await asyncio.wait_for(heartbeats, 20)
    last = controller.requests[-1]
    assert isinstance(last, BrokerHeartbeatRequest)
    assert last.want_shut_down
