import ssl
from pathlib import Path

import pytest

from deploy.clients.connect import ConnectClient, LoginRefused, WorkerUnreachable
from deploy.clients.connections import connect_client
from deploy.clients.failures import explain
from tests.support.scripted_http import ScriptedHttp
from tests.support.secured import Certificates, client_properties, write_properties


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def file(certificates: Certificates, tmp_path: Path) -> Path:
    return write_properties(tmp_path / "client.properties", client_properties(certificates, "ann", "hush"))


def test_the_user_of_the_cluster_is_the_user_of_the_worker(file: Path, certificates: Certificates) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker_file)
    with ScriptedHttp((200, b"{}"), tls=context) as server:
        with connect_client(server.url, (), file, timeout=5) as client:
            assert client.connectors() == {}
        assert server.requests[0].headers["authorization"] == "Basic YW5uOmh1c2g="
        with ConnectClient(server.url, timeout_seconds=5) as client, pytest.raises(WorkerUnreachable) as raised:
            client.connectors()
        assert "ssl.truststore.location" in str(raised.value)


def test_a_password_does_not_follow_a_redirect(file: Path) -> None:
    with ScriptedHttp((302, b"")) as server, connect_client(server.url, (), file, timeout=5) as client:
        with pytest.raises(Exception, match="302"):
            client.connectors()
        assert len(server.requests) == 1


def test_a_password_in_the_address_is_not_sent_unencrypted_either() -> None:
    with pytest.raises(ValueError, match="unencrypted to connect.example") as raised:
        connect_client("http://ann:hush@connect.example:8083", timeout=5)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("status", "step"), [(401, "--client-config"), (403, "caudal acl list")])
def test_a_refusal_says_what_to_do(status: int, step: str) -> None:
    with (
        ScriptedHttp((status, b'{"error_code": 1, "message": "no"}')) as server,
        connect_client(server.url, timeout=5) as client,
        pytest.raises(LoginRefused) as raised,
    ):
        client.connectors()
    assert step in " ".join(explain(raised.value)[1])
