"""The server side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), for users and delegation tokens.

A user that does not exist gets a salt, too: always the same, computed from its name. The exchange then fails where a
wrong password fails, so that a client cannot find out which users exist.

As in Kafka there is no channel binding, passwords are not prepared (SASLprep), and errors are not sent as `e=`.
"""

import base64
import binascii
import hmac
import re
import secrets
from enum import Enum, auto
from typing import Final, Protocol

import msgspec
from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.mechanism import Challenge, Failure, Mechanism, Outcome, Success
from core_broker.security.sasl.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism, salt_text
from core_broker.service.clock import Clock

_SAFE: Final = rb"[\x01-\x2b\x2d-\x3c\x3e-\x7f]"
"""A character of a name, except comma and equals sign, which are escaped."""
_CHARACTER: Final = rb"[\x01-\x2b\x2d-\x7f]"
_NAME: Final = rb"(?:" + _SAFE + rb"|=2C|=3D)+"
_NONCE: Final = rb"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = rb"(?:,[A-Za-z]+=" + _CHARACTER + rb"+)*"
_CLIENT_FIRST: Final = re.compile(
    rb"(?P<header>n,(?:a=(?P<authzid>" + _NAME + rb"))?,)"
    rb"(?P<bare>n=(?P<name>" + _NAME + rb"),r=(?P<nonce>" + _NONCE + rb")(?P<extensions>" + _EXTENSIONS + rb"))"
)
_CLIENT_FINAL: Final = re.compile(
    rb"(?P<unsigned>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>" + _NONCE + rb")" + _EXTENSIONS + rb")"
    rb",p=(?P<proof>[A-Za-z0-9/+=]+)"
)
_MESSAGE_BYTES_MAX: Final = 16 * 1024
_NONCE_BITS: Final = 130


class UserCredentials(Protocol):
    """The SCRAM credentials of users."""

    def find(self, name: str, mechanism: str) -> ScramCredential | None:
        """The credential of a user for a mechanism; None if it has none."""
        ...


class TokenCredential(msgspec.Struct, frozen=True):
    """What a client with a delegation token must prove to know, and on whose behalf it then acts."""

    credential: ScramCredential
    owner: Principal
    expires_at_ms: int


