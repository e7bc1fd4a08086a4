import datetime as dt
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from core_broker.service.clock import ManualClock
from deploy.certificates.authority import HOSTS_MAX, Authority, AuthorityError

NOON_MS = int(dt.datetime(2026, 11, 19, 12, tzinfo=dt.UTC).timestamp() * 1000)
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON_MS)


@pytest.fixture
def authority(tmp_path: Path, clock: ManualClock) -> Authority:
    return Authority(tmp_path / "ca", clock).create()


def certificate_in(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_only_the_owner_may_use_what_it_writes(authority: Authority) -> None:
    authority.issue("broker", hosts=["localhost"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in authority.folder.rglob("*")}
    assert modes.pop("certificates") == stat.S_IMODE(authority.folder.stat().st_mode) == 0o700
    assert set(modes) == {"ca.key", "ca.crt", "broker.pem"}
    assert set(modes.values()) == {0o600}


def test_an_authority_is_never_replaced(authority: Authority) -> None:
    before = authority.key_file.read_bytes()
    with pytest.raises(AuthorityError, match="exists already"):
        Authority(authority.folder).create()
    authority.certificate_file.unlink()
    with pytest.raises(AuthorityError, match="exists already"):
        Authority(authority.folder).create()
    assert authority.key_file.read_bytes() == before


def test_a_service_gets_its_names_and_addresses(authority: Authority) -> None:
    issued = authority.issue("broker", hosts=["localhost", "127.0.0.1", "[::1]", "*.example.org", "localhost"])
    assert issued.hosts == ("localhost", "*.example.org", "127.0.0.1", "::1")
    found = certificate_in(issued.file)
    purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert found.subject.rfc4514_string() == "CN=broker"
    found.verify_directly_issued_by(authority.certificate)


def test_a_client_can_be_no_server(authority: Authority) -> None:
    issued = authority.issue("shop")
    assert issued.hosts == ()
    purposes = certificate_in(issued.file).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_python_accepts_the_file_and_the_authority(authority: Authority) -> None:
    issued = authority.issue("broker", hosts=["localhost"])
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(issued.file)
    assert len(ssl.create_default_context(cafile=str(authority.certificate_file)).get_ca_certs()) == 1
    assert len(x509.load_pem_x509_certificates(issued.file.read_bytes())) == 2


def test_a_certificate_is_not_replaced_but_renewed(authority: Authority, clock: ManualClock) -> None:
    first = authority.issue("broker", hosts=["localhost"], days=10)
    key = load_pem_private_key(first.file.read_bytes(), None).public_key()
    with pytest.raises(AuthorityError, match="exists already") as raised:
        authority.issue("broker", hosts=["localhost"])
    assert "renew" in raised.value.next_step
    clock.advance(24 * HOUR_MS)
    renewed = authority.renew("broker", days=30)
    assert renewed.hosts == first.hosts
    assert renewed.serial != first.serial
    assert renewed.not_after - first.not_after == dt.timedelta(days=21)
    assert load_pem_private_key(renewed.file.read_bytes(), None).public_key() != key
    assert [path.name for path in renewed.file.parent.iterdir()] == ["broker.pem"]


def test_days_are_counted_to_the_end_and_beyond(authority: Authority, clock: ManualClock) -> None:
    issued = authority.issue("broker", days=2)
    assert authority.days_left(issued) == 2
    clock.advance(25 * HOUR_MS)
    assert authority.days_left(issued) == 0
    clock.advance(24 * HOUR_MS)
    assert authority.days_left(issued) == -1


def test_no_certificate_lives_longer_than_its_authority(tmp_path: Path, clock: ManualClock) -> None:
    authority = Authority(tmp_path / "ca", clock).create(days=10)
    assert authority.issue("broker", days=365).not_after == authority.own().not_after


def test_clocks_of_others_may_be_behind(authority: Authority) -> None:
    issued = authority.issue("broker")
    assert issued.not_before == dt.datetime(2026, 11, 19, 11, tzinfo=dt.UTC)


def test_certificates_are_listed_by_name(authority: Authority) -> None:
    for name in ("shop", "broker"):
        authority.issue(name)
    assert [one.name for one in authority.issued()] == ["broker", "shop"]
    with pytest.raises(AuthorityError, match="there are: broker, shop"):
        authority.find("missing")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-f", "x" * 65, "a b", "a\nb", ".hidden", "ä"])
def test_a_name_that_is_no_name_of_a_file_is_refused(authority: Authority, name: str) -> None:
    with pytest.raises(AuthorityError, match="not a name"):
        authority.issue(name)


@pytest.mark.parametrize("host", ["", "a b", "a\nb", "http://x", "x:80", "*", "a..b", "-a", "x" * 254, "ä.example"])
def test_what_is_no_host_is_refused(authority: Authority, host: str) -> None:
    with pytest.raises(AuthorityError, match="neither an address nor"):
        authority.issue("broker", hosts=[host])


def test_hosts_are_bounded(authority: Authority) -> None:
    with pytest.raises(AuthorityError, match="at most"):
        authority.issue("broker", hosts=[f"h{number}" for number in range(HOSTS_MAX + 1)])


def test_a_key_that_others_may_read_is_not_used(authority: Authority) -> None:
    authority.key_file.chmod(0o640)
    with pytest.raises(AuthorityError, match="others than their owner") as raised:
        authority.issue("broker")
    assert "chmod 600" in raised.value.next_step


def test_what_is_missing_or_broken_is_said(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(AuthorityError, match="no certificate authority") as raised:
        Authority(tmp_path).issue("broker")
    assert "caudal certificate init" in raised.value.next_step
    authority.key_file.write_text("no key")
    with pytest.raises(AuthorityError, match="ca.key cannot be read"):
        authority.issue("broker")
    authority.key_file.unlink()
    with pytest.raises(AuthorityError, match="the key of the authority is not here"):
        authority.issue("broker")
    authority.certificate_file.write_text("no certificate")
    with pytest.raises(AuthorityError, match="ca.crt cannot be read"):
        authority.own()
