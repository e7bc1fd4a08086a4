"""The settings of a registry's client, with the names of Confluent's clients."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from core_broker.service.client_tls import ClientContext

PREFIX = "schema.registry."
"""Confluent's Java and .NET clients use this prefix for most keys, its Python client for none: both are accepted."""


class InvalidSettings(ValueError):
    """A setting is unknown or has an invalid value; the message has the key, the value and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryClientSettings:
    """The addresses of a registry, credentials, time-outs and cache sizes."""

    urls: tuple[str, ...] = ("http://localhost:8081",)
    """Tried in order; without user names and passwords, which `parse` moves to `user_info`."""
    user_info: str | None = field(default=None, repr=False)
    """`user:password` for Basic authentication."""
    bearer_token: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers of every request, such as the logical cluster for Confluent Cloud."""
    ca_location: str | None = None
    """PEM file or directory with the CAs to trust; by default those of the system."""
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    tls_context: ssl.SSLContext | None = field(default=None, repr=False)
    """Used instead of the files, by programs that have one."""
    proxy: str | None = field(default=None, repr=False)
    timeout_ms: int = 10_000
    """Time-out of one attempt."""
    max_retries: int = 3
    """How often all addresses are tried again after the first round."""
    retries_wait_ms: int = 200
    retries_max_wait_ms: int = 5_000
    cache_capacity: int = 1_000
    """Maximum number of entries in each cache."""
    latest_ttl_seconds: float = 5.0
    """How long the latest version of a subject is cached."""
    missing_ttl_seconds: float = 1.0
    """How long it is cached that an id does not exist, so that a topic full of garbage does not flood the registry."""

    @classmethod
    def parse(cls, properties: Mapping[str, object]) -> "RegistryClientSettings":
        """Parse Confluent's keys, with or without their prefix; raises InvalidSettings for unknown keys and values."""
        values: dict[str, Any] = {}
        headers: dict[str, str] = {}
        for key, value in properties.items():
            name = key.removeprefix(PREFIX)
            if name in _HEADERS:
                headers[_HEADERS[name]] = _text(key, value)
            elif name in _KEYS:
                attribute, read = _KEYS[name]
                values[attribute] = read(key, value)
            elif name not in _CHOICES or _text(key, value) not in _CHOICES[name]:
                raise _unknown(key, value)
        return cls(**_move_credentials(values), headers=headers)

    def tls(self) -> ssl.SSLContext:
        """The CAs to trust, and the client certificate; files that are renewed are read again."""
        if self.tls_context is not None:
            return self.tls_context
        try:
            return ClientContext.of_files(
                self.ca_location, self.certificate_location, self.key_location, self.key_password
            )
        except OSError as error:
            raise InvalidSettings(f"cannot read the certificates for the schema registry: {error}") from error


def is_setting(key: str) -> bool:
    """Whether a key, with or without its prefix, is one of the registry client's."""
    name = key.removeprefix(PREFIX)
    return name in _KEYS or name in _HEADERS or name in _CHOICES


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidSettings(f"{key} must be text, not {value!r}")
    return value.strip()


def _at_least(least: float, kind: type[int] | type[float]) -> Callable[[str, object], float]:
    def read(key: str, value: object) -> float:
        try:
            number = kind(str(value))
        except ValueError:
            number = kind(least - 1)
        if isinstance(value, bool) or not least <= number < float("inf"):
            raise InvalidSettings(f"{key} must be a number of at least {least}, not {value!r}")
        return number

    return read


def _urls(key: str, value: object) -> tuple[str, ...]:
    urls = tuple(url.strip().rstrip("/") for url in _text(key, value).split(",") if url.strip())
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSettings(
                f"{key} must be a list of http:// or https:// URLs, not {_without_credentials(url)!r}"
            )
    if not urls:
        raise InvalidSettings(f"{key} must have at least one URL")
    return urls


def _without_credentials(url: str) -> str:
    """A URL that may be printed: everything before the host is left out."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _user_info(key: str, value: object) -> str:
    text = _text(key, value)
    if ":" not in text:
        raise InvalidSettings(f"{key} must be user:password")
    return text


def _move_credentials(values: dict[str, Any]) -> dict[str, Any]:
    """Move `user:password@` from the first URL that has it to `user_info`, unless that is set."""
    clean = []
    for url in values.get("urls", ()):
        parts = urlsplit(url)
        if parts.username is not None:
            values.setdefault("user_info", f"{unquote(parts.username)}:{unquote(parts.password or '')}")
            parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        clean.append(urlunsplit(parts))
    return {**values, "urls": tuple(clean)} if clean else values


def _unknown(key: str, value: object) -> InvalidSettings:
    name = key.removeprefix(PREFIX)
    if name in _CHOICES:
        return InvalidSettings(f"{key} must be one of {', '.join(_CHOICES[name])}, not {value!r}")
    known = sorted([*_KEYS, *_HEADERS, *_CHOICES])
    return InvalidSettings(f"unknown setting {key} of the registry client; known settings are {', '.join(known)}")


_MILLISECONDS = _at_least(1, int)
_KEYS: dict[str, tuple[str, Callable[[str, object], object]]] = {
    "url": ("urls", _urls),
    "basic.auth.user.info": ("user_info", _user_info),
    "bearer.auth.token": ("bearer_token", _text),
    "ssl.ca.location": ("ca_location", _text),
    "ssl.certificate.location": ("certificate_location", _text),
    "ssl.key.location": ("key_location", _text),
    "ssl.key.password": ("key_password", _text),
    "proxy": ("proxy", _text),
    "request.timeout.ms": ("timeout_ms", _MILLISECONDS),
    "max.retries": ("max_retries", _at_least(0, int)),
    "retries.wait.ms": ("retries_wait_ms", _MILLISECONDS),
    "retries.max.wait.ms": ("retries_max_wait_ms", _MILLISECONDS),
    "cache.capacity": ("cache_capacity", _at_least(1, int)),
    "cache.latest.ttl.sec": ("latest_ttl_seconds", _at_least(0, float)),
}
_HEADERS = {
    "bearer.auth.logical.cluster": "target-sr-cluster",
    "bearer.auth.identity.pool.id": "Confluent-Identity-Pool-Id",
}
_CHOICES = {
    "basic.auth.credentials.source": ("URL", "USER_INFO"),
    "bearer.auth.credentials.source": ("STATIC_TOKEN",),
}
"""Keys that say where credentials come from: any credentials that are given are used, so only the value is checked."""
