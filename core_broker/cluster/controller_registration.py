"""This node's registration as a controller: what the others know about its listeners and features (KIP-919)."""

import asyncio
import logging
import os
from typing import Final

from core_broker.cluster.controller.registrations import CONTROLLERS_SINCE
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.features import METADATA_VERSION, SUPPORTED_FEATURES
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 5.0


class ControllerRegistration:
    """The registration of one run of this node, which every controller needs, whether it votes or not."""

    def __init__(
        self,
        quorum: MetadataQuorum,
        channel: ControllerChannel,
        *,
        settings: BrokerSettings,
        endpoints: AdvertisedEndpoints,
    ) -> None:
        """`endpoints` are those of the controller listeners."""
        self._quorum = quorum
        self._channel = channel
        self._settings = settings
        self._request = ControllerRegistrationRequest(
            controller_id=settings.node_id,
            incarnation_id=os.urandom(16),
            listeners=[Listener(e.listener, e.host, e.port, e.security_protocol) for e in endpoints.endpoints],
            features=[Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
        )

    async def run(self) -> None:
        """Register, and check every now and then until cancelled whether the metadata still say so."""
        if not self._settings.is_controller or not self._request.listeners:
            return
        while True:
            if self._is_due():
                await self._register()
            await asyncio.sleep(self._settings.controller_quorum_fetch_timeout_ms / 2000)

    def _is_due(self) -> bool:
        image = self._quorum.image
        known = image.controllers.get(self._request.controller_id)
        is_known = known is not None and known.incarnation_id == self._request.incarnation_id
        return not is_known and image.features.get(METADATA_VERSION, 0) >= CONTROLLERS_SINCE

    async def _register(self) -> None:
        try:
            response = await self._channel.call(self._request, timeout_seconds=_TIMEOUT_SECONDS)
        except BrokerError as error:
            log.info("this controller is not registered yet", extra={"error": error.code.name, "reason": error.message})
            return
        assert isinstance(response, ControllerRegistrationResponse)
        if response.error_code:
            code = ErrorCode(response.error_code).name
            log.warning("registration was refused", extra={"error": code, "reason": response.error_message})