class TokenCredentials(Protocol):
    """The SCRAM credentials of delegation tokens."""

    def find(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """The credential of a token; None if there is no such token. May take milliseconds."""
        ...


class ScramServices(msgspec.Struct, frozen=True, kw_only=True):
    """What every exchange needs."""

    users: UserCredentials
    tokens: TokenCredentials | None
    """None if delegation tokens are not enabled."""
    clock: Clock
    fake_salt_key: bytes
    """The same on all brokers and after a restart, so that the salt of a user that does not exist is, too."""

    @override
    def __repr__(self) -> str:
        return "ScramServices()"


class _Claim(msgspec.Struct, frozen=True):
    """Who a client claims to be, and how it may prove that."""

    user: str
    principal: Principal
    credential: ScramCredential
    problem: str = ""
    """Why no proof can be right; empty if one can."""
    expires_at_ms: int | None = None


class _State(Enum):
    FIRST = auto()
    FINAL = auto()
    DONE = auto()


class ScramServer(Mechanism):
    """One exchange."""

    def __init__(self, mechanism: ScramMechanism, services: ScramServices, *, nonce: str | None = None) -> None:
        self._mechanism = mechanism
        self._services = services
        self._server_nonce = (nonce or _random_nonce()).encode()
        self._state = _State.FIRST
        self._header = b""
        self._nonce = b""
        self._signed = b""
        """The first two messages, as they were sent: a part of what both sides sign."""
        self._claim: _Claim | None = None

    @property
    @override
    def name(self) -> str:
        return self._mechanism.name

    @override
    def is_slow(self, data: bytes) -> bool:
        return self._state is _State.FIRST and self._services.tokens is not None and b",tokenauth=" in data

    @override
    def step(self, data: bytes) -> Outcome:
        state, self._state = self._state, _State.DONE
        if len(data) > _MESSAGE_BYTES_MAX:
            return Failure(f"a message has {len(data)} bytes")
        if state is _State.FIRST:
            return self._first(data)
        if state is _State.FINAL and self._claim is not None:
            return self._final(data, self._claim)
        return Failure("the exchange is over")

    def _first(self, data: bytes) -> Outcome:
        match = _CLIENT_FIRST.fullmatch(data)
        if match is None:
            return Failure("the first message is not valid SCRAM")
        user = match["name"].replace(b"=2C", b",").replace(b"=3D", b"=").decode("ascii")
        # As in Kafka, this compares the escaped form.
        if match["authzid"] is not None and match["authzid"] != user.encode():
            message = "The client may not act for another user: the authorization id must be empty or the user name."
            return Failure("the authorization id is another user", user, message)
        extensions = dict(part.split(b"=", 1) for part in match["extensions"].split(b",")[1:])
        is_token = extensions.get(b"tokenauth", b"").lower() == b"true"
        claim = self._claim = self._token(user) if is_token else self._user(user)
        if claim.credential.iterations < ITERATIONS_MIN:
            return Failure(f"the stored credential has {claim.credential.iterations} iterations", user)
        self._header = match["header"]
        self._nonce = match["nonce"] + self._server_nonce
        salt = base64.b64encode(claim.credential.salt)
        challenge = b"r=%b,s=%b,i=%d" % (self._nonce, salt, claim.credential.iterations)
        self._signed = b"%b,%b" % (match["bare"], challenge)
        self._state = _State.FINAL
        return Challenge(challenge)

    def _final(self, data: bytes, claim: _Claim) -> Outcome:
        match = _CLIENT_FINAL.fullmatch(data)
        binding = None if match is None else _unbase64(match["binding"])
        proof = None if match is None else _unbase64(match["proof"])
        if match is None or binding is None or proof is None:
            return Failure("the final message is not valid SCRAM", claim.user)
        if not hmac.compare_digest(binding, self._header):
            return Failure("the channel binding is not that of the first message", claim.user)
        if not hmac.compare_digest(match["nonce"], self._nonce):
            # As Apache Kafka 4 (CVE-2024-56128): older clients repeat their own nonce in front of it.
            is_old = match["nonce"].endswith(self._nonce)
            advice = "; update the client, if it is librdkafka before 2.6.1" if is_old else ""
            return Failure(f"the nonce is not the one that was sent{advice}", claim.user)
        signed = b"%b,%b" % (self._signed, match["unsigned"])
        is_proven = self._proves(proof, claim.credential, signed)
        if claim.problem or not is_proven:
            return Failure(claim.problem or "wrong password", claim.user)
        signature = self._mechanism.hmac(claim.credential.server_key, signed)
        return Success(claim.principal, b"v=" + base64.b64encode(signature), claim.expires_at_ms)

    def _proves(self, proof: bytes, credential: ScramCredential, signed: bytes) -> bool:
        signature = self._mechanism.hmac(credential.stored_key, signed)
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key)

    def _user(self, name: str) -> _Claim:
        fake = self._fake_credential(name)
        found = self._services.users.find(name, self.name)
        problem = "" if found else "no such user, or no credential for this mechanism"
        return _Claim(name, Principal("User", name), found or fake, problem)

    def _token(self, token_id: str) -> _Claim:
        fake = self._fake_credential(token_id)
        tokens = self._services.tokens
        found = tokens.find(token_id, self.name) if tokens is not None else None
        if found is None:
            return _Claim(token_id, Principal("User", ""), fake, "no such delegation token")
        # As in Kafka, the session belongs to the user with the owner's name.
        principal = Principal("User", found.owner.name, is_by_token=True)
        is_expired = found.expires_at_ms <= self._services.clock.now_ms()
        problem = "the delegation token has expired" if is_expired else ""
        return _Claim(token_id, principal, found.credential, problem, found.expires_at_ms)

    def _fake_credential(self, name: str) -> ScramCredential:
        """A credential that no password fits."""
        salt = salt_text(self._derived(b"salt", name))
        keys = self._derived(b"key", name)[: self._mechanism.hash_bytes]
        return ScramCredential(salt=salt, stored_key=keys, server_key=keys, iterations=ITERATIONS_MIN)

    def _derived(self, purpose: bytes, name: str) -> bytes:
        text = b"%b %b %b" % (purpose, self.name.encode(), name.encode())
        return hmac.digest(self._services.fake_salt_key, text, "sha512")


def fake_salt_key(cluster_id: str, secret: str | None) -> bytes:
    """The key behind the salts of users that do not exist; a secret that all brokers have keeps it from other users."""
    return hmac.digest((secret or "").encode(), b"salts of unknown users " + cluster_id.encode(), "sha256")


def _random_nonce() -> str:
    return salt_text(secrets.token_bytes(_NONCE_BITS // 8 + 1)).decode()


def _unbase64(text: bytes) -> bytes | None:
    """Decode base64; None unless it is written in the one way in which an encoder writes it."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return data if base64.b64encode(data) == text else None
