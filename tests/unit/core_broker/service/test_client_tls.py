import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509

from schema_registry.client.settings import InvalidSettings, RegistryClientSettings
from tests.support.authority import AuthorityFolder


@pytest.fixture
def authority(tmp_path: Path) -> AuthorityFolder:
    return AuthorityFolder(tmp_path / "authority")


def settings_of(authority: AuthorityFolder, certificate: Path) -> RegistryClientSettings:
    return RegistryClientSettings.parse(
        {
            "url": "https://localhost:1",
            "ssl.ca.location": str(authority.trust_store),
            "ssl.certificate.location": str(certificate),
        }
    )


def shown(authority: AuthorityFolder, client: ssl.SSLContext) -> str:
    """The common name of the certificate that a server is shown."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("server"))
    server.load_verify_locations(authority.trust_store)
    server.verify_mode = ssl.CERT_REQUIRED
    ours, theirs = socket.socketpair()
    found: list[bytes | None] = []

    def serve() -> None:
        with server.wrap_socket(theirs, server_side=True) as connection:
            found.append(connection.getpeercert(binary_form=True))
            connection.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    with client.wrap_socket(ours, server_hostname="localhost") as connection:
        connection.send(b"x")
    thread.join(30)
    assert found
    assert found[0] is not None
    return f"{x509.load_der_x509_certificate(found[0]).serial_number}"


def test_a_renewed_certificate_is_shown_by_the_next_connection(authority: AuthorityFolder) -> None:
    certificate = authority.issue("proxy")
    context = settings_of(authority, certificate).tls()
    first = shown(authority, context)
    assert shown(authority, context) == first
    authority.issue("proxy")
    second = shown(authority, context)
    assert second != first
    certificate.write_text("broken")
    assert shown(authority, context) == second


def test_a_key_of_another_certificate_changes_nothing(authority: AuthorityFolder) -> None:
    certificate = authority.issue("proxy")
    context = settings_of(authority, certificate).tls()
    first = shown(authority, context)
    mine, other = certificate.read_text(), authority.issue("other").read_text()
    end = "-----END PRIVATE KEY-----\n"
    certificate.write_text(other.partition(end)[0] + end + mine.partition(end)[2])
    assert shown(authority, context) == first


def test_files_that_cannot_be_read_at_first_are_refused(authority: AuthorityFolder, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot read the certificates"):
        settings_of(authority, tmp_path / "missing.pem").tls()
