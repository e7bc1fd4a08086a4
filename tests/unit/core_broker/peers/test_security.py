"""TLS between nodes: who trusts whom, and what an operator reads when they do not."""

import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

from core_broker.peers.peers import Address, PeerAuthenticationError, PeerError, Peers
from core_broker.peers.security import PeerSecurity
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from core_broker.protocol.principals import ANONYMOUS, Principal
from core_broker.security.stores import load_key_store
from core_broker.security.tls import server_context
from core_broker.settings import BrokerSettings
from tests.support.authority import AuthorityFolder
from tests.support.scripted_peer import PeerSession, answering, scripted_peer

PATIENCE = 60.0
HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=7)
PREFIX = "listener.name.controller."
SCRIPT = answering(
    ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4), ApiVersion(63, 0, 1)]), BrokerHeartbeatResponse(error_code=5)
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> AuthorityFolder:
    return AuthorityFolder(tmp_path_factory.mktemp("authority"))


def settings(authority: AuthorityFolder, key_store: Path | None = None, **more: str) -> BrokerSettings:
    """Settings of a node with TLS on the listener of controllers."""
    values = {"ssl.truststore.location": str(authority.trust_store), "ssl.truststore.type": "PEM"}
    if key_store is not None:
        values |= {"ssl.keystore.location": str(key_store), "ssl.keystore.type": "PEM"}
    values |= {key.replace("_", "."): value for key, value in more.items()}
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"}
    return BrokerSettings.parse({**protocols, **{PREFIX + key: value for key, value in values.items()}})


def listening(found: BrokerSettings) -> ssl.SSLContext:
    own = found.for_listener("CONTROLLER")
    store = load_key_store(own)
    assert store is not None
    return server_context(own, store)


@asynccontextmanager
async def connecting(found: BrokerSettings, *, reconnect_seconds: float = 0) -> AsyncIterator[Peers]:
    security = PeerSecurity.for_controllers(found)
    peers = Peers(client_id="test", security=security, reconnect_seconds=reconnect_seconds)
    yield peers
    await peers.close()


async def heartbeat(peers: Peers, address: Address, *, purpose: str = "") -> int:
    response = await peers.call(address, HEARTBEAT, timeout_seconds=PATIENCE, purpose=purpose)
    assert isinstance(response, BrokerHeartbeatResponse)
    return response.error_code


async def test_nodes_with_certificates_of_the_same_authority_trust_each_other(authority: AuthorityFolder) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required")
    client = settings(authority, authority.issue("node-2"))
    async with scripted_peer(SCRIPT, tls=listening(server)) as peer, connecting(client) as peers:
        assert await heartbeat(peers, peer.address) == 5


