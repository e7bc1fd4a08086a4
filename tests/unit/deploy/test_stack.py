import pytest

from connect.settings import ConnectSettings
from core_broker.service.settings import ServiceSettings
from core_broker.settings import BrokerSettings
from deploy.services import SERVICES
from deploy.stack import BY_NAME, STACK, ServiceAddress, settings_of
from rest_proxy.settings import ProxySettings
from schema_registry.settings import RegistrySettings
from streams.settings import StreamsSettings

SETTINGS: dict[str, type[ServiceSettings]] = {
    "broker": BrokerSettings,
    "registry": RegistrySettings,
    "rest-proxy": ProxySettings,
    "connect": ConnectSettings,
    "streams": StreamsSettings,
}
ADDRESSES = {
    service.name: ServiceAddress(
        host=f"{service.name}.internal",
        port=service.port,
        data=f"/data/{service.name}",
        bind="10.0.0.7",
        metrics_port=service.metrics_port,
    )
    for service in STACK
}


def test_every_service_of_the_stack_is_a_command() -> None:
    assert set(BY_NAME) <= set(SERVICES)


def test_a_service_starts_after_those_that_it_needs() -> None:
    order = [service.name for service in STACK]
    assert all(order.index(need) < order.index(service.name) for service in STACK for need in service.needs)


def test_no_two_services_have_the_same_port() -> None:
    ports = [port for service in STACK for port in (service.port, service.metrics_port) if port]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_service_takes_the_settings_that_join_it_to_the_others(name: str) -> None:
    settings = settings_of(name, ADDRESSES)
    SETTINGS[name].parse(settings)  # refuses what is unknown or wrong
    assert SETTINGS[name].ignored(settings) == {}


@pytest.mark.parametrize("name", ["rest-proxy", "connect", "streams"])
def test_services_find_the_broker_at_its_address(name: str) -> None:
    assert settings_of(name, ADDRESSES)["bootstrap.servers"] == "broker.internal:9092"


def test_external_services_are_found_at_their_addresses() -> None:
    elsewhere = {"broker": "kafka-1:9092,kafka-2:9092", "registry": "https://schemas.example.org"}
    addresses = {"rest-proxy": ADDRESSES["rest-proxy"], "broker": ADDRESSES["broker"]}
    settings = settings_of("rest-proxy", addresses, elsewhere=elsewhere)
    assert settings["bootstrap.servers"] == "kafka-1:9092,kafka-2:9092"
    assert settings["schema.registry.url"] == "https://schemas.example.org"
    guarding = settings_of("broker", addresses, elsewhere=elsewhere)
    assert guarding["confluent.schema.registry.url"] == "https://schemas.example.org"


def test_a_broker_without_any_registry_asks_none() -> None:
    assert "confluent.schema.registry.url" not in settings_of("broker", {"broker": ADDRESSES["broker"]})


def test_an_unknown_service_has_no_settings() -> None:
    with pytest.raises(KeyError):
        settings_of("console", {"console": ADDRESSES["broker"]})
