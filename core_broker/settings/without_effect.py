"""Dynamic settings of Kafka that have no effect here: their type is checked, and they are stored and shown."""

import re
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
    SHORT,
    STRING,
    Check,
    Definition,
    Kind,
    at_least,
    one_of,
)

THREADS: Final = "one event loop serves all requests"
SECURITY: Final = "security is not supported yet: only PLAINTEXT listeners, without authorization"
TIERED: Final = "tiered storage is not supported"
READ_AT_START: Final = frozenset({"num.recovery.threads.per.data.dir"})
"""Dynamic in Kafka; here a change is stored and shown, but has no effect."""

_COUNT: Final = at_least(1)
_BUFFER: Final = (INT, 1_048_588, at_least(524_288))

_Shape = tuple[Kind[Any], Any] | tuple[Kind[Any], Any, Check]
"""Type, default and check."""

_SECURITY_KEYS: Final[Mapping[str, _Shape]] = {
    "principal.builder.class": (CLASS, None),
    "sasl.enabled.mechanisms": (LIST, ("GSSAPI",)),
    "sasl.jaas.config": (PASSWORD, None),
    "sasl.kerberos.kinit.cmd": (STRING, "/usr/bin/kinit"),
    "sasl.kerberos.min.time.before.relogin": (LONG, 60_000),
    "sasl.kerberos.principal.to.local.rules": (LIST, ("DEFAULT",)),
    "sasl.kerberos.service.name": (STRING, None),
    "sasl.kerberos.ticket.renew.jitter": (DOUBLE, 0.05),
    "sasl.kerberos.ticket.renew.window.factor": (DOUBLE, 0.8),
    "sasl.login.refresh.buffer.seconds": (SHORT, 300),
    "sasl.login.refresh.min.period.seconds": (SHORT, 60),
    "sasl.login.refresh.window.factor": (DOUBLE, 0.8),
    "sasl.login.refresh.window.jitter": (DOUBLE, 0.05),
    "sasl.mechanism.inter.broker.protocol": (STRING, "GSSAPI"),
    "ssl.cipher.suites": (LIST, ()),
    "ssl.client.auth": (STRING, "none", one_of("required", "requested", "none")),
    "ssl.enabled.protocols": (LIST, ("TLSv1.2", "TLSv1.3")),
    "ssl.endpoint.identification.algorithm": (STRING, "https"),
    "ssl.engine.factory.class": (CLASS, None),
    "ssl.keymanager.algorithm": (STRING, "SunX509"),
    "ssl.protocol": (STRING, "TLSv1.3"),
    "ssl.provider": (STRING, None),
    "ssl.secure.random.implementation": (STRING, None),
    "ssl.trustmanager.algorithm": (STRING, "PKIX"),
}
_LISTENER_KEYS: Final[Mapping[str, _Shape]] = {
    "ssl.key.password": (PASSWORD, None),
    "ssl.keystore.certificate.chain": (PASSWORD, None),
    "ssl.keystore.key": (PASSWORD, None),
    "ssl.keystore.location": (STRING, None),
    "ssl.keystore.password": (PASSWORD, None),
    "ssl.keystore.type": (STRING, "JKS"),
    "ssl.truststore.certificates": (PASSWORD, None),
    "ssl.truststore.location": (STRING, None),
    "ssl.truststore.password": (PASSWORD, None),
    "ssl.truststore.type": (STRING, "JKS"),
}
"""Settings that Kafka accepts only for one listener, under `listener.name.<name>.`."""
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


SECURITY_WITHOUT_EFFECT: Final[Mapping[str, Definition]] = dict(
    _definitions({**_SECURITY_KEYS, **_LISTENER_KEYS}, SECURITY)
)
"""Rejected at the start, because they would promise security. At run time a change is accepted: without an encrypted
or authenticated listener Kafka, too, only stores it."""
WITHOUT_EFFECT: Final[Mapping[str, Definition]] = {
    key: definition for why, keys in _OTHER_KEYS.items() for key, definition in _definitions(keys, why)
}
"""Accepted at the start and at run time."""

_OF_MECHANISMS: Final = dict(_definitions(_MECHANISM_KEYS, SECURITY))
_LISTENER_NAME: Final = re.compile(r"listener\.name\.[^.]+\.(?P<key>.+)")
_LIMITS: Final = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_PER_BROKER: Final = {*SECURITY_WITHOUT_EFFECT, "cordoned.log.dirs"}


def find_dynamic(key: str, with_effect: Mapping[str, Definition]) -> Definition | None:
    """The definition of a broker's key, given those that have an effect; keys of a listener have none."""
    found = with_effect.get(key) or WITHOUT_EFFECT.get(key) or SECURITY_WITHOUT_EFFECT.get(key)
    if found is not None:
        return replace(found, is_dynamic=True) if key in READ_AT_START else found
    match = _LISTENER_NAME.fullmatch(key)
    if match is None:
        return None
    base = match["key"]
    of_mechanism = (found for name, found in _OF_MECHANISMS.items() if base.endswith(f".{name}") or base == name)
    found = next(of_mechanism, None) or WITHOUT_EFFECT.get(base) or SECURITY_WITHOUT_EFFECT.get(base)
    if found is None and base in _LIMITS:
        found = replace(with_effect[base], without_effect="limits apply to the broker, not to one listener")
    return None if found is None else replace(found, key=key)


def needs_listener(key: str) -> bool:
    """Whether Kafka accepts a change of this key only for one listener."""
    return key in _LISTENER_KEYS


def is_per_broker(key: str) -> bool:
    """Whether Kafka accepts a change of this key only for one broker, not for all."""
    match = _LISTENER_NAME.fullmatch(key)
    return key in _PER_BROKER if match is None else match["key"] not in _LIMITS
