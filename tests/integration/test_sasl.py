"""Clients of four kinds log in at a broker: with passwords, with SCRAM, and with tokens of an identity provider.

With KAFKA_JARS the broker is one of Apache Kafka, of which the same is asked.
"""

import http.server
import json
import re
import struct
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import UserScramCredentialAlteration as Alteration
from joserfc.jwk import ECKey, RSAKey

from core_broker.client import oauth
from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed
from core_broker.client.handshake import check_handshake
from core_broker.client.java_properties import to_librdkafka
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.admin import eventually
from tests.support.clients.kcat import KCAT
from tests.support.cluster import free_port
from tests.support.kafka import KAFKA_JARS, OURS_ALONE
from tests.support.sasl_broker import (
    ALICE_PASSWORD,
    PREFIX,
    TOPIC,
    Refused,
    SaslBroker,
    Token,
    aio,
    aio_token,
    confluent,
    confluent_token,
    kcat,
    pure,
    pure_token,
)
from tests.support.sasl_world import key_set, signed_token, signing_key
from tests.support.scripted_http import ScriptedHttp
from tests.support.secret_search import places_with_secrets
from tests.support.wire import WireConnection, frame, sized

SCRAM: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}

LogIn = Callable[[str, str, str, str], Awaitable[None] | object]
LogInByToken = Callable[[str, Token], Awaitable[None] | object]
CLIENTS: Final = [
    confluent,
    pure,
    aio,
    pytest.param(
        kcat, marks=[pytest.mark.kcat, pytest.mark.skipif(KCAT is None, reason="the command kcat is not installed")]
    ),
]
TOKEN_CLIENTS: Final = [confluent_token, pure_token, aio_token]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of the identity provider."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    file.write_bytes(key_set(signing_key("key1")))
    return file


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[SaslBroker]:
    """A broker with every mechanism."""
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": key_file.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://id.example",
        "metrics.listener": "http://127.0.0.1:0",
    }
    directory = tmp_path_factory.mktemp("broker")
    with SaslBroker(directory, settings=settings, allowed_urls=[key_file.as_uri()]) as process:
        confluent(process.external, "PLAIN", "alice", ALICE_PASSWORD)
        upsertions: list[Alteration] = [
            UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), b"scram-secret")
            for mechanism in SCRAM.values()
        ]
        for upsertion in upsertions:
            alter_user(process, upsertion)
        yield process


async def run(result: Awaitable[None] | object) -> None:
    if isawaitable(result):
        await result


def token(
    key: RSAKey | ECKey | None = None,
    *,
    lasts: float = 300,
    aud: str | None = "kafka",
    iss: str | None = "https://id.example",
) -> Token:
    """Tokens of the identity provider."""

    def made() -> tuple[str, float]:
        now = time.time()  # noqa: TID251 - the clock of the identity provider
        claims = {"sub": "alice", "iat": int(now), "exp": now + lasts, "aud": aud, "iss": iss}
        return signed_token(claims, key or signing_key("key1")), now + 300

    return made


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_password_lets_in(broker: SaslBroker, client: LogIn) -> None:
    await run(client(broker.external, "PLAIN", "alice", ALICE_PASSWORD))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("user", "password"), [("alice", "guessed-5481"), ("stranger", "guessed-5481")])
async def test_a_wrong_password_and_an_unknown_user_do_not(
    broker: SaslBroker, client: LogIn, user: str, password: str
) -> None:
    with pytest.raises(Refused):
        await run(client(broker.external, "PLAIN", user, password))
    assert password not in broker.log_text()


@pytest.mark.parametrize("client", [confluent, pure, aio])  # kcat of Debian 12 needs librdkafka 2.6.1 (CVE-2024-56128)
@pytest.mark.parametrize("mechanism", SCRAM)
async def test_scram_lets_in(broker: SaslBroker, client: LogIn, mechanism: str) -> None:
    await run(client(broker.external, mechanism, "alice", "scram-secret"))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("user", ["alice", "stranger"])
async def test_scram_with_a_wrong_password_does_not(
    broker: SaslBroker, client: LogIn, mechanism: str, user: str
) -> None:
    with pytest.raises(Refused):
        await run(client(broker.external, mechanism, user, "wrong"))


@pytest.mark.parametrize("client", TOKEN_CLIENTS)
async def test_a_signed_token_lets_in(broker: SaslBroker, client: LogInByToken) -> None:
    await run(client(broker.external, token()))


@pytest.mark.parametrize("client", TOKEN_CLIENTS)
@pytest.mark.parametrize(
    "wrong",
    [
        token(lasts=-60),
        token(signing_key("other")),
        token(aud="another service"),
        token(iss="https://another.example"),
    ],
    ids=["expired", "of another key", "for another service", "of another issuer"],
)
async def test_another_token_does_not(broker: SaslBroker, client: LogInByToken, wrong: Token) -> None:
    with pytest.raises(Refused):
        await run(client(broker.external, wrong))
    assert wrong()[0].rpartition(".")[0] not in broker.log_text()


