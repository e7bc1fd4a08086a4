"""Which tokens are accepted: signed with a public key, at their time, by the issuer, for the audience."""

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, RSAKey

from core_broker.security.sasl.jwt import ALGORITHMS, InvalidToken, TokenRules, TokenValidator, ValidToken
from core_broker.service.clock import ManualClock
from tests.support.sasl_world import signed_token, signing_key

NOW: Final = 1_000_000
CLAIMS: Final = {"sub": "alice", "iat": NOW, "exp": NOW + 60}


class Keys:
    """Keys by their ids."""

    def __init__(self, *keys: RSAKey | ECKey) -> None:
        self.keys = {key.kid: key for key in keys}

    def find(self, key_id: str | None) -> RSAKey | ECKey | None:
        """A key by its id."""
        if key_id is None and len(self.keys) == 1:
            return next(iter(self.keys.values()))
        return self.keys.get(key_id)


KEY: Final = signing_key("key1")


def validate(token: str, *, rules: TokenRules | None = None, keys: Keys | None = None) -> ValidToken:
    clock = ManualClock(NOW * 1000)
    return TokenValidator(keys or Keys(KEY), rules or TokenRules(), clock).validate(token)


def check(claims: Mapping[str, Any], **rules: Any) -> ValidToken:
    return validate(signed_token(claims, KEY), rules=TokenRules(**rules))


def without_signature(header: Mapping[str, Any], claims: Mapping[str, Any], signature: str = "") -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, signature])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_signed_token_is_accepted(algorithm: str) -> None:
    key = signing_key("key2", algorithm)
    token = signed_token(CLAIMS, key, algorithm)
    assert validate(token, keys=Keys(KEY, key)) == ValidToken("alice", (NOW + 60) * 1000)


def test_headers_that_are_not_known_are_ignored() -> None:
    assert validate(signed_token(CLAIMS, KEY, nonce="x" * 600)).subject == "alice"


@pytest.mark.parametrize("signature", ["", "AAAA"])
@pytest.mark.parametrize("algorithm", ["none", "nOnE", "NONE", None, "", 5, ["RS256"]], ids=repr)
def test_a_token_without_a_signature_is_refused(algorithm: object, signature: str) -> None:
    """CVE-2026-110985"""
    with pytest.raises(InvalidToken):
        validate(without_signature({"alg": algorithm, "kid": "key1"}, CLAIMS, signature))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_never_a_shared_secret(algorithm: str) -> None:
    """Algorithm confusion: the public key, which everybody knows, as the secret of an HMAC."""
    signed = without_signature({"alg": algorithm, "kid": "key1"}, CLAIMS).rstrip(".")
    digest = hmac.digest(KEY.as_pem(private=False), signed.encode(), algorithm.replace("HS", "sha"))
    token = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    with pytest.raises(InvalidToken, match="algorithm"):
        validate(token)


def test_a_key_is_not_used_with_an_algorithm_of_another_kind() -> None:
    curve = signing_key("key1", "ES256")
    with pytest.raises(InvalidToken):
        validate(signed_token(CLAIMS, curve, "ES256"))
    with pytest.raises(InvalidToken):
        validate(signed_token(CLAIMS, KEY), keys=Keys(curve))
    with pytest.raises(InvalidToken):
        validate(signed_token(CLAIMS, signing_key("key1", "ES384"), "ES384"), keys=Keys(curve))


def test_a_key_for_one_algorithm_is_not_used_with_another() -> None:
    public = RSAKey.import_key({**KEY.as_dict(private=False), "alg": "PS256"})
    with pytest.raises(InvalidToken, match="PS256 only"):
        validate(signed_token(CLAIMS, KEY), keys=Keys(public))
    assert validate(signed_token(CLAIMS, KEY, "PS256"), keys=Keys(public)).subject == "alice"


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidToken, match="signature"):
        validate(signed_token(CLAIMS, signing_key("other"), kid="key1"))
    with pytest.raises(InvalidToken, match="no such key"):
        validate(signed_token(CLAIMS, signing_key("other")))


