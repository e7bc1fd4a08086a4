from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from core_broker.client.key_stores import StoreKind, UnreadableStore, kind_of, read_certificates, read_key_pair

PASSWORD = "changeit"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trust_store(authority: trustme.CA, tmp_path: Path) -> Path:
    """A store with a CA and nothing else, as keytool -importcert makes it."""
    certificate = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    file = tmp_path / "trust.p12"
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(certificate, b"ca")], encryption))
    return file


@pytest.fixture
def key_store(authority: trustme.CA, tmp_path: Path) -> Path:
    issued = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    file = tmp_path / "keys.p12"
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, certificate, [], encryption))  # type: ignore[arg-type] # every key of trustme is fine
    return file


def test_the_first_byte_decides_what_java_calls_jks(trust_store: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.jks"
    old.write_bytes(b"\xfe\xed\xfe\xed")
    assert kind_of(str(trust_store), "") is StoreKind.PKCS12
    assert kind_of(str(trust_store), "jks") is StoreKind.PKCS12
    assert kind_of(str(old), "") is StoreKind.JKS
    assert kind_of(str(tmp_path / "missing"), "") is StoreKind.JKS
    assert kind_of(str(old), "pem") is StoreKind.PEM
    assert kind_of(str(old), " PKCS12 ") is StoreKind.PKCS12


def test_certificates_of_a_trust_store_become_pem(trust_store: Path, authority: trustme.CA) -> None:
    assert read_certificates(str(trust_store), PASSWORD) == authority.cert_pem.bytes().decode()
    given = {"ssl.truststore.location": str(trust_store), "ssl.truststore.password": PASSWORD}
    assert to_librdkafka(given.items()) == {"ssl.ca.pem": authority.cert_pem.bytes().decode()}


def test_key_and_certificate_become_pem(key_store: Path) -> None:
    pair = read_key_pair(str(key_store), PASSWORD)
    assert pair.key.startswith("-----BEGIN PRIVATE KEY-----")
    assert pair.certificates.startswith("-----BEGIN CERTIFICATE-----")


def test_what_cannot_be_read_is_refused_without_the_password(trust_store: Path, key_store: Path) -> None:
    for store, password, reason in (
        (trust_store, "hush", "its password is wrong"),
        (trust_store.parent / "missing.p12", "hush", "cannot be read"),
    ):
        with pytest.raises(UnreadableStore, match=reason) as raised:
            read_certificates(str(store), password)
        assert "hush" not in str(raised.value)
    with pytest.raises(UnreadableStore, match="no private key"):
        read_key_pair(str(trust_store), PASSWORD)


def test_a_trust_store_with_a_wrong_password_is_refused_with_its_key(trust_store: Path) -> None:
    given = {"ssl.truststore.location": str(trust_store), "ssl.truststore.password": "hush"}
    with pytest.raises(PropertyRefused, match="password is wrong") as raised:
        to_librdkafka(given.items())
    assert raised.value.key == "ssl.truststore.location"
