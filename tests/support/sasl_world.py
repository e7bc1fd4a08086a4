"""SASL mechanisms with users and tokens kept in memory."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.scram import BY_NAME, ScramCredential, make_credential
from core_broker.security.sasl.scram_server import ScramServer, ScramServices, TokenCredential
from core_broker.service.clock import Clock, ManualClock


@cache
def credential(password: str, mechanism: str, iterations: int = 4096) -> ScramCredential:
    """A credential, made once: it takes milliseconds."""
    return make_credential(password, mechanism, iterations, b"a salt of tests")


class ScramUsers:
    """Users by their passwords."""

    def __init__(self, passwords: Mapping[str, str], *, iterations: int = 4096) -> None:
        self.passwords = dict(passwords)
        self.iterations = iterations

    def find(self, name: str, mechanism: str) -> ScramCredential | None:
        """The credential of a user."""
        password = self.passwords.get(name)
        return None if password is None else credential(password, mechanism, self.iterations)


class KnownToken(NamedTuple):
    """A delegation token."""

    owner: Principal
    password: str
    expires_ms: int


class ScramTokens:
    """Delegation tokens by their ids."""

    def __init__(self, tokens: Mapping[str, KnownToken]) -> None:
        self.tokens = dict(tokens)

    def find(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """The credential of a token."""
        token = self.tokens.get(token_id)
        if token is None:
            return None
        return TokenCredential(credential(token.password, mechanism), token.owner, token.expires_ms)


def scram_services(
    users: ScramUsers | None = None, tokens: ScramTokens | None = None, clock: Clock | None = None
) -> ScramServices:
    """What exchanges need."""
    return ScramServices(
        users=users or ScramUsers({"user": "pencil"}),
        tokens=tokens,
        clock=clock or ManualClock(1000),
        fake_salt_key=b"key of tests",
    )


def scram_server(
    mechanism: str = "SCRAM-SHA-256",
    users: ScramUsers | None = None,
    tokens: ScramTokens | None = None,
    *,
    clock: Clock | None = None,
    nonce: str | None = None,
) -> ScramServer:
    """An exchange."""
    return ScramServer(BY_NAME[mechanism], scram_services(users, tokens, clock), nonce=nonce)


# -- tokens of an identity provider ------------------------------------------------------------------------------------


@cache
def signing_key(key_id: str, algorithm: str = "RS256") -> RSAKey | ECKey:
    """A key of the identity provider, made once: RSA keys take a while."""
    curves = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
    if algorithm in curves:
        return ECKey.generate_key(curves[algorithm], {"kid": key_id})
    return RSAKey.generate_key(2048, {"kid": key_id})


def key_set(*keys: RSAKey | ECKey) -> bytes:
    """The public keys as the identity provider shows them."""
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def signed_token(claims: Mapping[str, Any], key: RSAKey | ECKey, algorithm: str = "RS256", **header: Any) -> str:
    """A token of the identity provider; None as a value of the header removes a field."""
    fields = {"alg": algorithm, "kid": key.kid, **header}
    known = {name: value for name, value in fields.items() if value is not None}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jws.serialize_compact(known, json.dumps(claims).encode(), key, [algorithm], registry)
