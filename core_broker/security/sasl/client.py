"""The client side of SASL, by which nodes log in at each other: PLAIN, SCRAM and OAUTHBEARER."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from typing_extensions import override

from core_broker.protocol.scram_client import Scram
from core_broker.security.sasl.scram import BY_NAME, ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism
from core_broker.settings import BrokerSettings

_ITERATIONS: Final = range(ITERATIONS_MIN, ITERATIONS_MAX + 1)
"""A peer that asks for fewer is no protection, one that asks for more would keep this node busy (CVE-2026-10143)."""
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_TOKEN_BYTES_MAX: Final = 100_000


class Conversation(Protocol):
    """One login."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has proved what it has to; it may say no more."""
        ...

    def step(self, challenge: bytes) -> bytes:
        """The response to a challenge, which is empty at first.

        Raises ValueError if the server is not who it claims to be. SCRAM computes for milliseconds: use a thread.
        """
        ...


class _OneMessage(Conversation):
    """A login by a single message; the server confirms it with nothing but an error code."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._is_sent = False

    @property
    @override
    def is_complete(self) -> bool:
        return self._is_sent

    @override
    def step(self, challenge: bytes) -> bytes:
        if self._is_sent:
            # OAUTHBEARER explains a refusal so; this byte makes the server end the login with an error (RFC 7628).
            return b"\x01"
        self._is_sent = True
        return self._message


class _ScramConversation(Conversation):
    """A login by SCRAM: both sides prove that they know the password."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, *, is_token: bool) -> None:
        extensions = ",tokenauth=true" if is_token else ""
        self._scram = Scram(mechanism.hash_name, user, password, iterations=_ITERATIONS, extensions=extensions)
        self._step = 0

    @property
    @override
    def is_complete(self) -> bool:
        return self._step > 2

    @override
    def step(self, challenge: bytes) -> bytes:
        step, self._step = self._step, self._step + 1
        if step == 0:
            return self._scram.first()
        if step == 1:
            return self._scram.proof(challenge)
        self._step = 2
        self._scram.check_end(challenge)
        self._step = 3
        return b""


class PasswordLogin:
    """A user name and a password, for PLAIN and SCRAM."""

    def __init__(self, mechanism: str, user: str, password: str, *, hint: str = "", is_token: bool = False) -> None:
        if mechanism != "PLAIN" and mechanism not in BY_NAME:
            raise ValueError(f"{mechanism} has no user names and passwords")
        if not user or not password or "\0" in user + password:
            raise ValueError("a login needs a user name and a password, neither with a NUL character")
        self.mechanism = mechanism
        self.hint = hint
        """Which settings to look at when a login fails."""
        self._user = user
        self._password = password
        self._is_token = is_token

    async def begin(self) -> Conversation:
        """A conversation for one login."""
        if self.mechanism == "PLAIN":
            return _OneMessage(f"\0{self._user}\0{self._password}".encode())
        mechanism = BY_NAME[self.mechanism]
        return _ScramConversation(mechanism, self._user, self._password, is_token=self._is_token)


class TokenLogin:
    """A signed token in a file, for OAUTHBEARER; the file is read at every login, since tokens expire."""

    mechanism = "OAUTHBEARER"

    def __init__(self, file: Path, *, extensions: Mapping[str, str] | None = None, hint: str = "") -> None:
        self.hint = hint
        """Which settings to look at when a login fails."""
        self._file = file
        self._extensions = dict(extensions or {})

    async def begin(self) -> Conversation:
        """A conversation for one login. Raises ValueError if the file has no token."""
        token = await asyncio.to_thread(_read_token, self._file)
        return _OneMessage(bearer_message(token, self._extensions))


def bearer_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """The first message of OAUTHBEARER (RFC 7628)."""
    pairs = "".join(f"{key}={value}\x01" for key, value in {"auth": f"Bearer {token}", **extensions}.items())
    return f"n,,\x01{pairs}\x01".encode()


def _read_token(file: Path) -> str:
    try:
        with file.open(encoding="ascii") as opened:
            text = opened.read(_TOKEN_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"no token can be read from {file}: {type(error).__name__}") from None
    if not _TOKEN.fullmatch(text):
        raise ValueError(f"{file} does not contain a token alone")
    return text


def login_of(settings: BrokerSettings, listener: str, mechanism: str) -> PasswordLogin | TokenLogin:
    """How this node logs in at a listener of other nodes. Raises ValueError if the settings do not say it."""
    settings = settings.for_mechanism(listener, mechanism)
    prefix = f"listener.name.{listener.lower()}.{mechanism.lower()}."
    jaas = settings.jaas_login
    if mechanism == "OAUTHBEARER":
        url = settings.sasl_oauthbearer_token_endpoint_url
        hint = f"{prefix}sasl.oauthbearer.token.endpoint.url"
        if url is None:
            raise ValueError(f"{hint} must be the file with the token by which this node logs in")
        file = Path(url2pathname(urlsplit(url).path))
        return TokenLogin(file, extensions=jaas.extensions if jaas is not None else {}, hint=hint)
    hint = f"{prefix}sasl.jaas.config"
    if jaas is None or not jaas.username:
        raise ValueError(f"{hint} must contain username and password, by which this node logs in at others")
    is_token = jaas.options.get("tokenauth", "").lower() == "true"
    return PasswordLogin(mechanism, jaas.username, jaas.password, hint=hint, is_token=is_token)
