"""Callers of HTTP services and what they log in with, without a cluster, an identity provider or a connection."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from core_broker.service.web.asgi import Message, Scope
from core_broker.service.web.connections import HttpConnection, attach_connection
from core_broker.web_access.errors import Unavailable
from core_broker.web_access.passwords import PasswordVerifier, Verdict


class KnownUsers(PasswordVerifier):
    """Users by their passwords, which may change; counts the questions."""

    def __init__(self, passwords: Mapping[str, str] | None = None) -> None:
        self.passwords = {"alice": "secret"} if passwords is None else dict(passwords)
        self.is_available = True
        self.asked = 0

    @override
    async def verify(self, user: str, password: str) -> Verdict:
        self.asked += 1
        if not self.is_available:
            raise Unavailable("The users are not known now")
        if user not in self.passwords:
            return Verdict.UNKNOWN_USER
        return Verdict.RIGHT if self.passwords[user] == password else Verdict.WRONG


def basic(user: str, password: str) -> str:
    """The Authorization header for a name and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def scope_of(
    *authorization: str | bytes, path: str = "/things", host: str = "10.0.0.1", certificate: bytes | None = None
) -> Scope:
    """A request with these Authorization headers, over a connection that may have shown a certificate."""
    values = (value if isinstance(value, bytes) else value.encode() for value in authorization)
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"test"), *((b"authorization", value) for value in values)],
        "client": (host, 4711),
    }
    attach_connection(scope, HttpConnection(_Transport(certificate)))
    return scope


class _Transport:
    def __init__(self, certificate: bytes | None) -> None:
        self._certificate = certificate

    def get_extra_info(self, name: str) -> Any:
        return self if name == "ssl_object" and self._certificate is not None else None

    def getpeercert(self, *, binary_form: bool) -> bytes | None:
        assert binary_form
        return self._certificate


class Received:
    """The response to a request."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        """As the server's."""
        self.messages.append(message)

    @property
    def status(self) -> int:
        """The status."""
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        """The body."""
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    def headers(self, name: str) -> list[str]:
        """The values of a header."""
        found: Iterable[tuple[bytes, bytes]] = self.messages[0]["headers"]
        return [value.decode() for key, value in found if key.decode() == name]


async def no_body() -> Message:
    """What a request without a body receives."""
    return {"type": "http.request", "body": b"", "more_body": False}
