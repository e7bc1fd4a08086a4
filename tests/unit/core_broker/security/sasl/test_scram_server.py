"""SCRAM on the server: the example of RFC 7677, who may log in, and what a client cannot find out."""

import base64
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.protocol.scram_client import Scram, ScramError
from core_broker.security.sasl.mechanism import Challenge, Failure, Outcome, Success
from core_broker.security.sasl.scram import BY_NAME, ScramCredential, make_credential
from core_broker.security.sasl.scram_server import ScramServer, fake_salt_key
from core_broker.service.clock import ManualClock
from tests.support.sasl_world import KnownToken, ScramTokens, ScramUsers, scram_server, scram_services

MECHANISMS = list(BY_NAME)
RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)

Change = Callable[[bytes], bytes]


class _RfcUsers(ScramUsers):
    @override
    def find(self, name: str, mechanism: str) -> ScramCredential | None:
        if name != "user":
            return None
        return make_credential("pencil", mechanism, 4096, base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))


def rfc_server() -> ScramServer:
    return scram_server(users=_RfcUsers({}), nonce=RFC_NONCE)


def exchange(
    server: ScramServer,
    user: str = "user",
    password: str = "pencil",
    *,
    first: Change = bytes,
    final: Change = bytes,
    extensions: str = "",
) -> Outcome:
    """A whole exchange, with changes to the messages of the client."""
    client = Scram(BY_NAME[server.name].hash_name, user, password, extensions=extensions)
    outcome = server.step(first(client.first()))
    if not isinstance(outcome, Challenge):
        return outcome
    outcome = server.step(final(client.proof(outcome.data)))
    if isinstance(outcome, Success):
        client.check_end(outcome.data)
    return outcome


def test_the_example_of_rfc_7677() -> None:
    server = rfc_server()
    assert server.step(RFC_FIRST) == Challenge(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.step(RFC_FINAL) == Success(
        Principal("User", "user"), b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_is_accepted_and_a_wrong_one_is_not(mechanism: str) -> None:
    users = ScramUsers({"a=b,c": "grün"})
    outcome = exchange(scram_server(mechanism, users), "a=b,c", "grün")
    assert isinstance(outcome, Success)
    assert outcome.principal == Principal("User", "a=b,c")
    assert outcome.expires_at_ms is None
    assert exchange(scram_server(mechanism, users), "a=b,c", "grun") == Failure("wrong password", "a=b,c")


def test_a_nonce_that_was_not_sent_is_refused() -> None:
    """CVE-2024-56128: without this check an exchange could be replayed."""
    server = rfc_server()
    server.step(RFC_FIRST)
    outcome = server.step(RFC_FINAL.replace(b"rOprNGfwEbeRWgbNEkqO", b"rOprNGfwEbeRWgbNEkqP"))
    assert outcome == Failure("the nonce is not the one that was sent", "user")


def test_a_client_that_repeats_its_nonce_is_refused_with_advice() -> None:
    """librdkafka did so before 2.6.1; Apache Kafka 4 refuses it, too."""
    outcome = exchange(scram_server(), final=lambda data: data.replace(b",r=", b",r=again"))
    assert isinstance(outcome, Failure)
    assert "librdkafka before 2.6.1" in outcome.reason


def test_a_final_message_of_another_exchange_is_refused() -> None:
    """CVE-2024-56128"""
    first, second = scram_server(), scram_server()
    client = Scram("sha256", "user", "pencil", nonce="always the same".replace(" ", ""))
    challenge = first.step(client.first())
    assert isinstance(challenge, Challenge)
    final = client.proof(challenge.data)
    assert isinstance(first.step(final), Success)
    assert isinstance(second.step(client.first()), Challenge)
    assert second.step(final) == Failure("the nonce is not the one that was sent", "user")


def test_a_user_cannot_act_for_another() -> None:
    """CVE-2017-12610"""
    outcome = exchange(scram_server(), first=lambda data: data.replace(b"n,,", b"n,a=admin,"))
    assert isinstance(outcome, Failure)
    assert outcome.message is not None
    assert "another user" in outcome.message


def test_a_user_may_name_itself_as_the_authorization_id() -> None:
    binding = base64.b64encode(b"n,a=user,")
    server = scram_server()
    first = server.step(b"n,a=user,n=user,r=abc")
    assert isinstance(first, Challenge)
    # The client of this project does not send an authorization id, so its messages are computed here.
    nonce, salt, _ = (part[2:] for part in first.data.split(b",", 2))
    unsigned = b"c=%b,r=%b" % (binding, nonce)
    mechanism = BY_NAME["SCRAM-SHA-256"]
    salted = mechanism.salted_password(b"pencil", base64.b64decode(salt), 4096)
    client_key = mechanism.hmac(salted, b"Client Key")
    signature = mechanism.hmac(mechanism.hash(client_key), b"n=user,r=abc,%b,%b" % (first.data, unsigned))
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))
    assert isinstance(server.step(b"%b,p=%b" % (unsigned, proof)), Success)


