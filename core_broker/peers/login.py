"""How this node proves to another one who it is: SASL as a client, after ApiVersions and before any other request."""

import asyncio
from typing import Final, Protocol, TypeVar

from core_broker.errors import ErrorCode
from core_broker.peers.errors import PeerAuthenticationError, PeerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.security.sasl.client import Conversation

_FRAMED_SINCE: Final = 1
"""The version of SaslHandshake after which messages of the mechanism are requests like others."""
_STEPS_MAX: Final = 10
"""No mechanism needs more; a peer that asks for more is not one of ours."""

R = TypeVar("R", bound=Message)


class Login(Protocol):
    """The mechanism and the credentials of this node on one listener of others."""

    @property
    def mechanism(self) -> str:
        """Its name, such as SCRAM-SHA-512."""

    @property
    def hint(self) -> str:
        """Which settings to look at when a login fails."""

    async def begin(self) -> Conversation:
        """A conversation for one login. Raises ValueError if there are no credentials, such as a token, at the time."""


class Exchange(Protocol):
    """What a login needs of a connection."""

    async def negotiate(self, request: type[Message], *, deadline: float) -> int:
        """The highest version of a request that both nodes know."""

    async def exchange(self, request: Message, response: type[R], *, version: int, deadline: float) -> R:
        """Send a request and wait for its response."""


async def log_in(login: Login, connection: Exchange, *, address: str, deadline: float) -> float | None:
    """Log in; returns for how many seconds it holds, None if without end. Raises PeerError."""
    version = await connection.negotiate(SaslHandshakeRequest, deadline=deadline)
    if version < _FRAMED_SINCE:
        raise PeerError(f"{address} is too old: it offers no SaslAuthenticate (KIP-152)")
    handshake = SaslHandshakeRequest(login.mechanism)
    offered = await connection.exchange(handshake, SaslHandshakeResponse, version=version, deadline=deadline)
    if offered.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        names = ", ".join(sorted(offered.mechanisms)[:_STEPS_MAX]) or "none"
        reason = f"it does not accept {login.mechanism}, only {names}"
        raise _refused(address, f"{reason}; check sasl.enabled.mechanisms there and {login.hint}")
    if offered.error_code:
        raise _refused(address, f"it refused SaslHandshake with {_name(offered.error_code)}")
    try:
        return await _converse(login, connection, address=address, deadline=deadline)
    except ValueError as error:
        raise _refused(address, f"{error}; check {login.hint}") from None


async def _converse(login: Login, connection: Exchange, *, address: str, deadline: float) -> float | None:
    version = await connection.negotiate(SaslAuthenticateRequest, deadline=deadline)
    conversation = await login.begin()
    challenge, lifetime_seconds = b"", None
    for _ in range(_STEPS_MAX):
        # Keys are derived from a password in a thread: requests on other connections must not wait for that.
        data = await asyncio.to_thread(conversation.step, challenge)
        if conversation.is_complete and not data:  # of SCRAM, whose last message the server sends
            return lifetime_seconds
        request = SaslAuthenticateRequest(data)
        response = await connection.exchange(request, SaslAuthenticateResponse, version=version, deadline=deadline)
        if response.error_code:
            said = response.error_message or _name(response.error_code)
            raise _refused(address, f"{login.mechanism}: {said[:500]}; check {login.hint}")
        lifetime_seconds = response.session_lifetime_ms / 1000 if response.session_lifetime_ms > 0 else None
        challenge = response.auth_bytes
        if conversation.is_complete and not challenge:
            return lifetime_seconds
    raise PeerError(f"{address} does not finish the login with {login.mechanism}")


def _refused(address: str, reason: str) -> PeerAuthenticationError:
    return PeerAuthenticationError(f"cannot log in at {address}: {reason}")


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
