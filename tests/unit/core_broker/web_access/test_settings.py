"""Settings of logins: what must come together, and which cluster checks passwords."""

from collections.abc import Mapping

import pytest

from connect.settings import ConnectSettings
from core_broker.service.settings import SettingsError
from core_broker.web_access.settings import AccessSettings, RuleSettings
from rest_proxy.settings import ProxySettings
from schema_registry.settings import RegistrySettings

KAFKA = {
    "authentication.kafka.bootstrap.servers": "broker:9092",
    "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
    "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
}
CLUSTER = {"client.security.protocol": "SASL_SSL", "client.sasl.mechanism": "PLAIN", "client.ssl.ca.location": "/ca"}
OWN_USER = {"client.sasl.username": "service", "client.sasl.password": "of the service"}


@pytest.mark.parametrize("settings", [RegistrySettings, ProxySettings, ConnectSettings])
def test_nobody_has_to_log_in_by_default(settings: type[AccessSettings]) -> None:
    assert not settings.parse({}).methods


@pytest.mark.parametrize(
    "given,reason",
    [
        ({"authentication.method": "DIGEST"}, "one or more of NONE, BASIC, BEARER, CERTIFICATE"),
        ({"authentication.method": "NONE,BASIC", **KAFKA}, "NONE cannot be combined"),
        ({"authentication.method": "BASIC"}, "authentication.kafka.bootstrap.servers must be"),
        (
            {"authentication.method": "BASIC", **KAFKA, "authentication.kafka.security.protocol": "SSL"},
            "security.protocol must be SASL_SSL or SASL_PLAINTEXT",
        ),
        (
            {"authentication.method": "BASIC", **KAFKA, "authentication.kafka.sasl.mechanism": "OAUTHBEARER"},
            "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {"authentication.method": "BASIC", **KAFKA, "authentication.kafka.ssl.truststore.location": "/a.jks"},
            "Java key stores cannot be read",
        ),
        ({"authentication.method": "BEARER"}, "the identity provider's keys"),
        ({"authentication.method": "CERTIFICATE"}, "the authorities of callers' certificates"),
        (
            {"authentication.method": "CERTIFICATE", "ssl.ca.location": "/ca", "ssl.client.authentication": "NONE"},
            "the authorities of callers' certificates",
        ),
        ({"authentication.method": "CERTIFICATE", "ssl.ca.location": "/ca"}, "needs a listener with https"),
        ({"super.users": "User:admin"}, "access rules need callers that log in"),
        ({"authorization.enable": "true"}, "access rules need callers that log in"),
        ({"ssl.client.authentication": "REQUESTED"}, "needs ssl.ca.location"),
        ({"authentication.realm": 'x" evil'}, "printable ASCII without quotation marks"),
        ({"authentication.skip.paths": "health"}, "begin with a slash"),
        ({"super.users": "admin"}, "User:admin"),
        ({"authentication.roles": "admin"}, "use access rules"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(given: Mapping[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        RegistrySettings.parse(given)


def test_the_cluster_of_passwords_has_the_names_of_librdkafka_or_of_java() -> None:
    java = {
        "authentication.kafka.ssl.truststore.location": "/ca.pem",
        "authentication.kafka.ssl.truststore.type": "PEM",
    }
    cluster = RegistrySettings.parse({"authentication.method": "BASIC", **KAFKA, **java}).password_cluster()
    assert cluster is not None
    assert cluster.bootstrap_servers == "broker:9092"
    assert cluster.properties == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "ssl.ca.location": "/ca.pem",
    }


@pytest.mark.parametrize("settings", [ProxySettings, ConnectSettings])
def test_a_service_of_a_cluster_checks_passwords_there(settings: type[AccessSettings]) -> None:
    own = {"bootstrap.servers": "own:9092", **CLUSTER, **OWN_USER}
    cluster = settings.parse({"authentication.method": "BASIC", **own}).password_cluster()
    assert cluster is not None
    assert cluster.bootstrap_servers == "own:9092"
    assert cluster.properties == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "ssl.ca.location": "/ca",
    }


def test_another_cluster_gets_nothing_of_the_own_one() -> None:
    given = {"authentication.method": "BASIC", **CLUSTER, **OWN_USER, **KAFKA}
    cluster = ProxySettings.parse(given).password_cluster()
    assert cluster is not None
    assert "ssl.ca.location" not in cluster.properties


@pytest.mark.parametrize(
    "given,wanted",
    [
        ({}, "NONE"),
        ({"ssl.ca.location": "/ca"}, "REQUIRED"),
        ({"ssl.ca.location": "/ca", "ssl.client.authentication": "REQUESTED"}, "REQUESTED"),
    ],
)
def test_certificates_are_required_where_there_are_authorities(given: Mapping[str, str], wanted: str) -> None:
    assert RuleSettings.parse(given).client_authentication == wanted


def test_no_password_is_shown() -> None:
    own = {"client.sasl.password": "unmistakable", "authentication.kafka.sasl.password": "unmistakable"}
    assert "unmistakable" not in repr(ProxySettings.parse(own))
