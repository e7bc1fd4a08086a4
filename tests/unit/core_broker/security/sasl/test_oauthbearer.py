"""OAUTHBEARER on the wire: RFC 7628 as Kafka reads it."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.client import bearer_message
from core_broker.security.sasl.jwks import parse_keys
from core_broker.security.sasl.jwt import PublicKey, TokenRules, TokenValidator
from core_broker.security.sasl.mechanism import Challenge, Failure, Pending, Success
from core_broker.security.sasl.oauthbearer import OAuthBearerServer
from core_broker.service.clock import ManualClock
from tests.support.sasl_world import key_set, signed_token, signing_key

NOW: Final = 1_000_000
TOKEN: Final = signed_token({"sub": "alice", "iat": NOW, "exp": NOW + 60}, signing_key("key1"))
EXPIRED: Final = signed_token({"sub": "alice", "iat": NOW - 90, "exp": NOW - 60}, signing_key("key1"))
REFUSAL: Final = b'{"status":"invalid_token"}'


class Keys:
    """The key of the identity provider."""

    def find(self, key_id: str | None) -> PublicKey | None:
        """A key by its id."""
        return parse_keys(key_set(signing_key("key1")))[0].get(key_id or "")


def server() -> OAuthBearerServer:
    return OAuthBearerServer(TokenValidator(Keys(), TokenRules(), ManualClock(NOW * 1000)))


def test_a_valid_token_is_accepted() -> None:
    outcome = server().step(bearer_message(TOKEN, {"tenant": "x y"}))
    assert outcome == Success(Principal("User", "alice"), expires_at_ms=(NOW + 60) * 1000)


@pytest.mark.parametrize("message", [b"n,a=alice,\x01auth=bearer  %b\x01\x01", b"n,,\x01auth=BEARER %b\x01\x01"])
def test_scheme_and_authorization_id(message: bytes) -> None:
    assert isinstance(server().step(message % TOKEN.encode()), Success)


def test_a_refused_token_is_answered_with_json_and_then_an_error() -> None:
    mechanism = server()
    assert mechanism.step(bearer_message(EXPIRED, {})) == Challenge(REFUSAL)
    assert mechanism.step(b"\x01") == Failure("the token has expired", message=REFUSAL.decode())


class LateKeys(Keys):
    """Of a provider that may have begun to use a key just now."""

    def __init__(self, *, has_new_key: bool) -> None:
        self._has_new_key = has_new_key
        self._is_read = False

    @override
    def find(self, key_id: str | None) -> PublicKey | None:
        return super().find(key_id) if self._is_read and self._has_new_key else None

    async def refreshed(self) -> None:
        """Read the keys again."""
        self._is_read = True


@pytest.mark.parametrize(("has_new_key", "expected"), [(True, Success), (False, Challenge)])
async def test_a_token_with_an_unknown_key_waits_once_until_the_keys_were_read_again(
    has_new_key: bool, expected: type
) -> None:
    keys = LateKeys(has_new_key=has_new_key)
    validator = TokenValidator(keys, TokenRules(), ManualClock(NOW * 1000))
    mechanism, message = OAuthBearerServer(validator, keys.refreshed), bearer_message(TOKEN, {})
    outcome = mechanism.step(message)
    assert isinstance(outcome, Pending)
    await outcome.wait()
    assert isinstance(mechanism.step(message), expected)


def test_another_token_may_follow_a_refused_one() -> None:
    mechanism = server()
    assert mechanism.step(bearer_message(EXPIRED, {})) == Challenge(REFUSAL)
    assert isinstance(mechanism.step(bearer_message(TOKEN, {})), Success)


def test_a_user_cannot_act_for_another() -> None:
    """CVE-2017-12610"""
    outcome = server().step(b"n,a=admin,\x01auth=Bearer %b\x01\x01" % TOKEN.encode())
    assert isinstance(outcome, Failure)
    assert outcome.message == "Authentication failed: the token of alice is not one of admin"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Basic a.b.c\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01Auth=x\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01k3y=x\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01key=\xff\x01\x01",
    ],
)
def test_a_message_that_breaks_the_grammar_is_refused(message: bytes) -> None:
    outcome = server().step(message)
    assert isinstance(outcome, Failure)
    assert outcome.message is None


@given(st.binary(max_size=100), st.booleans())
def test_no_message_raises(data: bytes, is_bearer: bool) -> None:
    message = b"n,,\x01auth=Bearer " + data + b"\x01\x01" if is_bearer else data
    assert isinstance(server().step(message), Failure | Challenge)


def test_no_outcome_contains_the_token() -> None:
    mechanism = server()
    assert EXPIRED not in repr(mechanism.step(bearer_message(EXPIRED, {})))
    assert EXPIRED not in repr(mechanism.step(b"\x01"))
