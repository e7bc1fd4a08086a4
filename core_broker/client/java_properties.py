"""Properties of Java's Kafka clients in the names of librdkafka.

Configurations are written for Java's clients. What is called otherwise in librdkafka is renamed, what has no meaning
there is dropped, and what cannot work (Java key stores) is refused with what to do instead.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

_RENAMED: Final[Mapping[str, str]] = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "delivery.timeout.ms": "message.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_WITHOUT_MEANING: Final = re.compile(
    r"auto\.include\.jmx\.reporter|bootstrap\.controllers|buffer\.memory|confluent\..*|default\.api\.timeout\.ms"
    r"|exclude\.internal\.topics|interceptor\.classes|key\.(de)?serializer|max\.block\.ms|max\.poll\.records"
    r"|metadata\.max\.idle\.ms|metadata\.recovery\..*|metric\.reporters|metrics\..*|partitioner\..*"
    r"|sasl\.(client|login)\..*|sasl\.kerberos\.(kinit\.cmd|ticket\..*)|security\.providers|ssl\.enabled\.protocols"
    r"|ssl\.engine\.factory\.class|ssl\.keymanager\.algorithm|ssl\.protocol|ssl\.provider"
    r"|ssl\.secure\.random\.implementation|ssl\.trustmanager\.algorithm|telemetry\..*"
    r"|throw\.on\.fetch\.stable\.offset\.unsupported|value\.(de)?serializer"
)
_STORES: Final = ("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type")
_TRUST: Final = ("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type")
_NO_JKS: Final = "Java key stores cannot be read: use PEM files, with ssl.truststore.type=PEM or ssl.keystore.type=PEM"
_LOGIN: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s;]+))')
_ASSIGNORS: Final[Mapping[str, str]] = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "cooperative-sticky",
}


class PropertyRefused(ValueError):
    """One property that cannot work, with what to do instead."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"Invalid value for configuration {key}: {reason}")
        self.key = key
        self.reason = reason


def translated(properties: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Properties in the names and values of librdkafka; PropertyRefused when one cannot work."""
    given = dict(properties)
    result: dict[str, str] = {}
    for key, value in given.items():
        if key in _RULES:
            result.update(_RULES[key](_Given(key, value, given)))
        elif not _WITHOUT_MEANING.fullmatch(key):
            result[_RENAMED.get(key, key)] = value
    return result


class _Given(NamedTuple):
    key: str
    value: str
    beside: Mapping[str, str]


def _login(given: _Given) -> dict[str, str]:
    """`...LoginModule required username="u" password="p";` as a name and a password."""
    if "OAuthBearer" in given.value or "Krb5" in given.value:
        raise PropertyRefused(
            given.key, "only PLAIN and SCRAM logins are read; set librdkafka's sasl.* properties instead"
        )
    found = {match[1]: match[2] or match[3] or match[4] or "" for match in _LOGIN.finditer(given.value)}
    if "username" not in found or "password" not in found:
        raise PropertyRefused(given.key, "must name username and password, as in ...LoginModule required username=...")
    return {f"sasl.{part}": re.sub(r"\\(.)", r"\1", found[part]) for part in ("username", "password")}


def _key_store(given: _Given) -> dict[str, str]:
    kind = given.beside.get("ssl.keystore.type", "JKS").upper()
    if kind == "JKS":
        raise PropertyRefused(given.key, _NO_JKS)
    if given.key == "ssl.keystore.type":
        return {}
    if kind == "PEM":
        location = given.value if given.key == "ssl.keystore.location" else None
        return {"ssl.certificate.location": location, "ssl.key.location": location} if location else {}
    return {given.key: given.value}


def _trust_store(given: _Given) -> dict[str, str]:
    if given.beside.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise PropertyRefused(given.key, _NO_JKS)
    return {"ssl.ca.location": given.value} if given.key == "ssl.truststore.location" else {}


def _assignors(given: _Given) -> dict[str, str]:
    names = [name.strip().rpartition(".")[2] for name in given.value.split(",") if name.strip()]
    known = dict.fromkeys(_ASSIGNORS.get(name, name) for name in names)
    if "cooperative-sticky" in known and len(known) > 1:
        # librdkafka does not mix the two ways of rebalancing; Java lists both for an upgrade between them.
        known.pop("cooperative-sticky")
    return {given.key: ",".join(known)} if known else {}


def _host_check(given: _Given) -> dict[str, str]:
    return {given.key: given.value.strip() or "none"}


def _offset_reset(given: _Given) -> dict[str, str]:
    return {given.key: {"none": "error"}.get(given.value.strip().lower(), given.value)}


_RULES: Final[Mapping[str, Callable[[_Given], dict[str, str]]]] = {
    "auto.offset.reset": _offset_reset,
    "partition.assignment.strategy": _assignors,
    "sasl.jaas.config": _login,
    "ssl.endpoint.identification.algorithm": _host_check,
    **dict.fromkeys(_STORES, _key_store),
    **dict.fromkeys(_TRUST, _trust_store),
}
