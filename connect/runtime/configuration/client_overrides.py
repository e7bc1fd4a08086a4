"""Properties of Kafka clients: the worker's, and those that a connector overrides, with librdkafka's names.

`core_broker.client.java_properties` translates Java's names.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from connect.api.config import Problem
from connect.api.errors import ConfigError
from connect.settings import ConnectSettings
from core_broker.client import java_properties
from core_broker.service.settings import Properties

Family = Literal["producer", "consumer", "admin"]
FAMILIES: Final[tuple[Family, ...]] = ("producer", "consumer", "admin")

MAX_POLL_RECORDS: Final = "max.poll.records"
"""Used by the sink's task itself, not by librdkafka: `max_poll_records`."""
_MAX_POLL_RECORDS_DEFAULT: Final = 500

_PRINCIPAL: Final = frozenset(
    {"sasl.jaas.config", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "security.protocol"}
)


def producer_properties(settings: ConnectSettings, config: Mapping[str, str]) -> dict[str, str]:
    """For the producers of a source or of dead letters."""
    return _properties(settings.producer_properties, "producer", config)


def consumer_properties(settings: ConnectSettings, config: Mapping[str, str]) -> dict[str, str]:
    """For the consumer of a sink."""
    return _properties(settings.consumer_properties, "consumer", config)


def admin_properties(settings: ConnectSettings, config: Mapping[str, str]) -> dict[str, str]:
    """For creating topics."""
    return _properties(settings.admin_properties, "admin", config)


def consumer_group(settings: ConnectSettings, config: Mapping[str, str], *, connector: str) -> str:
    """The consumer group of a sink."""
    return consumer_properties(settings, config).get("group.id") or f"connect-{connector}"


def max_poll_records(settings: ConnectSettings, config: Mapping[str, str]) -> int:
    """The most records to put at once (`consumer.override.max.poll.records`); ConfigError when it is invalid."""
    key = f"consumer.override.{MAX_POLL_RECORDS}"
    text = config.get(key, dict(settings.consumer_properties).get(MAX_POLL_RECORDS, str(_MAX_POLL_RECORDS_DEFAULT)))
    if not text.strip().isascii() or not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(f"Invalid value {text} for configuration {key}: must be at least 1")
    return min(int(text), 2**31 - 1)


def overrides_of(family: Family, config: Mapping[str, str]) -> dict[str, str]:
    """The properties that a connector sets for one kind of client, without the prefix and with the names given."""
    prefix = f"{family}.override."
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def problems(family: Family, settings: ConnectSettings, config: Mapping[str, str]) -> Iterable[Problem]:
    """Overrides for one kind of client that the worker's policy does not allow, or that are invalid."""
    policy = settings.connector_client_config_override_policy
    own = overrides_of(family, config)
    for key in own:
        if not _is_allowed(key, settings):
            message = f"The '{policy}' policy does not allow '{key}' to be overridden in the connector configuration."
            yield Problem(f"{family}.override.{key}", message)
    try:
        to_librdkafka(own.items())
        if family == "consumer":
            max_poll_records(settings, config)
    except _KeyRefused as refused:
        yield Problem(f"{family}.override.{refused.key}", str(refused))
    except ConfigError as error:
        yield Problem(f"consumer.override.{MAX_POLL_RECORDS}", str(error))


def to_librdkafka(properties: Properties | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Properties of Java's clients with librdkafka's names and values; ConfigError when that has no counterpart."""
    try:
        return java_properties.to_librdkafka(properties)
    except java_properties.PropertyRefused as refused:
        raise _KeyRefused(refused.key, refused.reason) from None


class _KeyRefused(ConfigError):
    """A key that librdkafka does not support; the message says what to do instead."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"Invalid value for configuration {key}: {reason}")
        self.key = key


def _properties(of_worker: Properties, family: Family, config: Mapping[str, str]) -> dict[str, str]:
    return to_librdkafka(of_worker) | to_librdkafka(overrides_of(family, config).items())


def _is_allowed(key: str, settings: ConnectSettings) -> bool:
    match settings.connector_client_config_override_policy:
        case "None":
            return False
        case "Principal":
            return key in _PRINCIPAL
        case "Allowlist":
            return key in settings.connector_client_config_override_allowlist
        case _:
            return True
