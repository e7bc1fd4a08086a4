"""Requests to the active controller: those of this broker, and those of clients that it forwards (KIP-590)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.peers.peers import Address, PeerError, Peers
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import CORRELATION_ID_BYTES, encode_request
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.principals import Principal, encode_host, encode_principal

R = TypeVar("R", bound=Message)
_RETRY_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 0.25
"""How often to check, during a request, whether there is another controller by now."""
_ITEMS_MAX: Final = 10_000
"""Parts of a response that are searched for NOT_CONTROLLER."""


class Requester(msgspec.Struct, frozen=True):
    """The client in whose name a request is sent."""

    principal: Principal
    host: str
    client_id: str | None = None


class ControllerLocation(Protocol):
    """Where the active controller is, as far as this node knows."""

    @property
    def is_leader(self) -> bool:
        """Whether it is this node."""

    @property
    def leader_id(self) -> int:
        """Its id, or -1."""

    @property
    def controller_address(self) -> Address | None:
        """Its address, if known."""

    async def wait_for_leader(self, timeout_seconds: float) -> None:
        """Return when a leader is known, or when the time is up."""


class ControllerChannel:
    """The way to the active controller, which may be this process."""

    def __init__(
        self, peers: Peers, quorum: ControllerLocation, *, local: Callable[[Message], Awaitable[Message]]
    ) -> None:
        self._peers = peers
        self._quorum = quorum
        self._local = local

    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        """Send a request, again and again until the active controller answers.

        Raises BrokerError(REQUEST_TIMED_OUT). A request whose response was lost is handled twice.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        reason = "the controller is unknown"
        while (seconds_left := deadline - loop.time()) > 0:
            try:
                response = await self._try(request, seconds_left)
                if not has_not_controller_error(response):
                    return response
                reason = f"node {self._quorum.leader_id} is not the active controller"
            except (PeerError, TimeoutError) as error:
                reason = str(error) or reason
            except BrokerError as error:
                if error.code != ErrorCode.NOT_CONTROLLER:
                    raise
                reason = error.message
            await asyncio.sleep(min(_RETRY_SECONDS, max(deadline - loop.time(), 0)))
        message = f"{_name(request)} got no response from the controller in time: {reason}"
        raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, message)

    async def forward(
        self, frame: bytes, *, principal: Principal, client_host: str, timeout_seconds: float = 60.0
    ) -> bytes:
        """Forward a request of a client, with its header; returns the response with its header.

        Raises BrokerError: UNSUPPORTED_VERSION if the controller cannot decode the request, so that the client has to
        negotiate versions again; REQUEST_TIMED_OUT; UNKNOWN_SERVER_ERROR.
        """
        envelope = EnvelopeRequest(frame, encode_principal(principal), encode_host(client_host))
        response = await self.call(envelope, timeout_seconds=timeout_seconds)
        assert isinstance(response, EnvelopeResponse)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "the controller cannot decode the request")
        if response.error_code or response.response_data is None:
            message = f"the controller refused a forwarded request with error {response.error_code}"
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        return response.response_data

    async def call_for(
        self, client: Requester, request: Message, response: type[R], *, timeout_seconds: float = 30.0
    ) -> R:
        """Send a request of this broker in the name of a client, so that the controller asks what the client may do."""
        version = request.VERSIONS[1]
        frame = encode_request(request, version, 0, client.client_id)
        answer = await self.forward(
            frame, principal=client.principal, client_host=client.host, timeout_seconds=timeout_seconds
        )
        is_flexible = version >= request.FLEXIBLE_SINCE
        return decode(response, version, answer, CORRELATION_ID_BYTES + is_flexible)

    async def _try(self, request: Message, timeout_seconds: float) -> Message:
        """Send the request once. Raises PeerError or TimeoutError."""
        if self._quorum.is_leader:
            async with asyncio.timeout(timeout_seconds):
                return await self._local(request)
        address = self._quorum.controller_address
        if address is None:
            async with asyncio.timeout(timeout_seconds):
                await self._quorum.wait_for_leader(timeout_seconds)
            raise PeerError("the controller is unknown")
        return await self._call_peer(address, request, timeout_seconds)

    async def _call_peer(self, address: Address, request: Message, timeout_seconds: float) -> Message:
        """Send the request to a controller, and give up as soon as another one is known. Raises PeerError."""
        # Each kind of request has a connection of its own: a broker's heartbeats must not wait for a client's topics.
        call = asyncio.ensure_future(
            self._peers.call(address, request, timeout_seconds=timeout_seconds, purpose=_name(request))
        )
        try:
            while not (await asyncio.wait({call}, timeout=_LOOK_SECONDS))[0]:
                if self._quorum.is_leader or self._quorum.controller_address not in (None, address):
                    raise PeerError(f"{address} did not answer before there was another controller")
            return call.result()
        finally:
            call.cancel()


def has_not_controller_error(response: Message) -> bool:
    """Whether a response has the error NOT_CONTROLLER, at its top or for an item."""
    found: list[Message] = [response]
    for item in found:
        for name in item.__struct_fields__:
            value = getattr(item, name)
            if value == ErrorCode.NOT_CONTROLLER and name.endswith("error_code"):
                return True
            if isinstance(value, Message):
                found.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Message):
                found.extend(value[: _ITEMS_MAX - len(found)] if len(found) < _ITEMS_MAX else ())
    return False


def _name(request: Message) -> str:
    return type(request).__name__.removesuffix("Request")
