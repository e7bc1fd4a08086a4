"""The files and addresses that the operator allows connectors to use (`connector.allowed.paths`, `…addresses`).

Configurations are checked before anything starts. A name may stand for another machine later, and an HTTP server may
name one: so the address of each connection that Python code opens in a connector's threads is checked as well, by an
audit hook of the interpreter. Clients in C (librdkafka, libpq) are only checked by their configuration.
"""

import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from connect.api import places
from connect.api.config import Problem
from connect.api.connector import Connector
from connect.api.errors import ConfigError
from connect.api.places import Place
from connect.runtime.configuration.client_overrides import FAMILIES, overrides_of
from connect.runtime.configuration.plugins import Family, Plugins
from connect.settings import ConnectSettings

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_METADATA: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32")
)
"""Link-local addresses, and those where clouds give a machine its credentials: refused unless they are listed."""
_NEVER: Final = ("plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers")
"""Client properties that make a process run other code."""
_KNOWN_SECONDS: Final = 30.0
_ALL: Final = "*"


class _Rule(NamedTuple):
    """One entry of the list: a network or a pattern of names, and a port."""

    network: _Network | None
    name: str
    port: int | None

    def takes(self, address: _Address, port: int | None) -> bool:
        """Whether it lists an address."""
        is_inside = self.network is not None and address.version == self.network.version and address in self.network
        return is_inside and self.port in (None, port)

    def names(self, host: str, port: int | None) -> bool:
        """Whether it lists a name."""
        return bool(self.name) and fnmatchcase(host.lower(), self.name) and self.port in (None, port)