def test_clients_of_a_listener_without_sasl_do_not_log_in(broker: SaslBroker) -> None:
    with pytest.raises(Refused):
        confluent(broker.bootstrap, "PLAIN", "alice", ALICE_PASSWORD)


@OURS_ALONE
def test_failures_are_logged_with_who_and_why(broker: SaslBroker) -> None:
    with pytest.raises(Refused):
        confluent(broker.external, "PLAIN", "mal\nlory", "hunter2")
    text = broker.log_text()
    assert "authentication failed" in text
    assert "lory" in text
    assert "mal\nlory" not in text
    assert "hunter2" not in text


# -- sessions and keys that end --------------------------------------------------------------------------------------


class _KeySite(http.server.BaseHTTPRequestHandler):
    keys = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(type(self).keys)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def key_site() -> Iterator[str]:
    """The keys of the identity provider on the web."""
    _KeySite.keys = key_set(signing_key("key1"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _KeySite)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/keys"
    server.shutdown()
    thread.join()
    server.server_close()


@OURS_ALONE
def test_keys_are_exchanged_while_the_broker_runs(tmp_path: Path, key_site: str) -> None:
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": key_site,
    }
    with SaslBroker(tmp_path, settings=settings, allowed_urls=[key_site]) as broker:
        eventually(lambda: "keys of OAUTHBEARER read" in broker.log_text())
        confluent_token(broker.external, token(aud=None))
        new = signing_key("key2", "RS256")
        with pytest.raises(Refused):
            confluent_token(broker.external, token(signing_key("stranger"), aud=None))
        _KeySite.keys = key_set(new)
        confluent_token(broker.external, token(new, aud=None))  # it makes the broker look for the new key, and waits
        assert not accepted(broker.external, token(aud=None))


def test_a_client_that_gets_its_own_tokens_logs_in_for_every_request(broker: SaslBroker) -> None:
    answer = json.dumps({"access_token": token()()[0], "expires_in": 300}).encode()
    with ScriptedHttp((200, answer), media_type="application/json") as provider:
        properties = to_librdkafka(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
                "sasl.oauthbearer.client.credentials.client.id": "tools",
                "sasl.oauthbearer.client.credentials.client.secret": "hush",
            }.items()
        )
        admin = Admin(ClientSettings(bootstrap_servers=broker.external, properties=properties))
        assert TOPIC in admin.topic_names()  # by the library
        assert "alice" in [user.name for user in admin.security.users()]  # by a connection of our own
    oauth._kept.clear()
    with ScriptedHttp((200, b'{"access_token": "forged"}')) as provider, pytest.raises(NotAllowed, match="token"):
        wrong = {**properties, "sasl.oauthbearer.token.endpoint.url": provider.url}
        check_handshake(ClientSettings(bootstrap_servers=broker.external, properties=wrong))
    oauth._kept.clear()


Send = Callable[[], object]


@contextmanager
def _confluent_producer(bootstrap: str) -> Iterator[Send]:
    from confluent_kafka import Producer

    login = {"sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": ALICE_PASSWORD}
    producer = Producer({"bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", **login})

    def send() -> None:
        producer.produce(TOPIC, b"again")
        assert producer.flush(10) == 0

    yield send


