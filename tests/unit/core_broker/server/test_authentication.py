"""SASL on a connection: what is answered, what closes the connection, and how long a session lasts."""

import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import ErrorCode
from core_broker.handlers.session import Session
from core_broker.metrics import BrokerMetrics, LoginStats
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.frames import encode_response
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.metadata import MetadataRequest
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.principals import ANONYMOUS, Principal
from core_broker.protocol.scram_client import Scram
from core_broker.security.sasl.client import bearer_message
from core_broker.security.sasl.jwks import parse_keys
from core_broker.security.sasl.jwt import PublicKey, TokenRules, TokenValidator
from core_broker.security.sasl.listener import EnabledMechanism, SaslListener
from core_broker.security.sasl.mechanism import Mechanism, Outcome
from core_broker.security.sasl.oauthbearer import OAuthBearerServer
from core_broker.security.sasl.plain import PlainServer, PlainUsers
from core_broker.server.authentication import Authentication, Reply, printable
from core_broker.service.clock import ManualClock
from tests.support.memory import PeakMemory
from tests.support.sasl_fuzz import fuzz_logins
from tests.support.sasl_world import KnownToken, ScramTokens, key_set, scram_server, signed_token, signing_key

NOW: Final = 1_000_000
ALICE: Final = Principal("User", "alice")
SECRET: Final = b"\0alice\0secret"


class Keys:
    """The key of the identity provider."""

    def find(self, key_id: str | None) -> PublicKey | None:
        """A key by its id."""
        return parse_keys(key_set(signing_key("key1")))[0].get(key_id or "")


class Client:
    """A connection on a listener with SASL, without a socket."""

    def __init__(self, *, session_ms_max: int = 0) -> None:
        self.clock = ManualClock(NOW * 1000)
        self.metrics = BrokerMetrics()
        self.session = Session(host="10.0.0.7", port=1234, listener_name="EXTERNAL", local_host="10.0.0.1")
        self.threads = 0
        users = PlainUsers({"alice": "secret", "bob": "secret"})
        validator = TokenValidator(Keys(), TokenRules(), self.clock)
        tokens = ScramTokens({"id1": KnownToken(ALICE, "hmac", NOW * 1000 + 5000)})
        begins: dict[str, Callable[[], Mechanism]] = {
            "PLAIN": lambda: PlainServer(users),
            "SCRAM-SHA-256": lambda: scram_server(tokens=tokens, clock=self.clock),
            "OAUTHBEARER": lambda: OAuthBearerServer(validator),
        }
        self.listener = SaslListener(
            mechanisms={name: EnabledMechanism(begin, session_ms_max) for name, begin in begins.items()},
            receive_bytes_max=1000,
            failure_delay_seconds=0.1,
        )
        self.login = self.new_login()

    def new_login(self, former_mechanism: str | None = None) -> Authentication:
        return Authentication(
            self.listener,
            self.session,
            clock=self.clock,
            metrics=self.metrics,
            api_versions=self._api_versions,
            in_thread=self._in_thread,
            former_mechanism=former_mechanism,
        )

    def renew(self, mechanism: str = "PLAIN") -> None:
        """Log in again."""
        self.login = self.new_login(self.login.mechanism_name)
        assert self.handshake(mechanism).error_code == 0

    def _api_versions(self, frame: memoryview, header: tuple[int, int, int]) -> bytearray:
        _, version, correlation_id = header
        code = ErrorCode.UNSUPPORTED_VERSION if version > 4 else 0
        return encode_response(ApiVersionsResponse(code), min(version, 0), correlation_id, flexible_header=False)

    async def _in_thread(self, compute: Callable[[], Outcome]) -> Outcome:
        self.threads += 1
        return compute()

    def receive(self, frame: bytes) -> Reply | Awaitable[Reply]:
        return self.login.receive(memoryview(frame))

    def send(self, frame: bytes) -> Reply:
        reply = self.receive(frame)
        assert isinstance(reply, Reply)
        return reply

    def ask_versions(self, version: int = 4) -> Reply:
        return self.send(request(ApiVersionsRequest("test", "1"), version))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        reply = self.send(request(SaslHandshakeRequest(mechanism), version))
        assert reply.response is not None
        return decode(SaslHandshakeResponse, version, bytes(reply.response), 8)

    def authenticate(self, data: bytes, version: int = 2) -> tuple[SaslAuthenticateResponse, Reply]:
        reply = self.send(request(SaslAuthenticateRequest(data), version))
        return answer(reply, version), reply

    def log_in(self, data: bytes = SECRET, mechanism: str = "PLAIN") -> SaslAuthenticateResponse:
        assert self.handshake(mechanism).error_code == 0
        return self.authenticate(data)[0]


