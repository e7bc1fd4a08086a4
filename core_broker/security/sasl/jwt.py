"""Checks signed tokens (JWT, RFC 7519): signature, time, issuer, audience and subject.

Only signatures with public keys are accepted: `none` and keys that are a shared secret (HMAC) are not, whatever a token
or a key set says (CVE-2026-110985).
"""

import base64
import binascii
from typing import Any, Final, Protocol

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from core_broker.service.clock import Clock
from core_broker.settings.sasl import TokenSettings

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
PublicKey = RSAKey | ECKey

_TOKEN_BYTES_MAX: Final = 64 * 1024
_HEADER_BYTES_MAX: Final = 4096
_NAME_LENGTH_MAX: Final = 1000


class _Registry(jws.JWSRegistry):
    max_header_length = _HEADER_BYTES_MAX
    max_payload_length = _TOKEN_BYTES_MAX
    max_signature_length = 2048


_REGISTRY: Final = _Registry(algorithms=ALGORITHMS, strict_check_header=False)


class InvalidToken(Exception):
    """A token that must not be accepted; the message is for the log, without the token."""


class UnknownKey(InvalidToken):
    """A token names a key that is not known; it may be after the next refresh."""


class KeySource(Protocol):
    """Public keys."""

    def find(self, key_id: str | None) -> PublicKey | None:
        """The key with an id, or the only key if a token names none. An unknown id may make the source look again."""
        ...


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a token must have besides a signature."""

    audiences: tuple[str, ...] = ()
    """One of them must be in the token; a token with an audience is refused if there are none."""
    issuer: str | None = None
    clock_skew_seconds: int = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"


def rules_of(settings: TokenSettings) -> TokenRules:
    """The rules of these settings."""
    return TokenRules(
        audiences=settings.sasl_oauthbearer_expected_audience,
        issuer=settings.sasl_oauthbearer_expected_issuer,
        clock_skew_seconds=settings.sasl_oauthbearer_clock_skew_seconds,
        scope_claim=settings.sasl_oauthbearer_scope_claim_name,
        subject_claim=settings.sasl_oauthbearer_sub_claim_name,
    )


class ValidToken(msgspec.Struct, frozen=True):
    """What a token says."""

    subject: str
    expires_at_ms: int


class TokenValidator:
    """Checks tokens against keys and rules. It takes well below a millisecond, so that it runs on the event loop."""

    def __init__(self, keys: KeySource, rules: TokenRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock

    def validate(self, token: str) -> ValidToken:
        """What a token says. Raises InvalidToken."""
        header = _header(token)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise InvalidToken(f"the algorithm is not one of {', '.join(ALGORITHMS)}")
        if "crit" in header or "b64" in header:
            raise InvalidToken("the header demands extensions that are not supported")
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidToken("the key id is not text")
        key = self._keys.find(key_id)
        if key is None:
            if key_id is None:
                raise InvalidToken("the token does not name its key")
            raise UnknownKey("there is no such key")
        if key.alg not in (None, algorithm):
            raise InvalidToken(f"the key is for {key.alg} only")
        return self._check(_verified_claims(token, key))

    def _check(self, claims: dict[str, Any]) -> ValidToken:
        expires_at = self._check_times(claims)
        self._check_issuer(claims)
        self._check_scope(claims)
        subject = claims.get(self._rules.subject_claim)
        if not isinstance(subject, str) or not subject.strip() or len(subject) > _NAME_LENGTH_MAX:
            raise InvalidToken(f"claim {self._rules.subject_claim} is not a name")
        return ValidToken(subject.strip(), round(expires_at * 1000))

    def _check_times(self, claims: dict[str, Any]) -> float:
        now, skew = self._clock.now_ms() / 1000, self._rules.clock_skew_seconds
        expires_at = _time(claims, "exp")
        if expires_at + skew <= now:
            raise InvalidToken("the token has expired")
        if _time(claims, "iat") - skew > now:
            raise InvalidToken("the token was issued in the future")
        if "nbf" in claims and _time(claims, "nbf") - skew > now:
            raise InvalidToken("the token is not valid yet")
        return expires_at

    def _check_issuer(self, claims: dict[str, Any]) -> None:
        if self._rules.issuer is not None and claims.get("iss") != self._rules.issuer:
            raise InvalidToken("the issuer is not the expected one")
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if audiences is None:
            audiences = []
        if not isinstance(audiences, list) or not all(isinstance(name, str) for name in audiences):
            raise InvalidToken("claim aud is neither text nor a list of texts")
        if not self._rules.audiences and not audiences:
            return
        if set(self._rules.audiences).isdisjoint(audiences):
            raise InvalidToken("the audience is not an expected one (sasl.oauthbearer.expected.audience)")

    def _check_scope(self, claims: dict[str, Any]) -> None:
        scope = claims.get(self._rules.scope_claim)
        scopes = [scope] if isinstance(scope, str) else scope
        if scopes is None:
            return
        if not isinstance(scopes, list) or not all(isinstance(name, str) and name.strip() for name in scopes):
            raise InvalidToken(f"claim {self._rules.scope_claim} is neither text nor a list of texts")
        if len({name.strip() for name in scopes}) < len(scopes):
            raise InvalidToken(f"claim {self._rules.scope_claim} contains a scope twice")


def _header(token: str) -> dict[str, Any]:
    """The header of a token, which is not verified."""
    parts = token.split(".") if len(token) <= _TOKEN_BYTES_MAX else []
    if len(parts) != 3 or not all(parts):
        raise InvalidToken("the token has not three parts")
    text = parts[0]
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        header = msgspec.json.decode(decoded)
    except (ValueError, RecursionError, binascii.Error):
        raise InvalidToken("the header is not JSON") from None
    if not isinstance(header, dict):
        raise InvalidToken("the header is not an object")
    return header


def _verified_claims(token: str, key: PublicKey) -> dict[str, Any]:
    """The claims of a token whose signature is right."""
    try:
        verified = jws.deserialize_compact(token, key, registry=_REGISTRY, algorithms=ALGORITHMS)
        claims = msgspec.json.decode(verified.payload or b"")
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        # A key of another type than the algorithm ends here, too.
        raise InvalidToken(f"the signature is not right ({type(error).__name__})") from None
    if not isinstance(claims, dict):
        raise InvalidToken("the claims are not an object")
    return claims


def _time(claims: dict[str, Any], name: str) -> float:
    """A claim that is a time in seconds."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise InvalidToken(f"claim {name} is not a time")
    return float(value)