async def test_a_large_response_is_decrypted_into_a_buffer_of_its_own(authority: AuthorityFolder) -> None:
    size = 1_000_000

    async def script(session: PeerSession) -> None:
        request = await session.receive()
        session.answer(request, ApiVersionsResponse(api_keys=[ApiVersion(1, 4, 18), ApiVersion(18, 0, 4)]))
        partition = PartitionData(records=bytes(range(250)) * (size // 250))
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
        session.answer(await session.receive(), response)
        await session.until_closed()

    server = settings(authority, authority.issue("node-1"))
    async with scripted_peer(script, tls=listening(server)) as peer, connecting(settings(authority)) as peers:
        response = await peers.call(peer.address, FetchRequest(), timeout_seconds=PATIENCE, version=12)
    assert isinstance(response, FetchResponse)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert isinstance(records.obj, bytearray)
    assert size <= len(records.obj) < size + 200
    assert records == bytes(range(250)) * (size // 250)


# -- refusals --


class Refusing:
    """A listener whose handshakes fail; as OpenSSL does by itself, and asyncio does not, it says why."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.connections = 0

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                self._refuse(self._socket.accept()[0])

    def _refuse(self, connection: socket.socket) -> None:
        self.connections += 1
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._tls.wrap_bio(incoming, outgoing, server_side=True)
        with connection:
            while True:
                try:
                    tls.do_handshake()
                    raise AssertionError("the handshake should have failed")
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(65536))
                except ssl.SSLError:
                    connection.sendall(outgoing.read())
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                    return


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
async def test_a_certificate_that_the_other_node_wants_and_does_not_get(
    authority: AuthorityFolder, protocol: str
) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required", ssl_enabled_protocols=protocol)
    with Refusing(listening(server)) as peer:
        async with connecting(settings(authority)) as peers:
            hint = r"not accept the certificate of this node .*controller\.ssl\.keystore\.location here"
            with pytest.raises(PeerAuthenticationError, match=hint):
                await heartbeat(peers, peer.address)


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
async def test_a_certificate_of_an_authority_that_the_other_node_does_not_know(
    authority: AuthorityFolder, tmp_path: Path, protocol: str
) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required", ssl_enabled_protocols=protocol)
    client = settings(authority, AuthorityFolder(tmp_path, "Another authority").issue("node-2"))
    with Refusing(listening(server)) as peer:
        async with connecting(client) as peers:
            with pytest.raises(PeerAuthenticationError, match=r"not accept the certificate of this node"):
                await heartbeat(peers, peer.address)


async def test_a_node_that_this_one_does_not_trust(authority: AuthorityFolder, tmp_path: Path) -> None:
    another = AuthorityFolder(tmp_path, "Another authority")
    server = settings(authority, another.issue("node-1"))
    async with scripted_peer(SCRIPT, tls=listening(server)) as peer, connecting(settings(authority)) as peers:
        with pytest.raises(PeerAuthenticationError, match=r"not accepted \(.*check .*ssl\.truststore\.location here"):
            await heartbeat(peers, peer.address)


async def test_a_certificate_that_has_expired(authority: AuthorityFolder, tmp_path: Path) -> None:
    expired = authority.issue("node-1", has_expired=True, file=tmp_path / "expired.pem")
    async with (
        scripted_peer(SCRIPT, tls=listening(settings(authority, expired))) as peer,
        connecting(settings(authority)) as peers,
    ):
        with pytest.raises(PeerAuthenticationError, match="expired"):
            await heartbeat(peers, peer.address)


@pytest.mark.parametrize("hosts", [(), ("10.0.0.1", "broker.example")])
async def test_a_certificate_for_another_host(
    authority: AuthorityFolder, tmp_path: Path, hosts: tuple[str, ...]
) -> None:
    server = settings(authority, authority.issue("node-1", hosts=hosts, file=tmp_path / "other.pem"))
    async with scripted_peer(SCRIPT, tls=listening(server)) as peer:
        async with connecting(settings(authority)) as peers:
            with pytest.raises(PeerAuthenticationError, match=r"ssl\.endpoint\.identification\.algorithm="):
                await heartbeat(peers, peer.address)
        async with connecting(settings(authority, ssl_endpoint_identification_algorithm="")) as peers:
            assert await heartbeat(peers, peer.address) == 5


async def test_nodes_without_a_common_version(authority: AuthorityFolder) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_enabled_protocols="TLSv1.2")
    client = settings(authority, ssl_enabled_protocols="TLSv1.3")
    with Refusing(listening(server)) as peer:
        async with connecting(client) as peers:
            with pytest.raises(PeerAuthenticationError, match=r"ssl\.enabled\.protocols"):
                await heartbeat(peers, peer.address)


MISMATCH = r"listener\.security\.protocol\.map is the same on both nodes"


async def test_a_request_in_plain_text_to_a_listener_with_tls(authority: AuthorityFolder) -> None:
    server = settings(authority, authority.issue("node-1"))
    peers = Peers(client_id="test", reconnect_seconds=0)
    async with scripted_peer(SCRIPT, tls=listening(server)) as peer:
        with pytest.raises(PeerError, match=MISMATCH):
            await heartbeat(peers, peer.address)
    await peers.close()


async def test_tls_to_a_listener_in_plain_text(authority: AuthorityFolder) -> None:
    async def script(session: PeerSession) -> None:
        session.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with scripted_peer(script) as peer, connecting(settings(authority)) as peers:
        with pytest.raises(PeerAuthenticationError, match=MISMATCH):
            await heartbeat(peers, peer.address)


async def test_a_node_that_closes_the_connection_in_the_handshake(authority: AuthorityFolder) -> None:
    """It may have ended just now, so it is tried again soon."""

    async def script(session: PeerSession) -> None:
        return

    async with scripted_peer(script) as peer, connecting(settings(authority)) as peers:
        with pytest.raises(PeerError, match=MISMATCH) as failure:
            await heartbeat(peers, peer.address)
    assert not isinstance(failure.value, PeerAuthenticationError)


async def test_a_refused_node_does_not_try_again_at_once(authority: AuthorityFolder) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required")
    client = settings(authority)
    with Refusing(listening(server)) as peer:
        async with connecting(client, reconnect_seconds=3600) as peers:
            for purpose in ("replica", "markers", "replica"):
                with pytest.raises(PeerAuthenticationError, match="certificate of this node"):
                    await heartbeat(peers, peer.address, purpose=purpose)
    assert peer.connections == 1


async def test_a_store_that_cannot_be_read_is_an_error_that_names_the_setting(
    authority: AuthorityFolder, tmp_path: Path
) -> None:
    client = settings(authority, tmp_path / "missing.pem")
    async with scripted_peer(SCRIPT) as peer, connecting(client) as peers:
        with pytest.raises(PeerAuthenticationError, match=r"CONTROLLER: ssl\.keystore\.location"):
            await heartbeat(peers, peer.address)


# -- changes --


async def subjects_shown(
    authority: AuthorityFolder, peers: Peers, server: BrokerSettings, purpose: str
) -> list[object]:
    """The subjects of the certificates that a listener has seen."""
    seen: list[object] = []

    async def script(session: PeerSession) -> None:
        certificate = session.certificate
        seen.append(None if certificate is None else certificate["subject"][0][0][1])
        await SCRIPT(session)

    async with scripted_peer(script, tls=listening(server)) as peer:
        await heartbeat(peers, peer.address, purpose=purpose)
    return seen


async def test_a_new_certificate_is_shown_without_a_restart(authority: AuthorityFolder, tmp_path: Path) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required")
    own = authority.issue("before", file=tmp_path / "own.pem")
    async with connecting(settings(authority, own)) as peers:
        assert await subjects_shown(authority, peers, server, "first") == ["before"]
        authority.issue("after", file=own)
        assert await subjects_shown(authority, peers, server, "second") == ["after"]


async def test_the_previous_certificate_stays_in_use_while_the_new_one_cannot_be_read(
    authority: AuthorityFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required")
    own = authority.issue("before", file=tmp_path / "own.pem")
    async with connecting(settings(authority, own)) as peers:
        assert await subjects_shown(authority, peers, server, "first") == ["before"]
        own.write_text("half of a certificate")
        assert await subjects_shown(authority, peers, server, "second") == ["before"]
    assert "the previous ones stay in use" in caplog.text


async def test_other_files_can_be_named_at_run_time(authority: AuthorityFolder, tmp_path: Path) -> None:
    server = settings(authority, authority.issue("node-1"), ssl_client_auth="required")
    async with connecting(settings(authority, authority.issue("before"))) as peers:
        assert await subjects_shown(authority, peers, server, "first") == ["before"]
        peers.security.configure(settings(authority, authority.issue("after")))
        assert await subjects_shown(authority, peers, server, "second") == ["after"]


# -- who this node is for others --

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="node" password="secret" user_a="b";'


def test_without_security_a_node_is_anonymous() -> None:
    assert PeerSecurity.for_brokers(BrokerSettings()).principal() == ANONYMOUS


def test_a_node_that_logs_in_is_its_user() -> None:
    own = BrokerSettings.parse(
        {
            "listeners": "INTERNAL://127.0.0.1:0",
            "inter.broker.listener.name": "INTERNAL",
            "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": JAAS,
        }
    )
    assert PeerSecurity.for_brokers(own).principal() == Principal("User", "node")


@pytest.mark.parametrize(
    ("rules", "name"), [("DEFAULT", "CN=node-1"), ("RULE:^CN=(.*)$/$1/", "node-1"), ("RULE:^O=(.*)$/$1/", None)]
)
def test_a_node_with_a_certificate_is_its_subject_by_the_rules(
    authority: AuthorityFolder, rules: str, name: str | None
) -> None:
    own = settings(authority, authority.issue("node-1"), ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    assert PeerSecurity.for_controllers(own).principal() == (None if name is None else Principal("User", name))


def test_a_certificate_that_no_listener_asks_for_names_no_one(authority: AuthorityFolder) -> None:
    own = settings(authority, authority.issue("node-1"))
    assert PeerSecurity.for_controllers(own).principal() == ANONYMOUS
