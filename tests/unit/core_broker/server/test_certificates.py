"""Certificates of listeners: loaded at the start, renewed when files or settings change, kept when that fails."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from core_broker.errors import BrokerError, ErrorCode
from core_broker.server.certificates import Certificates
from core_broker.settings import BrokerConfig, BrokerSettings
from tests.support.certificates import Authority, Identity
from tests.support.patience import eventually

AUTHORITY = Authority()
PAUSE_S = 0.01
BETWEEN_NODES = {
    "listeners": "EXTERNAL://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "EXTERNAL",
}
"""The encrypted listener is the one of brokers among themselves."""


def settings(store: Path, **more: str) -> BrokerSettings:
    return BrokerSettings.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:1,EXTERNAL://127.0.0.1:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.location": str(store),
            **more,
        }
    )


def changed(static: BrokerSettings, **changes: str) -> BrokerSettings:
    """The settings after changes at run time for the encrypted listener."""
    return BrokerConfig(static=static, own={f"listener.name.external.{key}": changes[key] for key in changes}).effective


def loaded(given: BrokerSettings) -> Certificates:
    certificates = Certificates(given)
    certificates.load(given.listeners)
    return certificates


def shown(certificates: Certificates) -> x509.Certificate:
    tls = certificates.of("EXTERNAL")
    assert tls is not None
    return tls.certificate


@asynccontextmanager
async def watching(certificates: Certificates) -> AsyncIterator[None]:
    task = asyncio.create_task(certificates.watch(PAUSE_S))
    try:
        yield
    finally:
        task.cancel()


async def becomes(certificates: Certificates, identity: Identity) -> None:
    await asyncio.to_thread(eventually, lambda: shown(certificates) == identity.certificate)


async def reported(caplog: pytest.LogCaptureFixture, reason: str) -> None:
    def is_reported() -> bool:
        return any(reason in str(vars(record).get("reason")) for record in tuple(caplog.records))

    await asyncio.to_thread(eventually, is_reported)


async def test_only_encrypted_listeners_have_certificates(tmp_path: Path) -> None:
    identity = AUTHORITY.issue()
    certificates = loaded(settings(identity.save(tmp_path / "broker.pem")))
    assert certificates.of("PLAINTEXT") is None
    assert shown(certificates) == identity.certificate


async def test_a_store_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"listener EXTERNAL: ssl\.keystore\.location: cannot read"):
        loaded(settings(tmp_path / "missing.pem"))


async def test_changed_files_are_loaded_and_broken_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    certificates = loaded(settings(store))
    async with watching(certificates):
        renewed = AUTHORITY.issue()
        renewed.save(store)
        await becomes(certificates, renewed)
        store.write_text("broken")
        await reported(caplog, "is neither PEM nor PKCS12")
        store.unlink()
        await reported(caplog, "cannot read")
        AUTHORITY.issue(hosts=["other"]).save(store)
        await reported(caplog, "lacks 127.0.0.1")
        assert shown(certificates) == renewed.certificate
        again = AUTHORITY.issue()
        again.save(store)
        await becomes(certificates, again)
    assert all(record.levelno == logging.ERROR for record in caplog.records if "cannot use" in record.message)


async def test_changed_settings_are_applied_to_their_listener(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    certificates = loaded(settings(store))
    renewed = AUTHORITY.issue()
    other = renewed.save(tmp_path / "other.pem")
    key = "listener.name.external.ssl.keystore.location"
    certificates.configure(settings(store, **{key: str(other)}))
    await becomes(certificates, renewed)
    certificates.configure(settings(store, **{key: str(tmp_path / "missing.pem")}))
    await reported(caplog, "cannot read")
    assert shown(certificates) == renewed.certificate


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("ssl.keystore.location", "missing.pem", "cannot read"),
        ("ssl.keystore.location", "broken.pem", "is neither PEM nor PKCS12"),
        ("ssl.keystore.location", "locked.pem", r"ssl\.key\.password: must be set"),
        ("ssl.keystore.location", "elsewhere.pem", "lacks 127.0.0.1"),
        ("ssl.keystore.location", "pipe", "it is not a file"),
        ("ssl.truststore.location", "broken.pem", "is neither PEM nor PKCS12"),
    ],
)
async def test_stores_that_could_not_be_used_are_found_before_they_are_set(
    tmp_path: Path, key: str, value: str, reason: str
) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    certificates = loaded(settings(store))
    (tmp_path / "broken.pem").write_text("broken")
    (tmp_path / "locked.pem").write_text(f"{AUTHORITY.issue().chain_pem}{AUTHORITY.issue().key_pem('s3cret')}")
    AUTHORITY.issue(hosts=["other"]).save(tmp_path / "elsewhere.pem")
    os.mkfifo(tmp_path / "pipe")
    wanted = settings(store, **{f"listener.name.external.{key}": str(tmp_path / value)})
    with pytest.raises(BrokerError, match=f"listener EXTERNAL: .*{reason}") as refused:
        await certificates.check(wanted)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


async def test_what_did_not_change_is_not_checked_again(tmp_path: Path) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    certificates = loaded(settings(store))
    store.write_text("broken")
    await certificates.check(settings(store, **{"listener.name.external.max.connections": "7"}))


async def test_stores_that_contradict_each_other_are_found_before_they_are_set(tmp_path: Path) -> None:
    identity = AUTHORITY.issue()
    store = identity.save(tmp_path / "broker.pem")
    inline = {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}
    with pytest.raises(BrokerError, match="must not be set together with ssl.keystore.key") as refused:
        await loaded(settings(store)).check(changed(settings(store), **inline))
    assert "PRIVATE KEY" not in refused.value.message


async def test_a_listener_through_which_this_node_connects_to_others_keeps_its_trust_store(tmp_path: Path) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    static = settings(store, **BETWEEN_NODES, **{"ssl.truststore.location": str(AUTHORITY.save(tmp_path / "ca.pem"))})
    with pytest.raises(BrokerError, match=r"ssl\.truststore\.location: must be set"):
        await loaded(static).check(changed(static, **{"ssl.truststore.location": ""}))


@pytest.mark.parametrize("client_auth", ["none", "required"])
async def test_nodes_with_a_new_store_must_get_along_with_those_that_have_the_old_one(
    tmp_path: Path, client_auth: str
) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    given = {**BETWEEN_NODES, "ssl.truststore.location": str(AUTHORITY.save(tmp_path / "ca.pem"))}
    static = settings(store, **given, **{"ssl.client.auth": client_auth})
    certificates, other = loaded(static), Authority("Other")
    own = {"ssl.keystore.location": str(AUTHORITY.issue().save(tmp_path / "renewed.pem"))}
    await certificates.check(changed(static, **own))
    foreign = {"ssl.keystore.location": str(other.issue().save(tmp_path / "foreign.pem"))}
    with pytest.raises(BrokerError, match="would not accept each other"):
        await certificates.check(changed(static, **foreign))
    with pytest.raises(BrokerError, match="would not accept each other"):
        await certificates.check(
            changed(static, **{"ssl.truststore.location": str(other.save(tmp_path / "other.pem"))})
        )


async def test_what_is_not_a_store_stays_as_it_was_at_the_start(tmp_path: Path) -> None:
    store = AUTHORITY.issue().save(tmp_path / "broker.pem")
    certificates = loaded(settings(store))
    renewed = AUTHORITY.issue()
    prefix = "listener.name.external."
    changed = {
        f"{prefix}ssl.keystore.location": str(renewed.save(tmp_path / "other.pem")),
        f"{prefix}ssl.enabled.protocols": "TLSv1.2",
    }
    certificates.configure(settings(store, **changed))
    await becomes(certificates, renewed)
    tls = certificates.of("EXTERNAL")
    assert tls is not None
    assert tls.settings.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize("has_file", [True, False])
async def test_a_store_that_has_expired_or_is_gone_can_be_replaced_but_not_by_one_that_has_expired(
    tmp_path: Path, has_file: bool
) -> None:
    store = AUTHORITY.issue(has_expired=True).save(tmp_path / "broker.pem")
    given = {**BETWEEN_NODES, "ssl.truststore.location": str(AUTHORITY.save(tmp_path / "ca.pem"))}
    static = settings(store, **given, **{"ssl.client.auth": "required"})
    certificates = loaded(static)
    if not has_file:
        store.unlink()
    await certificates.check(
        changed(static, **{"ssl.keystore.location": str(AUTHORITY.issue().save(tmp_path / "renewed.pem"))})
    )
    expired = AUTHORITY.issue(has_expired=True).save(tmp_path / "expired.pem")
    with pytest.raises(BrokerError, match="certificate has expired|would not accept each other"):
        await certificates.check(changed(static, **{"ssl.keystore.location": str(expired)}))