def request(message: Message, version: int, correlation_id: int = 7) -> bytes:
    assert message.API_KEY is not None
    tags = b"\0" if version >= message.FLEXIBLE_SINCE else b""
    return struct.pack(">hhih", message.API_KEY, version, correlation_id, -1) + tags + encode(message, version)


def answer(reply: Reply, version: int = 2) -> SaslAuthenticateResponse:
    assert reply.response is not None
    return decode(SaslAuthenticateResponse, version, bytes(reply.response), 9 if version >= 2 else 8)


def token(expires_in: int) -> bytes:
    claims = {"sub": "alice", "iat": NOW, "exp": NOW + expires_in}
    return bearer_message(signed_token(claims, signing_key("key1")), {})


def counts(client: Client) -> tuple[int, int, int, int]:
    """Logins and renewals that succeeded and failed."""
    found = client.metrics.logins.values()
    return (
        sum(stats.succeeded for stats in found),
        sum(stats.failed for stats in found),
        sum(stats.renewals_succeeded for stats in found),
        sum(stats.renewals_failed for stats in found),
    )


def is_silent_stop(reply: Reply) -> bool:
    return reply.response is None and reply.closes and reply.delay_seconds == 0


def is_delayed(reply: Reply) -> bool:
    return reply.closes and reply.delay_seconds == 0.1


# -- the way to success -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_logs_in(version: int) -> None:
    client = Client()
    assert client.ask_versions().response
    assert client.handshake().mechanisms == ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]
    response, reply = client.authenticate(SECRET, version)
    assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
    assert not reply.closes
    assert client.login.is_complete
    assert client.session.principal == ALICE
    assert client.session.expires_at is None
    assert counts(client) == (1, 0, 0, 0)


def test_a_client_logs_in_by_several_messages() -> None:
    client = Client()
    client.handshake("SCRAM-SHA-256")
    scram = Scram("sha256", "user", "pencil")
    challenge, _ = client.authenticate(scram.first())
    assert not client.login.is_complete
    end, _ = client.authenticate(scram.proof(challenge.auth_bytes))
    scram.check_end(end.auth_bytes)
    assert client.session.principal == Principal("User", "user")


def test_after_handshake_0_messages_have_no_header() -> None:
    client = Client()
    assert client.handshake(version=0).error_code == 0
    assert client.login.frame_bytes_min == 0
    assert client.send(SECRET).response == bytearray(4)
    assert client.login.is_complete


def test_versions_can_be_asked_again_after_an_unsupported_one() -> None:
    client = Client()
    assert not client.ask_versions(99).closes
    assert not client.ask_versions().closes
    assert client.handshake().error_code == 0


async def test_a_message_that_takes_long_is_judged_in_a_thread() -> None:
    client = Client()
    client.handshake("SCRAM-SHA-256")
    scram = Scram("sha256", "id1", "hmac", extensions=",tokenauth=true")
    later = client.receive(request(SaslAuthenticateRequest(scram.first()), 2))
    assert not isinstance(later, Reply)
    challenge = answer(await later)
    assert client.threads == 1
    client.authenticate(scram.proof(challenge.auth_bytes))
    assert client.session.principal.is_by_token


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_answered_late_and_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client = Client()
    client.handshake()
    response, reply = client.authenticate(b"\0ali\nce\0hunter2")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert is_delayed(reply)
    assert client.session.principal == ANONYMOUS
    assert counts(client) == (0, 1, 0, 0)
    record = caplog.records[-1]
    assert vars(record)["user"] == "ali\\nce"
    assert "hunter2" not in str(vars(record))


