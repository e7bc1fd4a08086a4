"""Settings of a cluster's client, and logins at HTTP services, from the few things that a user says about them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from core_broker.client.settings import ClientSettings
from core_broker.service.properties import from_assignments, read_file
from core_broker.service.settings import Problem, SettingsError
from deploy.clients.connect import ConnectClient
from deploy.clients.http_login import HttpLogin
from deploy.clients.sql import SqlClient
from deploy.stack import DEFAULT_BOOTSTRAP

_SERVERS: Final = "bootstrap.servers"
LOGIN_PREFIXES: Final = ("sasl.", "ssl.", "security.", "https.")
_CHECKS: Final = ("ssl.endpoint.identification.algorithm",)
_SECRET: Final = ("password", "jaas", "secret", "keystore.key", "key.pem")


def client_settings(
    bootstrap: str | None,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
    usual: str | None = None,
) -> ClientSettings:
    """The settings of a Kafka client, from properties of Kafka's own clients or of librdkafka; raises SettingsError.

    `properties` (key=value) win over the file, and an address that was given wins over that of the file. `usual` is
    where the cluster is if nothing says it.
    """
    given = read_properties(properties, client_config)
    if bootstrap is not None:
        given = {_SERVERS: bootstrap, **{key: value for key, value in given.items() if key != _SERVERS}}
    # The tools report failures themselves; the library's own lines on stderr would only repeat them.
    values = {"log_level": "0", **_translate(given)}
    return ClientSettings(
        bootstrap_servers=values.pop(_SERVERS, usual or DEFAULT_BOOTSTRAP),
        client_id=values.pop("client.id", "caudal-cli"),
        timeout_ms=int(timeout * 1000),
        properties=values,
    )


def connect_client(
    connect: str,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
    insists: bool = False,
) -> ConnectClient:
    """A client of a Connect worker, logged in as at the cluster; raises SettingsError and ValueError."""
    login = _login_of_client(properties, client_config, insists=insists)
    return ConnectClient(connect, timeout_seconds=timeout, login=login)


def sql_client(
    streams: str,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
    insists: bool = False,
) -> SqlClient:
    """A client of the service of SQL, logged in as at the cluster; raises SettingsError and ValueError."""
    login = _login_of_client(properties, client_config, insists=insists)
    return SqlClient(streams, timeout_seconds=timeout, login=login)


def _login_of_client(properties: Iterable[str] | None, client_config: Path | None, *, insists: bool) -> HttpLogin:
    """The login in the properties of a Kafka client: of the file, and of the command line."""
    file, typed = read_properties(None, client_config), read_properties(properties, None)
    given = {key: value for key, value in {**file, **typed}.items() if is_login_property(key) or key in typed}
    return login_of(given, insists=insists)


def login_of(given: Mapping[str, str], *, insists: bool = False) -> HttpLogin:
    """A login at HTTP services by the properties of a Kafka client; raises SettingsError."""
    return HttpLogin(properties=_translate(given), insists=insists)


def is_login_property(key: str) -> bool:
    """Whether a property of a Kafka client says who it is or whom it trusts, for HTTP services, too.

    Not whether certificates are checked: where a cluster's are not, those of other services still are.
    """
    return key.startswith(LOGIN_PREFIXES) and key not in _CHECKS


def principal_of(settings: ClientSettings) -> str | None:
    """How brokers call this client, such as `User:alice`; None if they do not take that from its settings."""
    protocol = settings.properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return "User:ANONYMOUS"
    user = settings.properties.get("sasl.username")
    return f"User:{user}" if protocol.startswith("SASL") and user else None


def _translate(given: Mapping[str, str]) -> dict[str, str]:
    try:
        return to_librdkafka(given.items())
    except PropertyRefused as refused:
        shown = "..." if any(word in refused.key for word in _SECRET) else given[refused.key]
        raise SettingsError([Problem(key=refused.key, value=shown, reason=refused.reason)]) from None


def read_properties(properties: Iterable[str] | None, client_config: Path | None) -> dict[str, str]:
    """Properties of the file and of the command line; raises SettingsError, with the names of the tools' options."""
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
