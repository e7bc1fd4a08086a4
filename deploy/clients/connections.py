"""Clients of a cluster and of a registry, from the few things that a user says about them."""

from collections.abc import Iterable
from pathlib import Path

from core_broker.client.settings import ClientSettings
from core_broker.service.properties import gather
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import PREFIX, RegistryClientSettings


def client_settings(
    bootstrap: str, properties: Iterable[str] | None = None, client_config: Path | None = None, *, timeout: float
) -> ClientSettings:
    """The settings of a Kafka client; `properties` (key=value) win over the file."""
    # The tools report failures themselves; the library's own lines on stderr would only repeat them.
    values = {"log_level": "0", **gather(file=client_config, assignments=list(properties or ()))}
    bootstrap = values.pop("bootstrap.servers", bootstrap)
    return ClientSettings(
        bootstrap_servers=bootstrap, client_id="caudal-cli", timeout_ms=int(timeout * 1000), properties=values
    )


def registry_client(
    registry: str,
    user: str | None = None,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
) -> RegistryClient:
    """A client of a registry; `properties` (key=value) win over the file. Raises `InvalidSettings`."""
    given = {
        key.removeprefix(PREFIX): value
        for key, value in gather(file=client_config, assignments=list(properties or ())).items()
    }
    # A person waits at the terminal: one more attempt, not three.
    values: dict[str, object] = {"url": registry, "request.timeout.ms": int(timeout * 1000), "max.retries": 1}
    if user is not None:
        values["basic.auth.user.info"] = user
    return RegistryClient(RegistryClientSettings.parse({**values, **given}))
