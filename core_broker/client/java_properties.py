"""Translates properties of the Java Kafka clients to librdkafka's.

Users write configurations for the Java clients. Properties with another name in librdkafka are renamed, those without
a meaning there are dropped, and those that cannot work (JKS stores, delegation tokens) are refused with advice.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from core_broker.client.key_stores import StoreKind, UnreadableStore, kind_of, read_certificates

_RENAMED: Final[Mapping[str, str]] = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "delivery.timeout.ms": "message.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_WITHOUT_MEANING: Final = re.compile(
    r"auto\.include\.jmx\.reporter|bootstrap\.controllers|buffer\.memory|confluent\..*|default\.api\.timeout\.ms"
    r"|exclude\.internal\.topics|interceptor\.classes|key\.(de)?serializer|max\.block\.ms|max\.poll\.records"
    r"|metadata\.max\.idle\.ms|metadata\.recovery\..*|metric\.reporters|metrics\..*|partitioner\..*"
    r"|sasl\.(client|login)\.(?!callback\.handler\.class).*|sasl\.kerberos\.(kinit\.cmd|ticket\..*)"
    r"|security\.providers|ssl\.enabled\.protocols|ssl\.engine\.factory\.class|ssl\.keymanager\.algorithm|ssl\.protocol|ssl\.provider"
    r"|ssl\.secure\.random\.implementation|ssl\.trustmanager\.algorithm|telemetry\..*"
    r"|throw\.on\.fetch\.stable\.offset\.unsupported|value\.(de)?serializer"
)
_KEY_FILE: Final = "ssl.keystore.location"
_STORES: Final = (_KEY_FILE, "ssl.keystore.password", "ssl.keystore.type")
_TRUST: Final = ("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type")
_NO_JKS: Final = (
    'Java key stores cannot be read: convert it with "keytool -importkeystore -srckeystore {location}'
    ' -destkeystore {location}.p12 -deststoretype PKCS12" and set {family}.type=PKCS12, or use PEM files'
    " and {family}.type=PEM"
)
_JAVA_CIPHER: Final = re.compile(r"TLS_\w+_WITH_\w+")
_OAUTH_METHOD: Final = "sasl.oauthbearer.method"
_OAUTH_HANDLER: Final = re.compile(r"(.*\.)?OAuthBearerLoginCallbackHandler")
_LOGIN: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s;]+))')
_ASSIGNORS: Final[Mapping[str, str]] = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "cooperative-sticky",
}


class PropertyRefused(ValueError):
    """A property that cannot work; the reason says what to do instead."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"Invalid value for configuration {key}: {reason}")
        self.key = key
        self.reason = reason


def to_librdkafka(properties: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Translate properties to librdkafka's names and values; raises PropertyRefused when one cannot work."""
    given = dict(properties)
    result: dict[str, str] = {}
    for key, value in given.items():
        if key in _RULES:
            result.update(_RULES[key](_Property(key, value, given)))
        elif not _WITHOUT_MEANING.fullmatch(key):
            result[_RENAMED.get(key, key)] = value
    return result


class _Property(NamedTuple):
    key: str
    value: str
    all: Mapping[str, str]


def _login(given: _Property) -> dict[str, str]:
    """User and password of `...LoginModule required username="u" password="p";`."""
    found = {match[1]: match[2] or match[3] or match[4] or "" for match in _LOGIN.finditer(given.value)}
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in found.items()}
    if "OAuthBearer" in given.value and "clientId" in found:
        return _client_credentials(found)
    if "OAuthBearer" in given.value or "Krb5" in given.value:
        raise PropertyRefused(
            given.key, "only PLAIN and SCRAM logins are supported; set librdkafka's sasl.* properties instead"
        )
    if found.get("tokenauth", "").lower() == "true":
        raise PropertyRefused(
            given.key, "logins with delegation tokens (tokenauth) are not supported: log in as the owner of the token"
        )
    if "username" not in found or "password" not in found:
        raise PropertyRefused(given.key, "must name username and password, as in ...LoginModule required username=...")
    return {f"sasl.{part}": found[part] for part in ("username", "password")}