def test_a_token_without_a_key_id_needs_the_only_key() -> None:
    token = signed_token(CLAIMS, KEY, kid=None)
    assert validate(token).subject == "alice"
    with pytest.raises(InvalidToken, match="does not name its key"):
        validate(token, keys=Keys(KEY, signing_key("other")))


@pytest.mark.parametrize("header", [{"crit": ["b64"], "b64": False}, {"b64": False}, {"crit": ["x"], "x": 1}])
def test_a_header_that_demands_extensions_is_refused(header: Mapping[str, Any]) -> None:
    _, claims, signature = signed_token(CLAIMS, KEY).split(".")
    changed = without_signature({"alg": "RS256", "kid": "key1", **header}, {}).split(".")[0]
    with pytest.raises(InvalidToken, match="extensions"):
        validate(f"{changed}.{claims}.{signature}")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": NOW - 30}, "has expired"),
        ({"exp": None}, "exp is not a time"),
        ({"exp": "soon"}, "exp is not a time"),
        ({"exp": -1}, "exp is not a time"),
        ({"exp": True}, "exp is not a time"),
        ({"exp": 1e300}, "exp is not a time"),
        ({"iat": NOW + 31}, "issued in the future"),
        ({"iat": None}, "iat is not a time"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"nbf": "now"}, "nbf is not a time"),
        ({"sub": None}, "sub is not a name"),
        ({"sub": " "}, "sub is not a name"),
        ({"sub": 5}, "sub is not a name"),
        ({"sub": "a" * 1001}, "sub is not a name"),
        ({"aud": "kafka"}, "audience is not an expected one"),
        ({"aud": 5}, "aud is neither"),
        ({"scope": 5}, "scope is neither"),
        ({"scope": ["a", ""]}, "scope is neither"),
        ({"scope": ["a", " a"]}, "a scope twice"),
    ],
)
def test_a_claim_that_is_not_right_is_refused(changes: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(InvalidToken, match=reason):
        check({**CLAIMS, **changes})


@pytest.mark.parametrize("changes", [{"exp": NOW - 29}, {"iat": NOW + 30}, {"nbf": NOW + 30}, {"scope": "a b"}])
def test_clocks_may_differ_a_little(changes: Mapping[str, Any]) -> None:
    assert check({**CLAIMS, **changes}).subject == "alice"


def test_issuer_and_audience_must_be_the_expected_ones() -> None:
    rules = {"issuer": "https://id", "audiences": ("kafka", "events")}
    assert check({**CLAIMS, "iss": "https://id", "aud": ["x", "events"]}, **rules).subject == "alice"
    assert check({**CLAIMS, "iss": "https://id", "aud": "kafka"}, **rules).subject == "alice"
    changes: list[dict[str, Any]] = [{"iss": "https://id/"}, {"iss": None}, {"aud": "x"}, {"aud": []}, {"aud": None}]
    for wrong in changes:
        with pytest.raises(InvalidToken, match="issuer|audience"):
            check({**CLAIMS, "iss": "https://id", "aud": "kafka", **wrong}, **rules)


def test_the_claims_of_subject_and_scope_have_the_configured_names() -> None:
    claims = {**CLAIMS, "client_id": " service ", "scp": ["a", "b"]}
    assert check(claims, subject_claim="client_id", scope_claim="scp").subject == "service"


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "...", "a.b.c.d", "x" * 70_000, "e30.e30.e30", "W10.e30.AA"])
def test_text_that_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidToken):
        validate(token)


def test_deeply_nested_json_is_refused() -> None:
    nested = base64.urlsafe_b64encode(b"[" * 20_000).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        validate(f"{nested}.e30.AA")


@given(st.text(max_size=100) | st.from_regex(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", fullmatch=True))
def test_no_text_raises_anything_else(token: str) -> None:
    with pytest.raises(InvalidToken):
        validate(token)


@given(st.integers(0, 10_000), st.integers(1, 63))
def test_a_changed_token_is_refused(place: int, change: int) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = signed_token(CLAIMS, KEY)
    head, _, signature = token.rpartition(".")
    place %= len(head)
    if head[place] == ".":
        return
    changed = alphabet[(alphabet.index(head[place]) + change) % 64]
    with pytest.raises(InvalidToken):
        validate(f"{head[:place]}{changed}{head[place + 1 :]}.{signature}")
