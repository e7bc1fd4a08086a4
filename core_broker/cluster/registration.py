"""This broker's registration with the active controller, and the heartbeats that keep it (KIP-631).

The life of a broker: it registers, which gives it an epoch; it replays the metadata log up to its registration; it asks
to be unfenced, and then serves clients; before it stops, it asks for its leaders to be moved.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.features import SUPPORTED_FEATURES, unsupported
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.registration_request import registration_request
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_STARTING_INTERVAL_SECONDS: Final = 0.01
_STOPPING_INTERVAL_SECONDS: Final = 0.05
SHUTDOWN_SECONDS: Final = 30.0
"""How long a stop waits until the controller has moved the leaders, as long as there is a controller."""


_CHECK_CONTROLLERS: Final = (
    "check that the controllers run and that controller.quorum.bootstrap.servers or controller.quorum.voters names them"
)
_NO_RIGHTS: Final = (
    "the principal of this broker may not act as one; add it to super.users of all nodes, or allow it CLUSTER_ACTION"
)


class BrokerRegistration:
    """The registration of one run of this broker."""

    def __init__(
        self,
        channel: ControllerChannel,
        *,
        settings: BrokerSettings,
        cluster_id: str,
        endpoints: AdvertisedEndpoints,
        log_dirs: Sequence[bytes],
        previous_epoch: int,
        image: Callable[[], MetadataImage],
        has_quorum: Callable[[], bool],
    ) -> None:
        """`previous_epoch` is that of a run that ended cleanly, else -1; `image` is what this broker has replayed.

        `has_quorum` says whether there may be a controller, as far as this node knows.
        """
        self.epoch = -1
        """The broker epoch; -1 before the registration."""
        self._channel = channel
        self._settings = settings
        self._cluster_id = cluster_id
        self._endpoints = endpoints
        self._log_dirs = log_dirs
        self._previous_epoch = previous_epoch
        self._image = image
        self._has_quorum = has_quorum
        self._answered_at = 0.0
        """When the controller last answered a heartbeat."""
        self._is_stopping = False

    async def register_with(self, controller: Controller) -> None:
        """Register with the controller in this process, when there is no other broker; unfences this one at once.

        Its partitions have no other leader, so after a clean stop they keep it, and nothing is written about them.
        """
        self.epoch = await controller.register_broker(self._request(), unfence=True)

    def _request(self) -> BrokerRegistrationRequest:
        return registration_request(
            self._settings,
            self._endpoints,
            cluster_id=self._cluster_id,
            incarnation_id=os.urandom(16),
            log_dirs=self._log_dirs,
            previous_epoch=self._previous_epoch,
        )

    async def register(self) -> None:
        """Register, and try again until the controller accepts it. Raises BrokerError when the time is up.

        As Kafka's, a broker goes on after a refusal: the operator may do what the log asks for meanwhile.
        """
        request = self._request()
        limit_ms = self._settings.initial_broker_registration_timeout_ms
        error = BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"no controller has answered; {_CHECK_CONTROLLERS}")
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    try:
                        self.epoch = await self._try_to_register(request)
                    except BrokerError as failure:
                        error = failure
                    else:
                        log.info("registered with the controller", extra={"broker_epoch": self.epoch})
                        return
                    extra = {"error": error.code.name, "reason": error.message}
                    log.warning("not registered yet, trying again", extra=extra)
                    await asyncio.sleep(self._settings.broker_heartbeat_interval_ms / 1000)
        except TimeoutError:
            text = f"this broker could not register within initial.broker.registration.timeout.ms={limit_ms}"
            raise BrokerError(error.code, f"{text}: {error.message}") from None

    async def _try_to_register(self, request: BrokerRegistrationRequest) -> int:
        """Send the request once; returns the broker epoch. Raises BrokerError."""
        try:
            # A response that is lost must not cost all the time; the controller takes a repeated request for the same.
            timeout_seconds = self._settings.broker_session_timeout_ms / 2000
            response = await self._channel.call(request, timeout_seconds=timeout_seconds)
        except BrokerError as error:
            raise BrokerError(error.code, f"{error.message}; {_CHECK_CONTROLLERS}") from None
        assert isinstance(response, BrokerRegistrationResponse)
        code = ErrorCode(response.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise BrokerError(code, _NO_RIGHTS)
        if code is ErrorCode.UNSUPPORTED_VERSION:
            raise BrokerError(code, _missing_features(self._image().features))
        if code:
            raise BrokerError(code)
        return response.broker_epoch

    async def wait_until_caught_up(self) -> None:
        """Return once this broker has replayed the metadata log up to its registration."""
        await self._repeat(_STARTING_INTERVAL_SECONDS, lambda response: response.is_caught_up, want_fence=True)

    async def wait_until_unfenced(self) -> None:
        """Return once the controller lets this broker serve clients."""
        await self._repeat(_STARTING_INTERVAL_SECONDS, lambda response: not response.is_fenced)

    async def run(self) -> None:
        """Send heartbeats until this broker stops: after those of `shut_down`, an ordinary one would unfence it."""
        interval_seconds = self._settings.broker_heartbeat_interval_ms / 1000
        await asyncio.sleep(interval_seconds)
        while not self._is_stopping:
            await self._heartbeat()
            await asyncio.sleep(interval_seconds)

    async def shut_down(self) -> None:
        """Return once the controller has moved this broker's leaders, or there is no reason to wait for it any more.

        Without a quorum no other broker can take over. And after a session without an answer this broker is fenced, if
        there is a controller that it cannot reach.
        """
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        self._answered_at = began_at = loop.time()
        session_seconds = self._settings.broker_session_timeout_ms / 1000
        handover = asyncio.ensure_future(
            self._repeat(_STOPPING_INTERVAL_SECONDS, lambda response: response.should_shut_down, want_shut_down=True)
        )
        try:
            while not (await asyncio.wait({handover}, timeout=_STOPPING_INTERVAL_SECONDS))[0]:
                if not self._has_quorum():
                    reason = "most controllers have ended"
                elif loop.time() - self._answered_at >= session_seconds:
                    reason = "the controller does not answer"
                elif loop.time() - began_at >= SHUTDOWN_SECONDS:
                    reason = "the controller has not moved the leaders in time"
                else:
                    continue
                log.warning("stopping although this broker may still lead partitions", extra={"reason": reason})
                return
            handover.result()
        finally:
            handover.cancel()

    async def _repeat(
        self,
        interval_seconds: float,
        is_enough: Callable[[BrokerHeartbeatResponse], bool],
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
    ) -> None:
        """Send heartbeats until a response is as wanted."""
        while True:
            response = await self._heartbeat(want_fence=want_fence, want_shut_down=want_shut_down)
            if response is not None and is_enough(response):
                return
            await asyncio.sleep(interval_seconds)

    async def _heartbeat(
        self, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> BrokerHeartbeatResponse | None:
        """Send a heartbeat; None if it failed."""
        request = BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._image().offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )
        try:
            # As long as half a session: after that there is time for another one.
            timeout_seconds = self._settings.broker_session_timeout_ms / 2000
            response = await self._channel.call(request, timeout_seconds=timeout_seconds)
        except BrokerError as error:
            log.warning("heartbeat failed", extra={"error": error.code.name, "reason": error.message})
            return None
        assert isinstance(response, BrokerHeartbeatResponse)
        self._answered_at = asyncio.get_running_loop().time()
        if response.error_code:
            log.warning("heartbeat was refused", extra={"error": ErrorCode(response.error_code).name})
            return None
        return response


def _missing_features(finalized: Mapping[str, int]) -> str:
    """Why the controller finds that this broker does not support a feature, and what to do about it."""
    missing = list(unsupported(finalized))
    if not missing:
        # The metadata has not been replayed yet, or is at a level that only the controller objects to.
        ranges = ", ".join(f"{name} {low} to {high}" for name, (low, high) in SUPPORTED_FEATURES.items())
        return f"the cluster uses a feature at a level that this broker does not support; it supports {ranges}"
    found = ", ".join(f"{name}={level}" for name, level, _ in missing)
    lower = " ".join(f"--feature {name}={high}" for name, _, high in missing)
    return (
        f"the cluster uses {found}, which this broker does not support; "
        f"if nothing needs it, run: kafka-features --bootstrap-server HOST:PORT downgrade {lower}"
    )
