"""Dynamic settings of Kafka that have no effect here: their type is checked, and they are stored and shown."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from core_broker.service.settings import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    PASSWORD,
    STRING,
    Check,
    Definition,
    Kind,
    at_least,
)
from core_broker.settings.listener_overrides import base_key, is_of_listener
from core_broker.settings.tls import STORE_KEYS

THREADS: Final = "one event loop serves all requests"
SECURITY: Final = "neither Kerberos nor classes of Java are supported"
TIERED: Final = "tiered storage is not supported"
_TLS_OF_BROKER: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)
"""TLS settings without the prefix of a listener that Kafka lets change for one broker, for listeners to come."""
_SASL_OF_BROKER: Final = frozenset(
    {
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.mechanism.inter.broker.protocol",
    }
)
"""The same of SASL."""
READ_AT_START: Final = frozenset({"num.recovery.threads.per.data.dir", *_TLS_OF_BROKER, *_SASL_OF_BROKER})
"""Dynamic in Kafka; here a change is stored and shown, but has no effect."""

_COUNT: Final = at_least(1)
_BUFFER: Final = (INT, 1_048_588, at_least(524_288))

_Shape = tuple[Kind[Any], Any] | tuple[Kind[Any], Any, Check]
"""Type, default and check."""

_SECURITY_KEYS: Final[Mapping[str, _Shape]] = {
    "principal.builder.class": (CLASS, None),
    "sasl.kerberos.kinit.cmd": (STRING, "/usr/bin/kinit"),
    "sasl.kerberos.min.time.before.relogin": (LONG, 60_000),
    "sasl.kerberos.principal.to.local.rules": (LIST, ("DEFAULT",)),
    "sasl.kerberos.service.name": (STRING, None),
    "sasl.kerberos.ticket.renew.jitter": (DOUBLE, 0.05),
    "sasl.kerberos.ticket.renew.window.factor": (DOUBLE, 0.8),
}
_MECHANISM_KEYS: Final[Mapping[str, _Shape]] = {
    "sasl.jaas.config": (PASSWORD, None),
    "sasl.login.callback.handler.class": (CLASS, None),
    "sasl.login.class": (CLASS, None),
    "sasl.server.callback.handler.class": (CLASS, None),
    "connections.max.reauth.ms": (LONG, 0),
}
"""Settings that Kafka accepts for one mechanism of a listener, under `listener.name.<name>.<mechanism>.`."""

_OTHER_KEYS: Final[Mapping[str, Mapping[str, _Shape]]] = {
    THREADS: {
        "background.threads": (INT, 10, _COUNT),
        "num.io.threads": (INT, 8, _COUNT),
        "num.network.threads": (INT, 3, _COUNT),
    },
    TIERED: {
        "follower.fetch.last.tiered.offset.enable": (BOOLEAN, False),
        "log.local.retention.bytes": (LONG, -2, at_least(-2)),
        "log.local.retention.ms": (LONG, -2, at_least(-2)),
        "remote.fetch.max.wait.ms": (INT, 500, _COUNT),
        "remote.list.offsets.request.timeout.ms": (LONG, 30_000, _COUNT),
        "remote.log.index.file.cache.total.size.bytes": (LONG, 1 << 30, _COUNT),
        "remote.log.manager.copier.thread.pool.size": (INT, 10, _COUNT),
        "remote.log.manager.copy.max.bytes.per.second": (LONG, LONG_MAX, _COUNT),
        "remote.log.manager.expiration.thread.pool.size": (INT, 10, _COUNT),
        "remote.log.manager.fetch.max.bytes.per.second": (LONG, LONG_MAX, _COUNT),
        "remote.log.manager.follower.thread.pool.size": (INT, 2, _COUNT),
        "remote.log.reader.threads": (INT, 10, _COUNT),
    },
    "a coordinator keeps no buffers": {"group.coordinator.cached.buffer.max.bytes": _BUFFER},
    "share groups are not supported": {
        "group.share.assignment.interval.ms": (INT, 1000, at_least(0)),
        "share.coordinator.cached.buffer.max.bytes": _BUFFER,
    },
    "streams groups are not supported": {"group.streams.assignment.interval.ms": (INT, 1000, at_least(0))},
    "compaction reads mapped segments": {"log.cleaner.io.buffer.size": (INT, 524_288, at_least(0))},
    "compaction keeps its keys in a dictionary": {"log.cleaner.io.buffer.load.factor": (DOUBLE, 0.9)},
    "metrics are served at metrics.listener": {"metric.reporters": (LIST, ())},
    "values are used literally, without providers": {"config.providers": (LIST, ())},
    "new partitions are placed in every directory of log.dirs": {"cordoned.log.dirs": (LIST, ())},
}


def _definitions(keys: Mapping[str, _Shape], why: str) -> Iterator[tuple[str, Definition]]:
    for key, (kind, default, *check) in keys.items():
        yield (
            key,
            Definition(
                key=key,
                kind=kind,
                default=default,
                check=check[0] if check else None,
                is_dynamic=True,
                is_sensitive=kind is PASSWORD,
                without_effect=why,
            ),
        )


SECURITY_WITHOUT_EFFECT: Final[Mapping[str, Definition]] = dict(_definitions(_SECURITY_KEYS, SECURITY))
"""Rejected at the start, because they would promise security. At run time a change is accepted: without an encrypted
or authenticated listener Kafka, too, only stores it."""
WITHOUT_EFFECT: Final[Mapping[str, Definition]] = {
    key: definition for why, keys in _OTHER_KEYS.items() for key, definition in _definitions(keys, why)
}
"""Accepted at the start and at run time."""

_OF_MECHANISMS: Final = dict(_definitions(_MECHANISM_KEYS, "how clients log in is read when the broker starts"))
_OF_ANY_BROKER: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
_PER_BROKER: Final = {*SECURITY_WITHOUT_EFFECT, *_TLS_OF_BROKER, *_SASL_OF_BROKER, "cordoned.log.dirs"}


def find_dynamic(key: str, with_effect: Mapping[str, Definition]) -> Definition | None:
    """The definition of a broker's key, given those that have an effect at the start."""
    base = base_key(key)
    if base is not None:
        return _find_of_listener(key, base, with_effect)
    found = with_effect.get(key) or WITHOUT_EFFECT.get(key) or SECURITY_WITHOUT_EFFECT.get(key)
    if found is None:
        return None
    return replace(found, is_dynamic=True) if key in READ_AT_START or key in STORE_KEYS else found


def _find_of_listener(key: str, base: str, with_effect: Mapping[str, Definition]) -> Definition | None:
    """The definition of a key with the prefix of a listener."""
    of_mechanism = (found for name, found in _OF_MECHANISMS.items() if base.endswith(f".{name}") or base == name)
    found = next(of_mechanism, None) or WITHOUT_EFFECT.get(base) or SECURITY_WITHOUT_EFFECT.get(base)
    if found is None and is_of_listener(base):
        found = with_effect.get(base)
    if found is None:
        return None
    return replace(found, key=key, is_dynamic=found.is_dynamic or base in STORE_KEYS)


def needs_listener(key: str) -> bool:
    """Whether Kafka accepts a change of this key only for one listener."""
    return key in STORE_KEYS


def is_per_broker(key: str) -> bool:
    """Whether Kafka accepts a change of this key only for one broker, not for all."""
    base = base_key(key)
    return key in _PER_BROKER if base is None else base not in _OF_ANY_BROKER