@contextmanager
def _pure_producer(bootstrap: str) -> Iterator[Send]:
    from kafka import KafkaProducer

    login = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": ALICE_PASSWORD}
    producer = KafkaProducer(bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT", **login)
    try:
        yield lambda: producer.send(TOPIC, b"again").get(10)
    finally:
        producer.close(5)


def counted(url: str, name: str) -> float:
    """A counter of the broker's sockets."""
    with urllib.request.urlopen(url, timeout=10) as response:
        text = response.read().decode()
    return float(re.search(rf"^kafka_server_socket_server_metrics_{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]


def accepted(bootstrap: str, made: Token) -> bool:
    try:
        confluent_token(bootstrap, made)
    except Refused:
        return False
    return True


@OURS_ALONE  # it counts by our metrics; Java's clients count themselves, with both
@pytest.mark.parametrize("client", [_confluent_producer, _pure_producer])
def test_clients_log_in_again_before_their_session_ends(
    tmp_path: Path, client: Callable[[str], AbstractContextManager[Send]]
) -> None:
    settings = {"sasl.enabled.mechanisms": "PLAIN", "connections.max.reauth.ms": "2000"}
    with SaslBroker(tmp_path, settings={**settings, "metrics.listener": f"http://127.0.0.1:{free_port()}"}) as broker:
        url = f"{broker.settings['metrics.listener']}/metrics"
        with client(broker.external) as send:

            def has_logged_in_again() -> bool:
                send()
                return counted(url, "successful_reauthentication_total") > 1

            eventually(has_logged_in_again)
        assert counted(url, "failed_reauthentication_total") == 0
        assert counted(url, "expired_connections_killed_count_total") == 0


def test_a_client_that_does_not_log_in_again_is_disconnected(tmp_path: Path) -> None:
    settings = {"sasl.enabled.mechanisms": "PLAIN", f"{PREFIX}.plain.connections.max.reauth.ms": "1"}
    with SaslBroker(tmp_path, settings=settings) as broker:
        with WireConnection(broker.external) as connection:
            connection.request(SaslHandshakeRequest("PLAIN"), 1, SaslHandshakeResponse)
            message = SaslAuthenticateRequest(f"\0alice\0{ALICE_PASSWORD}".encode())
            response = connection.request(message, 2, SaslAuthenticateResponse)
            assert (response.error_code, response.session_lifetime_ms) == (0, 1)
            with pytest.raises(ConnectionError):
                for _ in range(1000):
                    connection.request(MetadataRequest(), 9, MetadataResponse)
        if KAFKA_JARS is None:
            # Written after the connection is closed.
            eventually(lambda: "the session has expired" in broker.log_text())


def alter_user(broker: SaslBroker, alteration: Alteration) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # it must outlive its call
    (future,) = admin.alter_user_scram_credentials([alteration]).values()
    future.result(30)


@pytest.mark.parametrize("client", [confluent, pure, aio])
async def test_a_deleted_user_is_refused(broker: SaslBroker, client: LogIn) -> None:
    name = f"deleted-{client.__name__}"
    mechanism = ScramMechanism.SCRAM_SHA_512
    alter_user(broker, UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), b"scram-secret"))
    await run(client(broker.external, "SCRAM-SHA-512", name, "scram-secret"))
    alter_user(broker, UserScramCredentialDeletion(name, mechanism))
    with pytest.raises(Refused):
        await run(client(broker.external, "SCRAM-SHA-512", name, "scram-secret"))


# -- hostile clients --------------------------------------------------------------------------------------------------


@OURS_ALONE
def test_guesses_that_are_sent_together_are_not_tried_together(broker: SaslBroker) -> None:
    """The answer to a failure is delayed, and nothing more is read: only the first guess counts."""
    with WireConnection(broker.external) as connection:
        guesses = [
            frame(SaslAuthenticateRequest(b"\0alice\0guess-%d" % number), 1, correlation_id=number)
            for number in range(50)
        ]
        before = broker.log_text().count("authentication failed")
        connection.send(frame(SaslHandshakeRequest("PLAIN"), 1, correlation_id=99) + b"".join(guesses))
        connection.receive()
        connection.receive()
        assert connection.is_closed_by_peer()
    failures = [line for line in broker.log_text().splitlines() if '"message": "authentication failed"' in line]
    assert len(failures) >= 1
    assert broker.log_text().count("authentication failed") - before <= 2  # the failure, and the reason of the close


def test_tokens_without_headers(broker: SaslBroker) -> None:
    with WireConnection(broker.external) as connection:
        connection.request(SaslHandshakeRequest("PLAIN"), 0, SaslHandshakeResponse)
        connection.send(sized(f"\0alice\0{ALICE_PASSWORD}".encode()))
        assert connection.receive() == b""
        assert connection.request(MetadataRequest(), 9, MetadataResponse).brokers


@pytest.mark.parametrize("size", [524_289, 100_000_000, 2**31 - 1])
def test_a_large_frame_before_the_login_closes_the_connection(broker: SaslBroker, size: int) -> None:
    """CVE-2022-34917"""
    with WireConnection(broker.external) as connection:
        connection.send(struct.pack(">i", size) + b"\0" * 1000)
        assert connection.is_closed_by_peer()


def test_nothing_is_served_before_the_login(broker: SaslBroker) -> None:
    with WireConnection(broker.external) as connection, pytest.raises(ConnectionError):
        connection.request(MetadataRequest(), 9, MetadataResponse)


@OURS_ALONE
def test_a_client_that_does_not_log_in_is_disconnected(broker: SaslBroker) -> None:
    with WireConnection(broker.external) as connection:
        connection.request(SaslHandshakeRequest("PLAIN"), 1, SaslHandshakeResponse)
        assert connection.is_closed_by_peer()
    eventually(lambda: "did not log in within" in broker.log_text())


@OURS_ALONE
def test_the_search_for_secrets_looks_everywhere(broker: SaslBroker) -> None:
    """What is not secret is found in each of the places."""
    places = places_with_secrets(broker, [TOPIC, "log.segment.bytes"])
    for beginning in (str(broker.data), "metrics page", "DescribeConfigs of BROKER", "caudal topic list"):
        assert any(place.startswith(beginning) for place in places), (beginning, places)


@OURS_ALONE
def test_no_secret_is_written_or_shown(broker: SaslBroker) -> None:
    """After the tests above, each of which has used some of them."""
    beginning_of_tokens = "eyJhbGciOi"
    secrets = (ALICE_PASSWORD, "admin-secret", "scram-secret", "guessed-5481", beginning_of_tokens)
    assert places_with_secrets(broker, secrets) == []