def test_a_failure_says_only_that_the_credentials_are_invalid() -> None:
    client = Client()
    response = client.log_in(b"n,,n=us", "SCRAM-SHA-256")
    assert response.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


def test_a_failure_without_headers_has_no_answer() -> None:
    client = Client()
    client.handshake(version=0)
    reply = client.send(b"\0alice\0wrong")
    assert reply.response is None
    assert is_delayed(reply)


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    client = Client()
    reply = client.send(request(SaslHandshakeRequest("GSSAPI\n"), 1))
    assert reply.response is not None
    response = decode(SaslHandshakeResponse, 1, bytes(reply.response), 8)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]
    assert is_delayed(reply)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"1234567",
        b"GET / HTTP/1.1",
        request(MetadataRequest(), 12),
        request(SaslAuthenticateRequest(SECRET), 2),
        request(SaslHandshakeRequest("PLAIN"), 2)[:-1],
        struct.pack(">hhih", 17, 1, 0, 500),
        struct.pack(">hhih", 17, 2, 0, -1),
        struct.pack(">hhih", 17, -1, 0, -1),
    ],
    ids=["empty", "short", "http", "metadata", "authenticate", "truncated", "lengths", "version", "negative version"],
)
def test_what_does_not_begin_a_login_closes_the_connection_silently(frame: bytes) -> None:
    """CVE-2022-34917: nothing is served, and no memory kept, for a client that has not logged in."""
    client = Client()
    assert is_silent_stop(client.send(frame))
    assert is_silent_stop(client.send(request(SaslHandshakeRequest("PLAIN"), 1)))


def test_versions_are_answered_once() -> None:
    client = Client()
    client.ask_versions()
    assert is_silent_stop(client.ask_versions())


def test_another_request_instead_of_a_message_is_an_illegal_state() -> None:
    client = Client()
    client.handshake()
    reply = client.send(request(SaslHandshakeRequest("PLAIN"), 1))
    assert reply.response is not None
    assert decode(SaslHandshakeResponse, 1, bytes(reply.response), 8).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_delayed(reply)
    other = Client()
    other.handshake()
    reply = other.send(request(MetadataRequest(), 12))
    assert reply.response is None
    assert is_delayed(reply)


def test_a_version_of_saslauthenticate_that_is_not_known_closes_the_connection() -> None:
    client = Client()
    client.handshake()
    assert is_silent_stop(client.send(struct.pack(">hhih", 36, 3, 0, -1) + b"\0\x05abcd\0"))


def test_logins_are_counted_by_listener_and_mechanism_and_never_by_an_invented_one() -> None:
    client = Client()
    client.handshake("INVENTED-BY-A-CLIENT")
    client.login = client.new_login()
    client.handshake("SCRAM-SHA-256")
    client.authenticate(b"nonsense")
    client.login = client.new_login()
    client.log_in()
    assert client.metrics.logins == {
        ("EXTERNAL", "unknown"): LoginStats(failed=1),
        ("EXTERNAL", "SCRAM-SHA-256"): LoginStats(failed=1),
        ("EXTERNAL", "PLAIN"): LoginStats(succeeded=1),
    }


def test_a_large_frame_is_a_failure() -> None:
    client = Client()
    assert client.login.frame_bytes_max == 1000
    reply = client.login.refuse_size(1001)
    assert reply.response is None
    assert is_delayed(reply)
    assert counts(client) == (0, 1, 0, 0)


def test_a_client_cannot_try_tokens_without_end() -> None:
    client = Client()
    client.handshake("OAUTHBEARER")
    for _ in range(20):
        reply = client.send(request(SaslAuthenticateRequest(bearer_message("a.b.c", {})), 2))
        if reply.closes:
            break
        assert answer(reply).auth_bytes == b'{"status":"invalid_token"}'
    else:
        pytest.fail("the connection was never closed")


