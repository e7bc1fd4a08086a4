"""Gets the tokens of OAUTHBEARER by OIDC's client credentials, where librdkafka does not do it: for connections of our
own, and for HTTP services that take the same tokens."""

import base64
import http.client
import ipaddress
import json
import ssl
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from core_broker.client.errors import NotAllowed, Rejected, Unreachable

ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_TIMEOUT_S: Final = 10.0
_ANSWER_BYTES_MAX: Final = 1 << 20
_KEPT_MAX: Final = 16
_LIFE_S: Final = 60.0
"""How long a token is kept whose answer does not say how long it is valid."""


class _Answer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float = _LIFE_S


_kept: dict[tuple[str, ...], tuple[str, float]] = {}
"""Tokens by what they were asked with, and until when they are used."""


def gets_tokens(properties: Mapping[str, str]) -> bool:
    """Whether the properties, in librdkafka's names, say where tokens come from."""
    return bool(properties.get(ENDPOINT))


def fetch_token(properties: Mapping[str, str]) -> str:
    """A token for a client with these properties, in librdkafka's names; raises a ClientError."""
    asked = tuple(
        properties.get(key, "")
        for key in (ENDPOINT, *(f"sasl.oauthbearer.{part}" for part in ("client.id", "client.secret", "scope")))
    )
    token, until = _kept.get(asked, ("", 0.0))
    if not token or time.monotonic() > until:
        answer = _ask(*asked, context=_trusting(properties))
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        token = answer.access_token
        _kept[asked] = token, time.monotonic() + answer.expires_in / 2
    return token


def is_this_machine(host: str | None) -> bool:
    """Whether a host name is that of this machine, so that what is sent there does not reach a network."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return (host or "").lower() == "localhost"


def _ask(url: str, client_id: str, secret: str, scope: str, *, context: ssl.SSLContext) -> _Answer:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise Rejected(f"{ENDPOINT}={url}: must be an https:// address")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise Rejected(f"{ENDPOINT}={url}: must be https, because the client's secret is sent there")
    connection = (
        http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    )
    # RFC 6749, 2.3.1: both are encoded as in a form before they become a password.
    login = base64.b64encode(f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()).decode()
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    headers = {
        "Authorization": f"Basic {login}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body=urlencode(form), headers=headers)
        answer = connection.getresponse()
        content = answer.read(_ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"no token from {url}: {error}") from error
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise NotAllowed(f"{url} gives no token to the client {client_id}: {_reason(answer.status, content)}")
    try:
        return msgspec.json.decode(content, type=_Answer)
    except msgspec.MsgspecError:
        raise Rejected(f"the answer of {url} has no access_token") from None


def _reason(status: int, content: bytes) -> str:
    try:
        found = json.loads(content)
        text = str(found.get("error_description") or found["error"])
    except (ValueError, KeyError, AttributeError, TypeError):
        text = ""
    return f"HTTP {status} {text[:200]}".rstrip()


def _trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    location = properties.get("https.ca.location") or None
    try:
        return ssl.create_default_context(
            cafile=None if location == "probe" else location, cadata=properties.get("https.ca.pem") or None
        )
    except (OSError, ValueError) as error:
        raise Rejected(f"https.ca.location={location}: not readable as certificates in PEM ({error})") from None
