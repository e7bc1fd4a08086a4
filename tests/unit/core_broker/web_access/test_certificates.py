"""Certificates: whom they belong to, by the rules of the broker."""

import datetime as dt

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from core_broker.protocol.principals import Principal
from core_broker.service.clock import ManualClock
from core_broker.web_access import certificates as module
from core_broker.web_access.certificates import Certificates
from core_broker.web_access.errors import Refused
from tests.support.certificates import Authority

AUTHORITY = Authority()
NOW_MS = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)


def certificate(subject: str = "CN=alice,O=Acme") -> bytes:
    return AUTHORITY.issue(subject).certificate.public_bytes(Encoding.DER)


def test_a_certificate_belongs_to_its_subject() -> None:
    owner = Certificates("DEFAULT", ManualClock(NOW_MS)).owner_of(certificate())
    assert owner == Principal("User", "CN=alice,O=Acme")


def test_rules_make_the_name() -> None:
    certificates = Certificates("RULE:^CN=([^,]+),O=Acme$/$1/U", ManualClock(NOW_MS))
    assert certificates.owner_of(certificate()) == Principal("User", "ALICE")
    with pytest.raises(Refused) as refused:
        certificates.owner_of(certificate("CN=mallory,O=Other"))
    assert "no rule of ssl.principal.mapping.rules" in refused.value.reason


def test_a_certificate_that_expires_during_a_connection_is_refused() -> None:
    clock = ManualClock(NOW_MS)
    certificates = Certificates("DEFAULT", clock)
    shown = certificate()
    certificates.owner_of(shown)
    clock.jump(100 * 366 * 86_400_000)
    with pytest.raises(Refused, match="expired"):
        certificates.owner_of(shown)


def test_what_is_no_certificate_belongs_to_nobody() -> None:
    with pytest.raises(Refused):
        Certificates("DEFAULT", ManualClock(NOW_MS)).owner_of(b"\x30\x03\x02\x01\x01")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 3)
    certificates = Certificates("DEFAULT", ManualClock(NOW_MS))
    for number in range(8):
        certificates.owner_of(certificate(f"CN=user-{number}"))
    assert len(certificates._owners) == 3


def test_a_wrong_rule_is_an_error_at_the_start() -> None:
    with pytest.raises(ValueError, match="rule"):
        Certificates("RULE:nonsense", ManualClock())