def test_a_refused_token_may_be_followed_by_a_valid_one() -> None:
    client = Client()
    assert client.log_in(token(-60), "OAUTHBEARER").auth_bytes == b'{"status":"invalid_token"}'
    assert client.authenticate(token(60))[0].error_code == 0
    assert client.login.is_complete


# -- sessions that end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session_ms_max", "expires_in", "lifetime_ms"), [(0, 60, 60_000), (10_000, 60, 10_000), (90_000, 60, 60_000)]
)
def test_a_session_ends_with_the_token_or_after_the_longest_time(
    session_ms_max: int, expires_in: int, lifetime_ms: int
) -> None:
    client = Client(session_ms_max=session_ms_max)
    client.clock.advance(5)
    assert client.log_in(token(expires_in), "OAUTHBEARER").session_lifetime_ms == min(lifetime_ms, 59_995)
    assert client.session.expires_at is not None
    assert client.session.expires_at - client.clock.monotonic() == min(lifetime_ms, 59_995) / 1000


def test_a_token_that_only_the_clock_skew_saves_gives_a_session_that_has_ended() -> None:
    client = Client()
    assert client.log_in(token(-10), "OAUTHBEARER").session_lifetime_ms == 0
    assert client.session.expires_at == client.clock.monotonic()


def test_a_password_gives_a_session_of_the_longest_time() -> None:
    client = Client(session_ms_max=10_000)
    assert client.log_in().session_lifetime_ms == 10_000


def test_a_client_logs_in_again() -> None:
    client = Client(session_ms_max=10_000)
    client.log_in()
    client.clock.advance(9_000)
    client.renew()
    assert client.authenticate(SECRET)[0].error_code == 0
    assert client.session.expires_at == 19.0
    assert counts(client) == (1, 0, 1, 0)


def test_a_client_cannot_become_another_user() -> None:
    client = Client(session_ms_max=10_000)
    client.log_in()
    client.renew()
    response, reply = client.authenticate(b"\0bob\0secret")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Cannot change principals during re-authentication from User:alice to User:bob"
    assert is_delayed(reply)
    assert client.session.principal == ALICE
    assert counts(client) == (1, 0, 0, 1)


def test_a_client_cannot_change_the_mechanism() -> None:
    client = Client(session_ms_max=10_000)
    client.log_in()
    client.renew("SCRAM-SHA-256")
    reply = client.send(request(SaslAuthenticateRequest(b"n,,n=alice,r=abc"), 2))
    assert reply.response is None
    assert is_delayed(reply)


def test_only_a_handshake_begins_another_login() -> None:
    client = Client(session_ms_max=10_000)
    client.log_in()
    client.login = client.new_login("PLAIN")
    assert is_silent_stop(client.ask_versions())


# -- anything ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=60), max_size=4), st.sampled_from([0, 1]))
def test_no_frames_raise_or_log_in(frames: list[bytes], version: int) -> None:
    """CVE-2026-111108, CVE-2026-111115: lengths and counts in requests cannot make the reader allocate."""
    client = Client()
    client.handshake(version=version)
    for frame in frames:
        client.receive(frame)
    assert not client.login.is_complete
    assert client.session.principal == ANONYMOUS


def test_many_damaged_logins_never_raise_or_log_in_and_leave_nothing_behind() -> None:
    fuzz_logins(Client, request, 5_000)
    with PeakMemory() as memory:
        fuzz_logins(Client, request)
    assert memory.growth_bytes < 16 << 20


def test_text_of_clients_is_short_and_in_one_line() -> None:
    assert printable("a\nb\x1b[31m\u202e\ud800") == "a\\nb\\x1b[31m\\u202e\\ud800"
    assert printable("grün") == "grün"
    assert printable("a" * 101) == "a" * 100 + "..."
