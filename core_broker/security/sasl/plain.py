"""The server side of PLAIN (RFC 4616): users and passwords of the settings."""

import hashlib
import hmac
from collections.abc import Mapping

from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.mechanism import Failure, Mechanism, Outcome, Success

_INVALID = "Authentication failed: Invalid username or password"


class PlainUsers:
    """Passwords by user name, kept as digests of equal length, so that comparing them takes the same time for all."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._digests = {name: _digest(password) for name, password in passwords.items()}

    def accepts(self, name: str, password: str) -> bool:
        """Whether the password is that of the user."""
        expected = self._digests.get(name)
        # The comparison of an unknown user takes as long as any other (CVE-2021-38153).
        is_equal = hmac.compare_digest(_digest(password), expected or _NO_DIGEST)
        return is_equal and expected is not None


class PlainServer(Mechanism):
    """One exchange: a single message."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    @property
    @override
    def name(self) -> str:
        return "PLAIN"

    @override
    def step(self, data: bytes) -> Outcome:
        # As in Kafka, invalid UTF-8 is replaced rather than refused, and a password cannot contain NUL.
        tokens = data.decode("utf-8", "replace").split("\0")
        if len(tokens) != 3:
            return _visible(f"the message has {len(tokens)} parts instead of 3")
        authorization_id, name, password = tokens
        if not name:
            return _visible("the user name is empty")
        if not password:
            return _visible("the password is empty", name)
        if not self._users.accepts(name, password):
            return Failure("wrong password or no such user", name, _INVALID)
        if authorization_id not in ("", name):
            return _visible("the authorization id is another user", name)
        return Success(Principal("User", name))


def _visible(reason: str, name: str = "") -> Failure:
    return Failure(reason, name, f"Authentication failed: {reason}")


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode("utf-8", "surrogatepass")).digest()


_NO_DIGEST = b"\0" * hashlib.sha256().digest_size