def _client_credentials(found: Mapping[str, str]) -> dict[str, str]:
    """What OAUTHBEARER gets its tokens with (OIDC's client credentials)."""
    names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
    ours = {f"sasl.oauthbearer.{ours}": found[java] for java, ours in names.items() if java in found}
    return {_OAUTH_METHOD: "oidc", **ours}


def _token_endpoint(given: _Property) -> dict[str, str]:
    """Java's clients know by the address alone how to get tokens; librdkafka must be told."""
    return {given.key: given.value, **({} if _OAUTH_METHOD in given.all else {_OAUTH_METHOD: "oidc"})}


def _callback_handler(given: _Property) -> dict[str, str]:
    if _OAUTH_HANDLER.fullmatch(given.value.strip()):
        return {}  # what fetches tokens by client id and secret, as librdkafka does
    raise PropertyRefused(
        given.key, "classes of Java cannot run here: remove it, and set librdkafka's sasl.* properties"
    )


def _cipher_suites(given: _Property) -> dict[str, str]:
    if _JAVA_CIPHER.search(given.value):
        raise PropertyRefused(given.key, "must have OpenSSL's names, such as ECDHE-RSA-AES128-GCM-SHA256")
    return {given.key: given.value}


def _key_store(given: _Property) -> dict[str, str]:
    location = given.all.get("ssl.keystore.location", "")
    kind = kind_of(location, given.all.get("ssl.keystore.type", ""))
    if kind is StoreKind.JKS:
        raise PropertyRefused(given.key, _NO_JKS.format(location=location, family="ssl.keystore"))
    if given.key == "ssl.keystore.type":
        return {}
    if kind is StoreKind.PKCS12:
        return {given.key: given.value}
    return {"ssl.certificate.location": location, "ssl.key.location": location} if given.key == _KEY_FILE else {}


def _trust_store(given: _Property) -> dict[str, str]:
    location = given.all.get("ssl.truststore.location", "")
    kind = kind_of(location, given.all.get("ssl.truststore.type", ""))
    if kind is StoreKind.JKS:
        raise PropertyRefused(given.key, _NO_JKS.format(location=location, family="ssl.truststore"))
    if given.key != "ssl.truststore.location":
        return {}
    if kind is StoreKind.PEM:
        return {"ssl.ca.location": location}
    try:
        return {"ssl.ca.pem": read_certificates(location, given.all.get("ssl.truststore.password", ""))}
    except UnreadableStore as error:
        raise PropertyRefused(given.key, f"{error}; or use PEM files, with ssl.truststore.type=PEM") from None


def _assignors(given: _Property) -> dict[str, str]:
    names = [name.strip().rpartition(".")[2] for name in given.value.split(",") if name.strip()]
    known = dict.fromkeys(_ASSIGNORS.get(name, name) for name in names)
    if "cooperative-sticky" in known and len(known) > 1:
        # librdkafka cannot mix eager and cooperative assignors; Java lists both for an upgrade between them.
        known.pop("cooperative-sticky")
    return {given.key: ",".join(known)} if known else {}


def _host_check(given: _Property) -> dict[str, str]:
    return {given.key: given.value.strip() or "none"}


def _offset_reset(given: _Property) -> dict[str, str]:
    return {given.key: {"none": "error"}.get(given.value.strip().lower(), given.value)}


_RULES: Final[Mapping[str, Callable[[_Property], dict[str, str]]]] = {
    "auto.offset.reset": _offset_reset,
    "partition.assignment.strategy": _assignors,
    "sasl.jaas.config": _login,
    "sasl.login.callback.handler.class": _callback_handler,
    "sasl.oauthbearer.token.endpoint.url": _token_endpoint,
    "ssl.cipher.suites": _cipher_suites,
    "ssl.endpoint.identification.algorithm": _host_check,
    **dict.fromkeys(_STORES, _key_store),
    **dict.fromkeys(_TRUST, _trust_store),
}
