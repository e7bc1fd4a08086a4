"""Settings of TLS: what is refused at the start, for whichever listener, and in words."""

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings

EXTERNAL = {
    "listeners": "EXTERNAL://h:1",
    "listener.security.protocol.map": "EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
}
KEYSTORE = {"ssl.keystore.location": "server.pem"}
OVER_SASL = (
    EXTERNAL
    | KEYSTORE
    | {
        "listener.security.protocol.map": "EXTERNAL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.external.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain"
        ".PlainLoginModule required username=node password=secret user_node=secret;",
    }
)


def refusals(values: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        BrokerSettings.parse(EXTERNAL | values)
    return str(caught.value)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_listener_with_tls_needs_a_key_store(protocol: str) -> None:
    text = refusals({"listener.security.protocol.map": f"EXTERNAL:{protocol},CONTROLLER:PLAINTEXT"})
    assert "listener.name.external.ssl.keystore.location=: must be set" in text
    assert f"(EXTERNAL uses {protocol})" in text


@pytest.mark.parametrize("wanted", ["required", "requested"])
def test_certificates_of_clients_are_never_checked_against_public_authorities(wanted: str) -> None:
    assert "ssl.truststore.location=: must be set" in refusals({**KEYSTORE, "ssl.client.auth": wanted})


@pytest.mark.parametrize(
    "values,problem",
    [
        ({"ssl.keystore.key": "k"}, "ssl.keystore.key=******: must be set together with"),
        ({"ssl.keystore.certificate.chain": "c"}, "ssl.keystore.key=******: must be set together with"),
        (
            {**KEYSTORE, "ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
            "ssl.keystore.location=server.pem: must not be set together with ssl.keystore.key",
        ),
        (
            {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.type": "PKCS12"},
            "ssl.keystore.type=PKCS12: must be PEM for certificates in the settings",
        ),
        (
            {**KEYSTORE, "ssl.keystore.type": "PEM", "ssl.keystore.password": "s3cret"},
            "ssl.keystore.password=******: must not be set for PEM; the password of an encrypted key is",
        ),
        ({"ssl.keystore.password": "s3cret"}, "ssl.keystore.password=******: must not be set without"),
        ({**KEYSTORE, "ssl.keystore.type": "PKCS12"}, "ssl.keystore.password=******: must be set for"),
        (
            {**KEYSTORE, "ssl.truststore.certificates": "c", "ssl.truststore.location": "ca.pem"},
            "ssl.truststore.location=ca.pem: must not be set together with",
        ),
        (
            {**KEYSTORE, "ssl.truststore.location": "c", "ssl.truststore.type": "PEM", "ssl.truststore.password": "x"},
            "ssl.truststore.password=******: must not be set for PEM",
        ),
        ({**KEYSTORE, "ssl.enabled.protocols": "TLSv1.1"}, "must be one or more of TLSv1.2, TLSv1.3"),
        ({**KEYSTORE, "ssl.keystore.type": "BKS"}, "must be one of JKS, PKCS12, PEM"),
        ({**KEYSTORE, "ssl.endpoint.identification.algorithm": "ldaps"}, "must be https, or empty"),
    ],
)
def test_contradictions_are_refused_and_passwords_never_shown(values: dict[str, str], problem: str) -> None:
    assert problem in refusals(values)


@pytest.mark.parametrize(
    "values",
    [
        KEYSTORE,
        {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
        {**KEYSTORE, "ssl.keystore.type": "pkcs12", "ssl.keystore.password": "s3cret"},
        {**KEYSTORE, "ssl.client.auth": "required", "ssl.truststore.location": "ca.pem"},
        {**KEYSTORE, "ssl.truststore.location": "ca.p12", "ssl.truststore.type": "PKCS12"},
    ],
)
def test_complete_stores_are_accepted(values: dict[str, str]) -> None:
    shown = repr(BrokerSettings.parse(EXTERNAL | values))
    assert "s3cret" not in shown


def test_clients_that_log_in_are_asked_for_certificates_only_by_the_prefixed_setting() -> None:
    trusting = {**OVER_SASL, "ssl.truststore.location": "ca.pem", "ssl.client.auth": "required"}
    assert BrokerSettings.parse(trusting).for_listener("EXTERNAL").ssl_client_auth == "none"
    prefixed = {**trusting, "listener.name.external.ssl.client.auth": "required"}
    assert BrokerSettings.parse(prefixed).for_listener("EXTERNAL").ssl_client_auth == "required"


def test_a_listener_without_tls_needs_no_stores() -> None:
    BrokerSettings.parse({"ssl.client.auth": "required"})


def test_what_means_nothing_without_java_is_accepted_with_the_reason() -> None:
    keys = ["ssl.provider", "ssl.protocol", "listener.name.external.ssl.engine.factory.class"]
    assert BrokerSettings.ignored([*keys, "ssl.keystore.location"]).keys() == set(keys)
