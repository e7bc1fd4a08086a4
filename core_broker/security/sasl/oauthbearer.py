"""The server side of OAUTHBEARER (RFC 7628): signed tokens of an identity provider."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.jwt import InvalidToken, TokenValidator, UnknownKey
from core_broker.security.sasl.mechanism import Challenge, Failure, Mechanism, Outcome, Pending, Success

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01"
_MESSAGE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_REFUSAL: Final = '{"status":"invalid_token"}'
_ACKNOWLEDGEMENT: Final = b"\x01"


class OAuthBearerServer(Mechanism):
    """One exchange. A client whose token is refused hears why, and may try another one on the same connection."""

    def __init__(self, validator: TokenValidator, refreshed: Callable[[], Awaitable[object]] | None = None) -> None:
        """`refreshed` waits until the keys have been read again; a token with an unknown key waits for it once."""
        self._validator = validator
        self._refreshed = refreshed
        self._refusal: Failure | None = None

    @property
    @override
    def name(self) -> str:
        return "OAUTHBEARER"

    @override
    def step(self, data: bytes) -> Outcome:
        if self._refusal is not None and data == _ACKNOWLEDGEMENT:
            return self._refusal
        # Latin-1 keeps every byte; those that are not ASCII are in no part of the grammar.
        match = _MESSAGE.fullmatch(data.decode("latin-1"))
        if match is None:
            return Failure("the message is not valid OAUTHBEARER")
        pairs = [pair.partition("=")[::2] for pair in match["pairs"].split("\x01")[:-1]]
        credentials = [value for key, value in pairs if key.lower() == "auth"]
        auth = _AUTH.fullmatch(credentials[0]) if len(credentials) == 1 else None
        if auth is None or auth["scheme"].lower() != "bearer":
            return Failure("the message does not contain one bearer token")
        return self._judge(auth["token"], match["authzid"])

    def _judge(self, token: str, authorization_id: str | None) -> Outcome:
        try:
            valid = self._validator.validate(token)
        except InvalidToken as error:
            if isinstance(error, UnknownKey) and self._refreshed is not None:
                wait, self._refreshed = self._refreshed, None
                return Pending(wait)
            self._refusal = Failure(str(error), message=_REFUSAL)
            return Challenge(_REFUSAL.encode())
        if authorization_id is not None and _unescape(authorization_id) != valid.subject:
            message = f"Authentication failed: the token of {valid.subject} is not one of {authorization_id}"
            return Failure("the authorization id is another user", valid.subject, message)
        return Success(Principal("User", valid.subject), expires_at_ms=valid.expires_at_ms)


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
