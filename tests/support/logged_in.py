"""Requests of clients that have logged in, to a broker without sockets."""

from inspect import isawaitable
from typing import TypeVar

from core_broker.handlers.session import Session
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import unpack_header
from core_broker.protocol.principals import Principal
from core_broker.server.dispatch import dispatch
from tests.support.handler_world import HandlerWorld, as_bytes
from tests.support.wire import request_body

R = TypeVar("R", bound=Message)


class LoggedIn:
    """A client of a broker or a controller, and how it is connected."""

    def __init__(
        self,
        world: HandlerWorld,
        name: str,
        *,
        security_protocol: str = "SASL_PLAINTEXT",
        is_by_token: bool = False,
        is_controller_listener: bool = False,
    ) -> None:
        self.principal = Principal("User", name, is_by_token)
        self._world = world
        self._session = Session(
            host="192.0.2.9",
            listener_name="EXTERNAL",
            local_host="192.0.2.1",
            security_protocol=security_protocol,
            is_controller_listener=is_controller_listener,
            principal=self.principal,
        )

    async def call(self, request: Message, response: type[R], version: int) -> R:
        """Send a request through dispatch, as bytes, and read the answer."""
        assert request.API_KEY is not None
        frame = memoryview(bytearray(request_body(request, version, correlation_id=77)))
        answer = dispatch(frame, unpack_header(frame, 0), self._session, self._world.services)
        data = as_bytes(await answer if isawaitable(answer) else answer)
        apis = CONTROLLER_BY_KEY if self._session.is_controller_listener else BROKER_BY_KEY
        is_flexible = apis[request.API_KEY].has_flexible_response_header(version)
        return decode(response, version, data, 9 if is_flexible else 8)