def test_the_channel_binding_must_be_that_of_the_first_message() -> None:
    outcome = exchange(scram_server(), final=lambda data: data.replace(b"c=biws", b"c=eSws"))
    assert outcome == Failure("the channel binding is not that of the first message", "user")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_that_does_not_exist_cannot_be_told_from_a_wrong_password(mechanism: str) -> None:
    users = ScramUsers({"user": "pencil"})
    seen = {}
    for name in ("user", "stranger"):
        server = scram_server(mechanism, users)
        challenge = server.step(b"n,,n=%b,r=abc" % name.encode())
        assert isinstance(challenge, Challenge)
        again = scram_server(mechanism, users).step(b"n,,n=%b,r=abc" % name.encode())
        assert isinstance(again, Challenge)
        salts = {data.split(b",")[1] for data in (challenge.data, again.data)}
        assert len(salts) == 1, "the salt of a user does not change"
        outcome = exchange(scram_server(mechanism, users), name, "wrong")
        assert isinstance(outcome, Failure)
        assert outcome.message is None
        seen[name] = (challenge.data.split(b",")[2], outcome.message)
    assert seen["user"] == seen["stranger"]


def test_the_salts_of_strangers_look_like_those_of_users() -> None:
    salts = set()
    for name in ("one", "two"):
        challenge = scram_server().step(b"n,,n=%b,r=abc" % name.encode())
        assert isinstance(challenge, Challenge)
        match = re.fullmatch(rb"r=abc[0-9a-z]+,s=([A-Za-z0-9/+=]+),i=4096", challenge.data)
        assert match
        salts.add(base64.b64decode(match[1]))
    assert len(salts) == 2
    assert all(re.fullmatch(rb"[0-9a-z]{20,26}", salt) for salt in salts)


def test_the_salts_of_strangers_depend_on_the_cluster_and_its_secret() -> None:
    assert len({fake_salt_key("a", None), fake_salt_key("b", None), fake_salt_key("a", "secret")}) == 3
    assert fake_salt_key("a", "secret") == fake_salt_key("a", "secret")


def test_a_stored_credential_with_too_few_iterations_is_refused() -> None:
    outcome = exchange(scram_server(users=ScramUsers({"user": "pencil"}, iterations=4095)))
    assert outcome == Failure("the stored credential has 4095 iterations", "user")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,m=ext,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user=2c,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a c",
        "n,,n=üser,r=abc".encode(),
        b"n,,n=user,r=abc,1=x",
        b"n,,n=user,r=abc,x=",
        b"n,,n=us\0er,r=abc",
        b"n,,n=user,r=" + b"a" * 20_000,
    ],
)
def test_a_first_message_that_breaks_the_grammar_is_refused(message: bytes) -> None:
    assert isinstance(scram_server().step(message), Failure)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b",x=y",
        lambda data: data.replace(b"p=", b"q="),
        lambda data: data.replace(b"c=biws", b"c=b*ws"),
        lambda data: data.replace(b"c=biws", b"c=biw"),
        lambda data: data.partition(b",p=")[0] + b",p=AAAA",
    ],
    ids=["empty", "short", "long", "no proof", "no base64", "half base64", "short proof"],
)
def test_a_final_message_that_breaks_the_grammar_is_refused(change: Change) -> None:
    assert isinstance(exchange(scram_server(), final=change), Failure)


