"""Key stores and trust stores: every form that Kafka knows, and an error in words for everything else."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from core_broker.security.stores import (
    StoreError,
    check_renewal,
    load_key_store,
    load_trust_store,
    store_files,
)
from core_broker.settings.tls import TlsSettings, store_problems
from tests.support.certificates import Authority, Identity

PASSWORD = "pässword"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue()


def settings(**values: str) -> TlsSettings:
    return TlsSettings.parse({key.replace("_", "."): value for key, value in values.items()})


def refusal(given: TlsSettings) -> str:
    with pytest.raises(StoreError) as caught:
        load_key_store(given)
        load_trust_store(given)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def key_file(folder: Path, content: str | bytes, **values: str) -> TlsSettings:
    path = folder / "store"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return settings(ssl_keystore_location=str(path), **values)


def trust_file(folder: Path, content: str | bytes, **values: str) -> TlsSettings:
    path = folder / "store"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return settings(ssl_truststore_location=str(path), **values)


def assert_loads(given: TlsSettings, identity: Identity) -> None:
    store = load_key_store(given)
    assert store is not None
    assert store.chain == (identity.certificate, *identity.above)
    assert store.key.public_key() == identity.key.public_key()


def test_pem_in_the_settings(identity: Identity) -> None:
    given = settings(ssl_keystore_key=identity.key_pem(), ssl_keystore_certificate_chain=identity.chain_pem)
    assert_loads(given, identity)


def test_pem_in_the_settings_may_be_one_line(identity: Identity) -> None:
    key, chain = (" ".join(text.split("\n")) for text in (identity.key_pem(), identity.chain_pem))
    assert_loads(settings(ssl_keystore_key=key, ssl_keystore_certificate_chain=chain), identity)


def test_a_pem_file_with_text_around_its_blocks(identity: Identity, tmp_path: Path) -> None:
    text = f"Bag Attributes\n  friendlyName: own\n{identity.chain_pem}subject=CN = broker\n{identity.key_pem()}".strip()
    assert_loads(key_file(tmp_path, text), identity)
    assert_loads(key_file(tmp_path, text, ssl_keystore_type="PEM"), identity)


def test_an_encrypted_key(identity: Identity, tmp_path: Path) -> None:
    text = identity.key_pem(PASSWORD) + identity.chain_pem
    assert_loads(key_file(tmp_path, text, ssl_key_password=PASSWORD), identity)
    assert "ssl.key.password: must be set" in refusal(key_file(tmp_path, text))
    assert "ssl.key.password: does not decrypt" in refusal(key_file(tmp_path, text, ssl_key_password="wrong"))


def test_a_key_in_a_file_of_its_own(identity: Identity, tmp_path: Path) -> None:
    (tmp_path / "tls.key").write_text(identity.key_pem())
    key = str(tmp_path / "tls.key")
    assert_loads(key_file(tmp_path, identity.chain_pem, ssl_key_location=key), identity)
    other = Authority().issue()
    assert "ssl.key.location: the first certificate does not belong to the key" in refusal(
        key_file(tmp_path, other.chain_pem, ssl_key_location=key)
    )
    (tmp_path / "tls.key").write_text(identity.chain_pem)
    assert "ssl.key.location: must contain one private key" in refusal(
        key_file(tmp_path, identity.chain_pem, ssl_key_location=key)
    )
    store = key_file(tmp_path, identity.pkcs12(PASSWORD), ssl_keystore_password=PASSWORD, ssl_key_location=key)
    assert "ssl.key.location: must not be set for PKCS12" in refusal(store)
    assert "must not be set without ssl.keystore.location" in dict(store_problems(settings(ssl_key_location=key))).get(
        "ssl.key.location", ""
    )


def test_a_pkcs12_store_is_told_by_its_content(identity: Identity, tmp_path: Path) -> None:
    data = identity.pkcs12(PASSWORD)
    assert_loads(key_file(tmp_path, data, ssl_keystore_password=PASSWORD), identity)
    assert_loads(key_file(tmp_path, data, ssl_keystore_password=PASSWORD, ssl_keystore_type="PKCS12"), identity)
    # As Java does.
    assert_loads(key_file(tmp_path, data, ssl_keystore_password=PASSWORD, ssl_keystore_type="JKS"), identity)


def test_the_chain_of_a_pkcs12_store_is_put_in_order(tmp_path: Path) -> None:
    root = Authority("Root")
    identity = Authority("Between", root).issue()
    mixed = Identity(identity.certificate, identity.key, (root.certificate, *identity.above))
    given = key_file(tmp_path, mixed.pkcs12(PASSWORD), ssl_keystore_password=PASSWORD)
    store = load_key_store(given)
    assert store is not None
    assert store.chain == (identity.certificate, *identity.above, root.certificate)


@pytest.mark.parametrize("password", [{}, {"ssl_keystore_password": "wrong"}])
def test_a_pkcs12_store_needs_its_password(password: dict[str, str], identity: Identity, tmp_path: Path) -> None:
    text = refusal(key_file(tmp_path, identity.pkcs12(PASSWORD), **password))
    assert text.startswith(f"ssl.keystore.password: {'is wrong' if password else 'must be set'}")


@pytest.mark.parametrize(
    "content,values,problem",
    [
        (bytes.fromhex("feedfeed00000002"), {}, "is a JKS file, which cannot be read; convert it: keytool"),
        (b"nonsense", {}, "is neither PEM nor PKCS12"),
        (b"\x30nonsense", {"ssl_keystore_password": PASSWORD}, "ssl.keystore.password: is wrong, or"),
        (b"\x30nonsense", {"ssl_keystore_type": "PEM"}, "ssl.keystore.type: is PEM, but"),
        (b"-----BEGIN \xff", {}, "is not a text file"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", {}, "a certificate that cannot be read"),
        (b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----", {}, "is not valid base64"),
        (b"-----BEGIN NOTHING-----", {}, "contains no certificate"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, values: dict[str, str], problem: str, tmp_path: Path) -> None:
    assert problem in refusal(key_file(tmp_path, content, **values))


def test_a_type_that_contradicts_the_file_is_refused(identity: Identity, tmp_path: Path) -> None:
    content = identity.key_pem() + identity.chain_pem
    given = key_file(tmp_path, content, ssl_keystore_type="PKCS12", ssl_keystore_password=PASSWORD)
    assert "ssl.keystore.type: is PKCS12, but" in refusal(given)


def test_a_password_of_a_pem_file_is_refused(identity: Identity, tmp_path: Path) -> None:
    text = identity.key_pem() + identity.chain_pem
    given = key_file(tmp_path, text, ssl_keystore_password=PASSWORD)
    assert "the password of an encrypted key is ssl.key.password" in refusal(given)


def test_a_file_must_have_one_key_that_belongs_to_the_first_certificate(
    authority: Authority, identity: Identity, tmp_path: Path
) -> None:
    other = authority.issue()
    assert "not 0" in refusal(key_file(tmp_path, identity.chain_pem))
    assert "not 2" in refusal(key_file(tmp_path, identity.chain_pem + identity.key_pem() + other.key_pem()))
    assert "does not belong to the key" in refusal(key_file(tmp_path, identity.chain_pem + other.key_pem()))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert f"cannot read {missing}: No such file" in refusal(settings(ssl_keystore_location=missing))
    assert f"cannot read {missing}: No such file" in refusal(settings(ssl_truststore_location=missing))


def test_a_trust_store_may_be_pem_or_pkcs12(authority: Authority, tmp_path: Path) -> None:
    expected = (authority.certificate,)
    assert load_trust_store(settings(ssl_truststore_certificates=authority.pem)) == expected
    assert load_trust_store(trust_file(tmp_path, authority.pem)) == expected
    entry = pkcs12.PKCS12Certificate(authority.certificate, b"authority")
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    data = pkcs12.serialize_java_truststore([entry], encryption)
    assert load_trust_store(trust_file(tmp_path, data, ssl_truststore_password=PASSWORD)) == expected
    assert "ssl.truststore.password: must be set" in refusal(trust_file(tmp_path, data))
    assert "must not be set for PEM" in refusal(trust_file(tmp_path, authority.pem, ssl_truststore_password=PASSWORD))
    assert "contains no certificate" in refusal(trust_file(tmp_path, "-----BEGIN x"))


def test_no_stores() -> None:
    assert load_key_store(settings()) is None
    assert load_trust_store(settings()) == ()
    assert store_files(settings()) == ()


def test_the_files_to_watch() -> None:
    given = settings(ssl_keystore_location="a", ssl_key_location="b", ssl_truststore_location="c")
    assert store_files(given) == (Path("a"), Path("b"), Path("c"))


def test_a_new_certificate_must_have_the_subject_of_the_old_one(authority: Authority) -> None:
    old = authority.issue("CN=broker,O=Acme").certificate
    check_renewal(old, authority.issue("CN=Broker,O=ACME").certificate, settings())
    other = authority.issue("CN=other,O=Acme").certificate
    with pytest.raises(StoreError, match="from 'CN=broker,O=Acme' to 'CN=other,O=Acme'"):
        check_renewal(old, other, settings())
    check_renewal(old, other, settings(ssl_allow_dn_changes="true"))


def test_a_new_certificate_must_have_the_alternative_names_of_the_old_one(authority: Authority) -> None:
    old, more, fewer = (authority.issue(hosts=hosts).certificate for hosts in (["a", "b"], ["a", "b", "c"], ["a"]))
    check_renewal(old, more, settings())
    with pytest.raises(StoreError, match="lacks b"):
        check_renewal(old, fewer, settings())
    with pytest.raises(StoreError, match="lacks a, b"):
        check_renewal(old, authority.issue(hosts=[]).certificate, settings())
    check_renewal(old, fewer, settings(ssl_allow_san_changes="true"))
