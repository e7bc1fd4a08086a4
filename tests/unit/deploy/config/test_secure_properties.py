"""The secure sample properties: settings that each service has, and the same protection as in secure.yaml."""

import re
from typing import Final

import pytest

from core_broker.service.properties import parse_properties, read_file
from core_broker.settings import BrokerSettings
from deploy.clients.connections import client_settings
from deploy.stack import STACK, Service
from tests.support.deployment import DEPLOY, merge_compose, parse_settings, read_compose, settings_in, stack_settings

SECURE: Final = DEPLOY / "config" / "secure"
COMPOSE: Final = merge_compose(
    read_compose(DEPLOY / "compose" / "compose.yaml"), read_compose(DEPLOY / "compose" / "secure.yaml")
)
_PROTECTION: Final = re.compile(r".*(ssl|sasl|security|authent|authoriz|super|providers|inter\.broker).*")
_PLACES: Final = {"/run/secrets/ca.crt": "/etc/caudal/tls/ca.crt", "/run/connectors": "/etc/caudal/connectors"}
_OF_CONTAINERS: Final = re.compile(r"listener\.name\.host\..*")
"""A container has one more listener, for clients on the machine around it."""
_WITHOUT_TLS: Final = re.compile(r"http://(?!localhost\b)|PLAINTEXT")


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_takes_its_secure_sample_and_all_that_it_proposes(service: Service) -> None:
    text = (SECURE / service.config_file).read_text()
    settings = parse_properties(text)
    proposed = parse_properties(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE))
    assert len(proposed) > len(settings)
    parse_settings(service.name, settings)
    parse_settings(service.name, proposed)
    assert stack_settings(service.name, data=f"/var/lib/caudal/{service.name}", host="localhost").keys() <= set(
        settings
    )
    assert service.settings_page in text
    assert not [value for value in settings.values() if _WITHOUT_TLS.search(value)]


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_of_a_machine_is_protected_as_its_container_is(service: Service) -> None:
    places = _PLACES | {"/run/secrets/tls.pem": f"/etc/caudal/tls/certificates/{service.name}.pem"}
    container = settings_in(service.name, COMPOSE["services"][service.name]["environment"])
    expected = {
        key: places.get(value, value).replace("HOST:SASL_SSL,", "")
        for key, value in container.items()
        if _PROTECTION.fullmatch(key) and not _OF_CONTAINERS.fullmatch(key) and not key.endswith(("servers", "url"))
    }
    settings = read_file(SECURE / service.config_file)
    addresses = {key for key in settings if key.endswith(("servers", "url"))}
    assert {key: settings[key] for key in settings if _PROTECTION.fullmatch(key) and key not in addresses} == expected


def test_every_listener_of_the_broker_asks_for_a_name() -> None:
    settings = BrokerSettings.parse(read_file(SECURE / "server.properties"))
    for listener in settings.listeners:
        protocol = settings.security_protocol(listener.name)
        shows = settings.for_listener(listener.name).ssl_client_auth
        assert protocol == "SASL_SSL" or (protocol, shows) == ("SSL", "required"), listener.name


def test_the_administrator_shows_a_certificate_at_the_listener_that_takes_them() -> None:
    given = read_file(SECURE / "admin.properties")
    client = client_settings(None, [f"{key}={value}" for key, value in given.items()], timeout=1)
    broker = read_file(SECURE / "server.properties")
    (port,) = re.findall(r"BROKERS://:(\d+)", broker["listeners"])
    assert client.bootstrap_servers == f"localhost:{port}"
    assert client.properties["ssl.certificate.location"] == "/etc/caudal/tls/certificates/admin.pem"
    assert "User:admin" in broker["super.users"].split(";")
