"""A client of a registry from what a user says about it, logged in as at the cluster.

Keys of Confluent's clients (`schema.registry.…`, `basic.auth.…`, `bearer.auth.…`) win over those of a Kafka client in
the same file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from core_broker.client.oauth import ENDPOINT
from deploy.clients.connections import LOGIN_PREFIXES, is_login_property, login_of, read_properties
from deploy.clients.http_login import INSIST, HttpLogin, PlainHttp
from deploy.stack import REGISTRY
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import PREFIX, RegistryClientSettings, is_setting

DEFAULT_REGISTRY: Final = f"http://localhost:{REGISTRY.port}"
_TIMEOUT: Final = "request.timeout.ms"
_SOURCE: Final = "bearer.auth.credentials.source"
_INHERITED: Final = {
    "basic.auth.credentials.source": ("SASL_INHERIT",),
    _SOURCE: ("SASL_OAUTHBEARER_INHERIT", "OAUTHBEARER"),
}
"""Values of Confluent's keys that mean the login of the Kafka client, or tokens that we fetch ourselves."""
_TOKEN_KEYS: Final = {
    "bearer.auth.issuer.endpoint.url": ENDPOINT,
    "bearer.auth.client.id": "sasl.oauthbearer.client.id",
    "bearer.auth.client.secret": "sasl.oauthbearer.client.secret",
    "bearer.auth.scope": "sasl.oauthbearer.scope",
}
_TRUST: Final = ("ssl.ca.", "ssl.truststore.")
_SHOWN: Final = ("ssl.certificate.", "ssl.key.", "ssl.keystore.")


def registry_client(
    registry: str | None,
    user: str | None = None,
    properties: Iterable[str] | None = None,
    client_config: Path | None = None,
    *,
    timeout: float,
    usual: str | None = None,
    insists: bool = False,
) -> RegistryClient:
    """A client of a registry; `properties` (key=value) win over the file, and `usual` is where it is if neither says.

    Raises InvalidSettings, SettingsError and PlainHttp, and errors of the cluster's client if no token can be had.
    """
    file, typed = read_properties(None, client_config), read_properties(properties, None)
    own, of_kafka = _divide(file, typed)
    # A person waits at the terminal: one more attempt, not three.
    values: dict[str, object] = {_TIMEOUT: int(timeout * 1000), "max.retries": 1, **own}
    values["url"] = registry or own.get("url") or usual or DEFAULT_REGISTRY
    if user is not None:
        values["basic.auth.user.info"] = user
    settings = RegistryClientSettings.parse(values)
    login = login_of(of_kafka, insists=insists)
    if any(url.startswith("https:") for url in settings.urls):
        settings = replace(settings, tls_context=login.tls())
    return RegistryClient(_log_in(settings, login))


def _log_in(settings: RegistryClientSettings, login: HttpLogin) -> RegistryClientSettings:
    """The settings with the Kafka client's login, unless they have one of their own."""
    refused = next((url for url in settings.urls if not login.may_send_to(url)), None)
    if settings.user_info is not None or settings.bearer_token is not None:
        if refused is not None:
            raise PlainHttp(f"the credentials would go unencrypted to {refused}: use https, or add {INSIST}")
        return settings
    if refused is not None:
        return settings
    if (pair := login.password_login()) is not None:
        return replace(settings, user_info=":".join(pair))
    return replace(settings, bearer_token=login.token())


def _divide(file: Mapping[str, str], typed: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The registry client's own keys without their prefix, and those by which a Kafka client logs in."""
    given = {key: value for key, value in file.items() if key.startswith(PREFIX)}
    unprefixed = {key: value for key, value in file.items() if not key.startswith(PREFIX)}
    # Kafka's clients have this key, too, and mean themselves by it.
    given |= {key: value for key, value in unprefixed.items() if is_setting(key) and key != _TIMEOUT}
    given |= typed
    own = {key.removeprefix(PREFIX): value for key, value in given.items()}
    tls = {key: own.pop(key) for key in list(own) if key.startswith(LOGIN_PREFIXES)}
    for key, values in _INHERITED.items():
        if own.get(key) in values:
            tls |= _token_properties(own) if own.pop(key) == "OAUTHBEARER" else {}
    of_kafka = {key: value for key, value in unprefixed.items() if is_login_property(key)}
    for family in (_TRUST, _SHOWN):
        if any(key.startswith(family) for key in tls):
            of_kafka = {key: value for key, value in of_kafka.items() if not key.startswith(family)}
    return own, {**of_kafka, **tls}


def _token_properties(own: dict[str, str]) -> dict[str, str]:
    """Where the registry's own tokens come from, in the names of a Kafka client; they are taken out of `own`."""
    asked = {kafka: own.pop(key) for key, kafka in _TOKEN_KEYS.items() if key in own}
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **asked}
