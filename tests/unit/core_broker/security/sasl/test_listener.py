"""Listeners are made from the settings: their mechanisms, limits and keys."""

from pathlib import Path

import pytest

from core_broker.errors import BrokerError
from core_broker.security.sasl.client import bearer_message
from core_broker.security.sasl.listener import SaslListeners
from core_broker.security.sasl.mechanism import Challenge, Failure, Success
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.sasl_world import key_set, scram_services, signed_token, signing_key

P = "listener.name.external"
JAAS = "org.apache.kafka.common.security"
NOW = 1_000_000


def listeners(**keys: str) -> SaslListeners:
    settings = BrokerSettings.parse(
        {
            "listeners": "EXTERNAL://localhost:9094,INTERNAL://localhost:9092",
            "listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            **{key.replace("__", "-").replace("_", "."): value for key, value in keys.items()},
        }
    )
    return SaslListeners(settings, ManualClock(NOW * 1000), scram_services())


def test_a_listener_without_sasl_has_no_mechanisms() -> None:
    assert listeners(sasl_enabled_mechanisms="SCRAM-SHA-256").get("INTERNAL") is None


def test_limits_and_sessions_come_from_the_settings() -> None:
    listener = listeners(
        sasl_enabled_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512",
        sasl_server_max_receive_size="1000",
        connection_failed_authentication_delay_ms="250",
        connections_max_reauth_ms="5000",
        listener_name_external_scram__sha__512_connections_max_reauth_ms="7000",
    ).get("EXTERNAL")
    assert listener is not None
    assert (listener.receive_bytes_max, listener.failure_delay_seconds) == (1000, 0.25)
    sessions = {name: mechanism.session_ms_max for name, mechanism in listener.mechanisms.items()}
    assert sessions == {"SCRAM-SHA-256": 5000, "SCRAM-SHA-512": 7000}


def test_exchanges_begin_with_the_users_of_the_listener() -> None:
    users = f"{JAAS}.plain.PlainLoginModule required user_alice=secret;"
    found = listeners(
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256", listener_name_external_plain_sasl_jaas_config=users
    ).get("EXTERNAL")
    assert found is not None
    assert isinstance(found.mechanisms["PLAIN"].begin().step(b"\0alice\0secret"), Success)
    assert isinstance(found.mechanisms["PLAIN"].begin().step(b"\0alice\0other"), Failure)
    assert isinstance(found.mechanisms["SCRAM-SHA-256"].begin().step(b"n,,n=user,r=abc"), Challenge)


async def test_tokens_are_checked_by_the_rules_of_the_listener(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(signing_key("key1")))
    found = listeners(
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=file.as_uri(),
        sasl_oauthbearer_expected_issuer="https://id",
        sasl_oauthbearer_sub_claim_name="client",
    )
    await found.load_keys()
    listener = found.get("EXTERNAL")
    assert listener is not None
    claims = {"client": "alice", "iat": NOW, "exp": NOW + 60}
    for issuer, kind in (("https://id", Success), ("https://other", Challenge)):
        message = bearer_message(signed_token({**claims, "iss": issuer}, signing_key("key1")), {})
        assert isinstance(listener.mechanisms["OAUTHBEARER"].begin().step(message), kind)


async def test_a_key_file_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    """CVE-2026-110985: without keys nothing is accepted, and the operator hears of it."""
    url = (tmp_path / "missing.json").as_uri()
    found = listeners(sasl_enabled_mechanisms="OAUTHBEARER", sasl_oauthbearer_jwks_endpoint_url=url)
    with pytest.raises(BrokerError, match=r"missing\.json"):
        await found.load_keys()