class Limits:
    """What connectors of one worker may use. Thread-safe."""

    def __init__(self, settings: ConnectSettings) -> None:
        """Without a list everything is allowed if callers need no login, and nothing otherwise."""
        default = () if settings.methods else (_ALL,)
        paths = settings.connector_allowed_paths
        addresses = settings.connector_allowed_addresses
        self._paths = None if _ALL in (listed := default if paths is None else paths) else _folders(listed)
        listed = default if addresses is None else addresses
        self._rules = tuple(_rule(text) for text in (*listed, *_of_worker(settings)) if text != _ALL)
        self._allows_every_address = _ALL in listed
        self._own_files = _own_files(settings)
        self._resolved: dict[str, tuple[float, frozenset[_Address]]] = {}

    def problems(self, found: Iterable[Place]) -> Iterable[Problem]:
        """The places that are not allowed."""
        for place in found:
            is_path = place.reach is places.Reach.PATH
            if is_path and not (self.allows_path(place.value) or self._is_own_file(place)):
                yield Problem(place.key, _refusal(place.key, place.value, "connector.allowed.paths"))
            if not is_path and not self._allows(place.value):
                yield Problem(place.key, _refusal(place.key, place.value, "connector.allowed.addresses"))

    def allows_path(self, text: str) -> bool:
        """Whether a file or a folder may be used, as it is now."""
        if self._paths is None:
            return True
        path = Path(text).resolve()
        return "\0" not in text and any(path == folder or folder in path.parents for folder in self._paths)

    def _is_own_file(self, place: Place) -> bool:
        """Whether it is a file for TLS that the worker uses, too: connectors may use it for that alone."""
        return place.key.endswith(".location") and Path(place.value).resolve() in self._own_files

    def _allows(self, server: str) -> bool:
        """Whether `host` or `host:port` may be used, as far as can be told now."""
        host, port = _split(server)
        address = _address(host)
        if address is not None:
            return self.allows_address(address, port)
        if self._allows_every_address or any(rule.names(host, port) for rule in self._rules):
            return True
        networks = [rule for rule in self._rules if rule.network is not None]
        found = self.resolve(host) if networks else frozenset()
        return bool(found) and all(any(rule.takes(address, port) for rule in networks) for address in found)

    def allows_address(self, address: _Address, port: int | None, names: Iterable[str] = ()) -> bool:
        """Whether a connection may be made; `names` are those that a thread has asked for."""
        if any(rule.takes(address, port) for rule in self._rules):
            return True
        if any(address.version == network.version and address in network for network in _METADATA):
            return False
        if self._allows_every_address:
            return True
        allowed = {name for name in names if any(rule.names(name, port) for rule in self._rules)}
        return any(address in self.resolve(name) for name in allowed)

    def resolve(self, name: str) -> frozenset[_Address]:
        """The addresses of a name, as of a short while ago."""
        known = self._resolved.get(name)
        now = time.monotonic()
        if known is None or known[0] < now:
            try:
                with _unwatched():
                    answers = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP)
            except (OSError, UnicodeError):
                answers = []
            found = frozenset(found for answer in answers if (found := _address(str(answer[4][0]))) is not None)
            if len(self._resolved) >= 1000:
                self._resolved.clear()
            known = self._resolved[name] = (now + _KNOWN_SECONDS, found)
        return known[1]

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Check each connection that this thread, or one that it starts, opens during the block."""
        _install()
        thread = threading.current_thread()
        former = _watched.get(thread)
        _watched[thread] = _Watch(self)
        try:
            yield
        finally:
            if former is None:
                _watched.pop(thread, None)
            else:
                _watched[thread] = former


@lru_cache(maxsize=16)
def limits_of(settings: ConnectSettings) -> Limits:
    """The limits of a worker; ConfigError when they cannot be read."""
    return Limits(settings)


def reach_problems(
    config: Mapping[str, str], connector: type[Connector], *, plugins: Plugins, settings: ConnectSettings
) -> Iterator[Problem]:
    """The files and addresses in a resolved configuration that connectors of this worker may not use."""
    for key in config:
        if key.endswith(_NEVER):
            yield Problem(key, f"Invalid configuration {key}: it would make the worker run other code")
    yield from limits_of(settings).problems(_places(config, connector, plugins))


def require_reach(
    config: Mapping[str, str], connector: type[Connector], *, plugins: Plugins, settings: ConnectSettings
) -> None:
    """Raise ConfigError if there is one."""
    for problem in reach_problems(config, connector, plugins=plugins, settings=settings):
        raise ConfigError(problem.message)


def _places(config: Mapping[str, str], connector: type[Connector], plugins: Plugins) -> Iterator[Place]:
    """Those of the connector, of its converters and of its Kafka clients."""
    yield from _of_plugin(connector, config)
    for key in ("key.converter", "value.converter", "header.converter"):
        family: Family[Any] = plugins.header_converters if key == "header.converter" else plugins.converters
        values = {name.removeprefix(f"{key}."): text for name, text in config.items() if name.startswith(f"{key}.")}
        with suppress(ConfigError):  # the class is unknown
            if config.get(key):
                found = _of_plugin(family.find(config[key].strip()), values)
                yield from (place._replace(key=f"{key}.{place.key}") for place in found)
    for role in FAMILIES:
        yield from places.client_places(overrides_of(role, config).items(), prefix=f"{role}.override.")


def _of_plugin(plugin: type[Any], values: Mapping[str, str]) -> Iterable[Place]:
    """Those in the options of a plugin; none while they are invalid, since it is not used then."""
    found, problems = plugin.config_class.read(values)
    try:
        return () if problems else tuple(found.places())
    except ConfigError:
        return ()


class _Watch:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.names: set[str] = set()


_watched: "WeakKeyDictionary[threading.Thread, _Watch]" = WeakKeyDictionary()
_pausing = threading.local()


@contextmanager
def _unwatched() -> Iterator[None]:
    _pausing.is_on = True
    try:
        yield
    finally:
        _pausing.is_on = False


@cache
def _install() -> None:
    sys.addaudithook(_audit)
    start = threading.Thread.start

    def start_watched(self: threading.Thread) -> None:
        watch = _watched.get(threading.current_thread())
        if watch is not None:
            _watched[self] = watch
        start(self)

    # Threads do not know who has started them, and audit events of that exist from Python 3.12 on.
    threading.Thread.start = start_watched  # type: ignore[method-assign]  # see above


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    # Called for very many events: most must end here.
    if not event.startswith("socket.") or getattr(_pausing, "is_on", False):
        return
    watch = _watched.get(threading.current_thread())
    if watch is None:
        return
    if event == "socket.getaddrinfo":
        host = arguments[0]
        watch.names.add((host.decode("latin-1") if isinstance(host, bytes) else str(host)).lower())
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host, port = arguments[1][:2]
        address = _address(str(host))
        found = watch.limits.resolve(str(host)) if address is None else (address,)
        names = (*watch.names, str(host).lower())
        if not found or not all(watch.limits.allows_address(one, int(port), names) for one in found):
            raise PermissionError(
                f"this worker may not connect to {host}:{port}: its setting connector.allowed.addresses must list it"
            )


def _refusal(key: str, value: str, setting: str) -> str:
    return (
        f"Invalid value {value} for configuration {key}: connectors of this worker may not use it; "
        f"its operator can list it in the setting {setting}"
    )


def _folders(listed: Iterable[str]) -> tuple[Path, ...]:
    for text in listed:
        if not Path(text).is_absolute():
            raise ConfigError(f"Invalid value {text} for connector.allowed.paths: must be absolute paths")
    return tuple(Path(text).resolve() for text in listed)


def _rule(text: str) -> _Rule:
    try:
        return _Rule(ipaddress.ip_network(text.strip("[]"), strict=False), "", None)
    except ValueError:
        pass
    host, port = _split(text)
    address = _address(host)
    if address is not None:
        return _Rule(ipaddress.ip_network(address), "", port)
    if not host or "/" in host or any(character.isspace() for character in host):
        reason = "must be names, addresses or networks, each with a port if need be"
        raise ConfigError(f"Invalid value {text} for connector.allowed.addresses: {reason}")
    return _Rule(None, host.lower(), port)


def _of_worker(settings: ConnectSettings) -> Iterator[str]:
    """The addresses of the worker's own converters, which its operator has set."""
    given = (
        *settings.key_converter_properties,
        *settings.value_converter_properties,
        *settings.header_converter_properties,
    )
    for place in places.guessed(dict(given)):
        if place.reach is places.Reach.ADDRESS:
            yield place.value


def _own_files(settings: ConnectSettings) -> frozenset[Path]:
    """Certificates and keys in the worker's own settings."""
    own = [settings.ssl_ca_location, settings.ssl_certificate_location, settings.ssl_key_location]
    for given in (settings.client_properties, settings.key_converter_properties, settings.value_converter_properties):
        own += [text for key, text in given if key.endswith(".location")]
    return frozenset(Path(text).resolve() for text in own if text)


def _split(server: str) -> tuple[str, int | None]:
    host, colon, port = server.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port)
    return server.strip("[]"), None


def _address(host: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return found if mapped is None else mapped