def test_extensions_are_signed_and_ignored() -> None:
    assert isinstance(exchange(scram_server(), extensions=",b=1,a=2"), Success)


def test_nothing_follows_the_end() -> None:
    server = rfc_server()
    server.step(RFC_FIRST)
    server.step(RFC_FINAL)
    assert server.step(RFC_FINAL) == Failure("the exchange is over")
    failed = rfc_server()
    failed.step(b"no")
    assert failed.step(RFC_FIRST) == Failure("the exchange is over")


# -- delegation tokens -------------------------------------------------------------------------------------------------

ALICE = Principal("User", "alice")
TOKEN = ",tokenauth=true"


def tokens() -> ScramTokens:
    return ScramTokens({"id1": KnownToken(ALICE, "hmac", 5000)})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_token_logs_in_as_its_owner(mechanism: str) -> None:
    outcome = exchange(scram_server(mechanism, tokens=tokens()), "id1", "hmac", extensions=TOKEN)
    assert isinstance(outcome, Success)
    assert outcome.principal == ALICE
    assert outcome.principal.is_by_token
    assert outcome.expires_at_ms == 5000


@pytest.mark.parametrize(("token_id", "password"), [("id1", "wrong"), ("id2", "hmac")])
def test_a_token_that_is_not_known_is_refused_like_a_wrong_one(token_id: str, password: str) -> None:
    outcome = exchange(scram_server(tokens=tokens()), token_id, password, extensions=TOKEN)
    assert isinstance(outcome, Failure)
    assert outcome.message is None


def test_a_token_that_has_expired_is_refused() -> None:
    server = scram_server(tokens=tokens(), clock=ManualClock(5000))
    assert exchange(server, "id1", "hmac", extensions=TOKEN) == Failure("the delegation token has expired", "id1")


def test_only_the_first_message_with_a_token_is_slow() -> None:
    server = scram_server(tokens=tokens())
    assert server.is_slow(b"n,,n=id1,r=abc,tokenauth=true")
    assert not server.is_slow(b"n,,n=user,r=abc")
    assert not scram_server().is_slow(b"n,,n=id1,r=abc,tokenauth=true")


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    assert isinstance(exchange(scram_server(tokens=tokens()), "id1", "hmac"), Failure)
    assert isinstance(exchange(scram_server(tokens=tokens()), extensions=TOKEN), Failure)
    assert isinstance(exchange(scram_server(tokens=None), "id1", "hmac", extensions=TOKEN), Failure)


# -- any message -------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_no_first_message_raises(data: bytes) -> None:
    assert isinstance(scram_server().step(data), Challenge | Failure)


@given(st.booleans(), st.integers(0, 1000), st.integers(0, 7))
def test_a_changed_message_is_never_accepted(is_first: bool, place: int, bit: int) -> None:
    def mutate(message: bytes) -> bytes:
        changed = bytearray(message)
        changed[place % len(message)] ^= 1 << bit
        return bytes(changed)

    try:
        outcome = exchange(scram_server(), first=mutate if is_first else bytes, final=bytes if is_first else mutate)
    except ScramError:
        return  # the client sees that the nonce is not its own
    assert isinstance(outcome, Failure)


def test_services_are_shown_without_secrets() -> None:
    assert "key" not in repr(scram_services())
