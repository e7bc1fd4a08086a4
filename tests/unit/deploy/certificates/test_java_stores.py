import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from deploy.certificates.authority import Authority
from deploy.certificates.java_stores import password_file, write_key_store, write_trust_store


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path).create()


def password_of(store: Path) -> bytes:
    return password_file(store).read_bytes().strip()


def test_a_trust_store_has_the_authority_alone(authority: Authority) -> None:
    store = write_trust_store(authority)
    found = pkcs12.load_pkcs12(store.read_bytes(), password_of(store))
    assert found.key is None
    assert [one.certificate for one in found.additional_certs] == [authority.certificate]


def test_a_key_store_has_the_certificate_its_key_and_the_authority(authority: Authority) -> None:
    authority.issue("shop")
    store = write_key_store(authority, "shop")
    found = pkcs12.load_pkcs12(store.read_bytes(), password_of(store))
    assert found.key is not None
    assert found.cert is not None
    assert found.cert.certificate.subject.rfc4514_string() == "CN=shop"
    assert [one.certificate for one in found.additional_certs] == [authority.certificate]


def test_a_store_keeps_its_password_and_only_the_owner_reads_either(authority: Authority) -> None:
    store = write_trust_store(authority)
    before = password_of(store)
    write_trust_store(authority)
    assert password_of(store) == before
    assert {stat.S_IMODE(file.stat().st_mode) for file in (store, password_file(store))} == {0o600}
