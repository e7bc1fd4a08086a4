import pytest

from core_broker.service.settings import SettingsError
from rest_proxy.settings import ProxySettings


def test_properties_of_librdkafka_reach_the_clients_that_they_are_for() -> None:
    settings = ProxySettings.parse(
        {
            "bootstrap.servers": "a:1, b:2",
            "client.security.protocol": "SSL",
            "producer.compression.type": "zstd",
            "consumer.instance.timeout.ms": "5",
        }
    )
    producer = settings.kafka(settings.producer_properties)
    assert producer.bootstrap_servers == settings.address == "a:1,b:2"
    assert {("security.protocol", "SSL"), ("compression.type", "zstd")} <= set(producer.properties.items())
    assert "compression.type" not in settings.kafka().properties
    assert (settings.consumer_instance_timeout_ms, settings.consumer_properties) == (5, ())


def test_properties_of_the_registry_are_those_of_its_client() -> None:
    settings = ProxySettings.parse({"schema.registry.url": "http://r:1/", "schema.registry.max.retries": "0"})
    assert (settings.registry().urls, settings.registry().max_retries) == (("http://r:1",), 0)
    with pytest.raises(SettingsError, match="schema.registry.no.such.thing"):
        ProxySettings.parse({"schema.registry.no.such.thing": "1"})


def test_a_wrong_password_of_the_registry_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        ProxySettings.parse({"schema.registry.basic.auth.user.info": "secret"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["rate.limit.enable", "api.endpoints.allowlist", "ssl.keystore.location"])
def test_what_confluents_proxy_promises_and_this_one_does_not_is_refused(key: str) -> None:
    with pytest.raises(SettingsError, match=key):
        ProxySettings.parse({key: "true"})
