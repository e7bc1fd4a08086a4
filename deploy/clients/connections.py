"""Clients of a cluster and of a registry, from the few things that a user says about them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from core_broker.client.settings import ClientSettings
from core_broker.service.properties import from_assignments, read_file
from core_broker.service.settings import Problem, SettingsError
from deploy.stack import DEFAULT_BOOTSTRAP
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import PREFIX, RegistryClientSettings

_SERVERS: Final = "bootstrap.servers"
_SECRET: Final = ("password", "jaas", "secret", "keystore.key", "key.pem")


def client_settings(
    bootstrap: str, properties: Iterable[str] | None = None, client_config: Path | None = None, *, timeout: float
) -> ClientSettings:
    """The settings of a Kafka client, from properties of Kafka's own clients or of librdkafka; raises SettingsError.

    `properties` (key=value) win over the file, and an address that was given wins over that of the file.
    """
    given = _gather(properties, client_config)
    if bootstrap != DEFAULT_BOOTSTRAP:
        given = {_SERVERS: bootstrap, **{key: value for key, value in given.items() if key != _SERVERS}}
    try:
        translated = to_librdkafka(given.items())
    except PropertyRefused as refused:
        shown = "..." if any(word in refused.key for word in _SECRET) else given[refused.key]
        raise SettingsError([Problem(key=refused.key, value=shown, reason=refused.reason)]) from None
    # The tools report failures themselves; the library's own lines on stderr would only repeat them.
    values = {"log_level": "0", **translated}
    return ClientSettings(
        bootstrap_servers=values.pop(_SERVERS, bootstrap),
        client_id=values.pop("client.id", "caudal-cli"),
        timeout_ms=int(timeout * 1000),
        properties=values,
    )


def principal_of(settings: ClientSettings) -> str | None:
    """How brokers call this client, such as `User:alice`; None if they do not take that from its settings."""
    protocol = settings.properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return "User:ANONYMOUS"
    user = settings.properties.get("sasl.username")
    return f"User:{user}" if protocol.startswith("SASL") and user else None


def registry_client(
    registry: str,
    user: str | None = None,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
) -> RegistryClient:
    """A client of a registry; `properties` (key=value) win over the file. Raises `InvalidSettings`."""
    given = {key.removeprefix(PREFIX): value for key, value in _gather(properties, client_config).items()}
    # A person waits at the terminal: one more attempt, not three.
    values: dict[str, object] = {"url": registry, "request.timeout.ms": int(timeout * 1000), "max.retries": 1}
    if user is not None:
        values["basic.auth.user.info"] = user
    return RegistryClient(RegistryClientSettings.parse({**values, **given}))


def _gather(properties: Iterable[str] | None, client_config: Path | None) -> dict[str, str]:
    """Properties of the file and of the command line, with its option's name in what is wrong."""
    try:
        return {
            **(read_file(client_config) if client_config else {}),
            **from_assignments(properties or ()),
        }
    except SettingsError as error:
        names = {"--config": "--client-config", "--set": "--property"}
        problems = [
            Problem(key=names.get(one.key, one.key), value=one.value, reason=one.reason) for one in error.problems
        ]
        raise SettingsError(problems) from error
