"""Logging in at other nodes: every mechanism against the server's side of it, and what a refusal says."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from core_broker.errors import ErrorCode
from core_broker.peers.login import Login
from core_broker.peers.peers import PeerAuthenticationError, PeerError, Peers
from core_broker.peers.security import PeerSecurity
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.principals import Principal
from core_broker.security.sasl.client import PasswordLogin, TokenLogin
from core_broker.security.sasl.mechanism import Challenge, Failure, Mechanism, Pending, Success
from tests.support.sasl_world import scram_server
from tests.support.scripted_peer import PeerSession, ReceivedRequest, Script, scripted_peer

PATIENCE = 60.0
VERSIONS = ApiVersionsResponse(
    api_keys=[ApiVersion(17, 0, 1), ApiVersion(18, 0, 4), ApiVersion(36, 0, 2), ApiVersion(63, 0, 1)]
)
HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=7)
HINT = "listener.name.internal.scram-sha-512.sasl.jaas.config"
ANYONE = Principal("User", "anyone")
SCRAM = PasswordLogin("SCRAM-SHA-512", "user", "pencil", hint=HINT)


@asynccontextmanager
async def logging_in(login: Login, *, reconnect_seconds: float = 0.0) -> AsyncIterator[Peers]:
    security = PeerSecurity("INTERNAL", "SASL_PLAINTEXT", login=login)
    peers = Peers(client_id="test", security=security, reconnect_seconds=reconnect_seconds)
    yield peers
    await peers.close()


def asking(make: Callable[[], Mechanism], *, lifetime_ms: int = 0) -> Script:
    """A peer that wants a login, and then answers heartbeats."""

    async def script(session: PeerSession) -> None:
        mechanism: Mechanism | None = None
        is_logged_in = False
        while True:
            request = await session.receive()
            match request.key:
                case 18:
                    session.answer(request, VERSIONS)
                case 17:
                    mechanism = make()
                    session.answer(request, _offer(request, mechanism))
                case 36:
                    assert mechanism is not None
                    outcome = mechanism.step(request.decode(SaslAuthenticateRequest).auth_bytes)
                    assert not isinstance(outcome, Pending)
                    is_logged_in = isinstance(outcome, Success)
                    session.answer(request, _verdict(outcome, lifetime_ms))
                case _:
                    assert is_logged_in, f"request {request.key} without a login"
                    session.answer(request, BrokerHeartbeatResponse())

    return script


def _offer(request: ReceivedRequest, mechanism: Mechanism) -> SaslHandshakeResponse:
    is_enabled = request.decode(SaslHandshakeRequest).mechanism == mechanism.name
    return SaslHandshakeResponse(0 if is_enabled else ErrorCode.UNSUPPORTED_SASL_MECHANISM, [mechanism.name])


def _verdict(outcome: Challenge | Success | Failure, lifetime_ms: int) -> SaslAuthenticateResponse:
    match outcome:
        case Challenge(data):
            return SaslAuthenticateResponse(error_message=None, auth_bytes=data)
        case Success(data=data):
            return SaslAuthenticateResponse(error_message=None, auth_bytes=data, session_lifetime_ms=lifetime_ms)
        case Failure(message=message):
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message or "invalid credentials")


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram_is_a_login_before_the_first_request(name: str) -> None:
    async with (
        scripted_peer(asking(lambda: scram_server(name))) as peer,
        logging_in(PasswordLogin(name, "user", "pencil")) as peers,
    ):
        assert await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE) == BrokerHeartbeatResponse()
    assert [(request.key, request.version) for request in peer.requests] == [
        (18, 4),
        (17, 1),
        (36, 2),
        (36, 2),
        (63, 1),
    ]


class OneMessage(Mechanism):
    """A mechanism that accepts one message, and explains a refusal if it has an explanation."""

    def __init__(self, name: str, accepted: bytes, explanation: bytes = b"") -> None:
        self._name = name
        self.accepted = accepted
        self.explanation = explanation

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def step(self, data: bytes) -> Challenge | Success | Failure:
        if data == self.accepted:
            return Success(principal=ANYONE)
        if self.explanation and data != b"\x01":
            return Challenge(self.explanation)
        return Failure("wrong", message=self.explanation.decode() or None)


async def test_plain_is_one_message() -> None:
    async with (
        scripted_peer(asking(lambda: OneMessage("PLAIN", b"\0node\0secret"))) as peer,
        logging_in(PasswordLogin("PLAIN", "node", "secret")) as peers,
    ):
        await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert [request.key for request in peer.requests] == [18, 17, 36, 63]


async def test_a_token_is_read_from_its_file_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = (f"token-{number}" for number in itertools.count(1))
    accepted = []

    def server() -> OneMessage:
        accepted.append(next(tokens))
        file.write_text(accepted[-1])
        return OneMessage("OAUTHBEARER", f"n,,\x01auth=Bearer {accepted[-1]}\x01\x01".encode())

    async with scripted_peer(asking(server)) as peer:
        for _ in range(2):
            async with logging_in(TokenLogin(file)) as peers:
                await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert accepted == ["token-1", "token-2"]


async def test_a_refused_token_is_an_error_with_the_explanation_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("expired")
    server = OneMessage("OAUTHBEARER", b"another", b'{"status":"invalid_token"}')
    async with scripted_peer(asking(lambda: server)) as peer, logging_in(TokenLogin(file, hint=HINT)) as peers:
        with pytest.raises(PeerAuthenticationError, match=r'"invalid_token".*check listener.name.internal'):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)


async def test_a_missing_token_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    login = TokenLogin(tmp_path / "token", hint=HINT)
    async with scripted_peer(asking(lambda: OneMessage("OAUTHBEARER", b""))) as peer, logging_in(login) as peers:
        with pytest.raises(PeerAuthenticationError, match="token"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)


async def test_a_wrong_password_is_an_error_that_names_the_setting_and_not_the_password() -> None:
    login = PasswordLogin("SCRAM-SHA-512", "user", "letmein", hint=HINT)
    async with scripted_peer(asking(lambda: scram_server("SCRAM-SHA-512"))) as peer, logging_in(login) as peers:
        with pytest.raises(PeerAuthenticationError, match=f"SCRAM-SHA-512: .*; check {HINT}") as refusal:
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert "letmein" not in str(refusal.value)
    assert 63 not in [request.key for request in peer.requests]


async def test_a_mechanism_that_is_not_enabled_is_an_error_that_names_those_that_are() -> None:
    async with scripted_peer(asking(lambda: scram_server("SCRAM-SHA-256"))) as peer, logging_in(SCRAM) as peers:
        with pytest.raises(PeerAuthenticationError, match="not accept SCRAM-SHA-512, only SCRAM-SHA-256; check"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)


class Impostor(OneMessage):
    """A server that accepts any message, and does not know the password."""

    @override
    def step(self, data: bytes) -> Challenge | Success | Failure:
        return Success(principal=ANYONE, data=b"v=AAAA")


async def test_a_server_that_does_not_know_the_password_is_not_trusted() -> None:
    async with (
        scripted_peer(asking(lambda: Impostor("SCRAM-SHA-512", b""))) as peer,
        logging_in(SCRAM) as peers,
    ):
        with pytest.raises(PeerAuthenticationError):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)


async def test_a_server_that_never_ends_the_login_is_left() -> None:
    class Endless(OneMessage):
        @override
        def step(self, data: bytes) -> Challenge | Success | Failure:
            return Challenge(b"more")

    login = PasswordLogin("PLAIN", "node", "secret")
    async with scripted_peer(asking(lambda: Endless("PLAIN", b""))) as peer, logging_in(login) as peers:
        with pytest.raises(PeerError, match="does not finish the login"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)


async def test_a_node_that_refused_a_login_is_left_alone_for_longer_than_one_that_is_down() -> None:
    login = PasswordLogin("SCRAM-SHA-512", "user", "letmein", hint=HINT)
    async with (
        scripted_peer(asking(lambda: scram_server("SCRAM-SHA-512"))) as peer,
        logging_in(login, reconnect_seconds=3600) as peers,
    ):
        for purpose in ("replica", "markers", "replica"):
            with pytest.raises(PeerAuthenticationError, match=HINT):
                await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE, purpose=purpose)
    assert peer.connections == 1


async def test_an_operator_hears_once_of_a_refused_login(caplog: pytest.LogCaptureFixture) -> None:
    passwords = iter(["letmein", "letmein", "pencil"])

    class Changing(PasswordLogin):
        async def begin(self):  # type: ignore[no-untyped-def]  # whatever the login returns
            return await PasswordLogin("SCRAM-SHA-512", "user", next(passwords)).begin()

    login = Changing("SCRAM-SHA-512", "user", "changes", hint=HINT)
    caplog.set_level("INFO", "core_broker.peers")
    async with scripted_peer(asking(lambda: scram_server("SCRAM-SHA-512"))) as peer, logging_in(login) as peers:
        for _ in range(2):
            with pytest.raises(PeerAuthenticationError):
                await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
        await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "a node cannot be talked to"),
        ("INFO", "a node can be talked to again"),
    ]


async def test_a_login_that_is_not_answered_in_time_ends_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    is_closed = asyncio.Event()

    async def script(session: PeerSession) -> None:
        session.answer(await session.receive(), VERSIONS)
        await session.until_closed()
        is_closed.set()

    async with scripted_peer(script) as peer, logging_in(SCRAM) as peers:
        with pytest.raises(PeerError, match="did not answer BrokerHeartbeatRequest within 0.05 seconds"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=0.05)
        await is_closed.wait()
    assert caplog.records == []


async def test_a_caller_that_gives_up_again_while_its_connection_closes_leaves_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_logging_in, is_closed = asyncio.Event(), asyncio.Event()

    async def script(session: PeerSession) -> None:
        session.answer(await session.receive(), VERSIONS)
        await session.receive()
        is_logging_in.set()
        await session.until_closed()
        is_closed.set()

    async with scripted_peer(script) as peer, logging_in(SCRAM) as peers:
        call = asyncio.create_task(peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE))
        await is_logging_in.wait()
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await is_closed.wait()
    assert caplog.records == []


# -- KIP-368 --


async def test_a_session_is_renewed_before_it_ends_and_no_request_is_lost() -> None:
    async with (
        scripted_peer(asking(lambda: scram_server("SCRAM-SHA-512"), lifetime_ms=40)) as peer,
        logging_in(SCRAM) as peers,
    ):
        logins = 0
        while logins < 4:
            calls = (peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE) for _ in range(12))
            assert await asyncio.gather(*calls) == [BrokerHeartbeatResponse()] * 12
            await asyncio.sleep(0.01)
            logins = sum(request.key == 17 for request in peer.requests)
    assert peer.connections == 1
    assert [request.key for request in peer.requests].count(18) == 1


async def test_no_other_request_is_sent_while_a_session_is_renewed() -> None:
    """The server would close the connection."""
    async with (
        scripted_peer(asking(lambda: scram_server("SCRAM-SHA-512"), lifetime_ms=1)) as peer,
        logging_in(SCRAM) as peers,
    ):
        for _ in range(5):
            await asyncio.gather(*(peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE) for _ in range(7)))
            await asyncio.sleep(0.005)
    keys = [request.key for request in peer.requests]
    assert keys.count(17) > 1
    for position, key in enumerate(keys):
        if key == 17:
            assert keys[position : position + 3] == [17, 36, 36]


async def test_a_cancelled_request_leaves_the_renewal_to_the_others() -> None:
    may_go_on = asyncio.Event()
    is_waiting = asyncio.Event()
    handshakes = 0
    login = asking(lambda: scram_server("SCRAM-SHA-512"), lifetime_ms=1)

    class Pausing(PeerSession):
        """Holds back the second handshake."""

        async def receive(self) -> ReceivedRequest:
            nonlocal handshakes
            request = await super().receive()
            if request.key == 17:
                handshakes += 1
                if handshakes == 2:
                    is_waiting.set()
                    await may_go_on.wait()
            return request

    async def script(session: PeerSession) -> None:
        await login(Pausing(session._reader, session._writer, session._log))

    async with scripted_peer(script) as peer, logging_in(SCRAM) as peers:
        await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
        await asyncio.sleep(0.005)
        first = asyncio.create_task(peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE))
        await is_waiting.wait()
        second = asyncio.create_task(peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        may_go_on.set()
        assert await second == BrokerHeartbeatResponse()
    assert peer.connections == 1


async def test_a_renewal_that_fails_ends_the_connection_and_its_requests() -> None:
    servers = iter([scram_server("SCRAM-SHA-512")])

    def server() -> Mechanism:
        return next(servers, Refusing("SCRAM-SHA-512", b""))

    class Refusing(OneMessage):
        @override
        def step(self, data: bytes) -> Challenge | Success | Failure:
            return Failure("deleted")

    async with (
        scripted_peer(asking(server, lifetime_ms=1)) as peer,
        logging_in(SCRAM, reconnect_seconds=3600) as peers,
    ):
        await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
        await asyncio.sleep(0.005)
        calls = (peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE) for _ in range(3))
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [PeerAuthenticationError] * 3
        assert len({id(error) for error in errors}) == 3
