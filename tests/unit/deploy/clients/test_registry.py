import base64
import ssl
from pathlib import Path

import pytest

from deploy.clients.http_login import PlainHttp
from deploy.clients.registry import registry_client
from schema_registry.client.errors import ClientError
from schema_registry.client.settings import InvalidSettings
from tests.support.scripted_http import ScriptedHttp
from tests.support.secured import Certificates, client_properties, write_properties

SUBJECTS = (200, b'["orders"]')


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def file(certificates: Certificates, tmp_path: Path) -> Path:
    """The file of a client of the cluster."""
    return write_properties(tmp_path / "client.properties", client_properties(certificates, "ann", "hush"))


def add(file: Path, **more: str) -> Path:
    with file.open("a") as opened:
        opened.writelines(f"{key.replace('_', '.')}={value}\n" for key, value in more.items())
    return file


def server_tls(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker_file)
    return context


def authorization(server: ScriptedHttp) -> str | None:
    """What the last request showed, decoded."""
    sent = server.requests[-1].headers.get("Authorization")
    return base64.b64decode(sent.removeprefix("Basic ")).decode() if sent and sent.startswith("Basic ") else sent


def test_the_user_of_the_cluster_is_the_user_of_the_registry(file: Path, certificates: Certificates) -> None:
    with ScriptedHttp(SUBJECTS, tls=server_tls(certificates)) as server:
        with registry_client(server.url, client_config=file, timeout=5) as client:
            assert client.subjects() == ["orders"]
        assert authorization(server) == "ann:hush"


def test_a_registry_with_another_authority_is_not_trusted(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with ScriptedHttp(SUBJECTS, tls=server_tls(Certificates(other))) as server:
        with registry_client(server.url, client_config=file, timeout=5) as client, pytest.raises(ClientError):
            client.subjects()
        assert server.requests == []


def test_a_host_name_that_is_not_checked_for_brokers_is_still_checked_here(
    file: Path, certificates: Certificates, tmp_path: Path
) -> None:
    certificates.issue(tmp_path / "other.pem", "registry.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "other.pem")
    add(file, ssl_endpoint_identification_algorithm="")
    with (
        ScriptedHttp(SUBJECTS, tls=context) as server,
        registry_client(server.url, client_config=file, timeout=5) as client,
        pytest.raises(ClientError),
    ):
        client.subjects()


def test_the_certificate_of_the_client_is_shown(file: Path, certificates: Certificates, tmp_path: Path) -> None:
    context = server_tls(certificates)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.ca_file)
    certificates.issue(tmp_path / "ann.pem", "ann")
    add(file, security_protocol="SSL", ssl_keystore_type="PEM", ssl_keystore_location=str(tmp_path / "ann.pem"))
    with ScriptedHttp(SUBJECTS, tls=context) as server:
        with registry_client(server.url, client_config=file, timeout=5) as client:
            assert client.subjects() == ["orders"]
        assert authorization(server) is None


def test_the_registrys_own_keys_win(file: Path, certificates: Certificates) -> None:
    add(file, schema_registry_basic_auth_user_info="reg:other")
    file.write_text(file.read_text().replace(str(certificates.ca_file), "/no/such/ca.pem"))
    add(file, schema_registry_ssl_truststore_location=str(certificates.ca_file))
    add(file, schema_registry_ssl_truststore_type="PEM")
    with ScriptedHttp(SUBJECTS, tls=server_tls(certificates)) as server:
        add(file, schema_registry_url=server.url)
        with registry_client(None, client_config=file, timeout=5) as client:
            client.subjects()
        assert authorization(server) == "reg:other"
        with registry_client(None, "typed:best", client_config=file, timeout=5) as client:
            client.subjects()
        assert authorization(server) == "typed:best"


def test_the_clusters_password_is_not_sent_unencrypted_to_another_machine(file: Path) -> None:
    assert registry_client("http://registry.example", client_config=file, timeout=5).settings.user_info is None
    insisting = registry_client("http://registry.example", client_config=file, timeout=5, insists=True)
    assert insisting.settings.user_info == "ann:hush"
    with pytest.raises(PlainHttp, match="unencrypted to http://registry.example: use https") as raised:
        registry_client("https://a,http://registry.example", "ann:hush", timeout=5)
    assert "hush" not in str(raised.value)


def test_a_password_does_not_follow_a_redirect(file: Path, certificates: Certificates) -> None:
    with ScriptedHttp((307, b"")) as server, registry_client(server.url, client_config=file, timeout=5) as client:
        with pytest.raises(ClientError, match="307"):
            client.subjects()
        assert len(server.requests) == 1


def test_an_unknown_key_of_the_registry_is_refused(file: Path) -> None:
    with pytest.raises(InvalidSettings, match="unknown setting"):
        registry_client(None, properties=["nonsense=1"], client_config=file, timeout=5)


def test_confluents_words_for_the_login_of_the_cluster_are_understood(file: Path) -> None:
    add(file, schema_registry_basic_auth_credentials_source="SASL_INHERIT")
    with ScriptedHttp(SUBJECTS) as server:
        with registry_client(server.url, client_config=file, timeout=5) as client:
            client.subjects()
        assert authorization(server) == "ann:hush"


def test_a_token_is_fetched_for_a_client_that_has_one(tmp_path: Path) -> None:
    with ScriptedHttp((200, b'{"access_token": "abc"}')) as provider, ScriptedHttp(SUBJECTS) as server:
        file = write_properties(
            tmp_path / "token.properties",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": provider.url,
                "sasl.oauthbearer.client.credentials.client.id": "shop",
                "sasl.oauthbearer.client.credentials.client.secret": "hush",
            },
        )
        with registry_client(server.url, client_config=file, timeout=5) as client:
            client.subjects()
        assert authorization(server) == "Bearer abc"
        assert len(provider.requests) == 1
