import hashlib
import hmac

from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.protocol.fields import Message
from core_broker.protocol.principals import Principal
from core_broker.protocol.scram_client import Scram
from core_broker.protocol.stored.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from core_broker.security.sasl.mechanism import Challenge, Failure, Outcome, Success
from core_broker.security.sasl.scram import BY_NAME, token_password
from core_broker.security.sasl.scram_server import ScramServer, ScramServices
from core_broker.security.tokens import DelegationToken, TokenStore, token_hmac
from core_broker.service.clock import ManualClock
from tests.support.sasl_world import ScramUsers

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
NOW = 1_000_000


def token(token_id: str = "id", **fields: object) -> DelegationToken:
    values = {
        "token_id": token_id,
        "owner": ALICE,
        "requester": BOB,
        "renewers": (CAROL,),
        "issued_ms": NOW,
        "max_ms": NOW + 2000,
        "expires_ms": NOW + 1000,
        **fields,
    }
    return DelegationToken(**values)  # type: ignore[arg-type] # fields by name


class World:
    """Tokens in the newest image of a node."""

    def __init__(self, *tokens: DelegationToken, secret_key: str | None = "secret") -> None:
        self.clock = ManualClock(NOW)
        self.image = MetadataImage(cluster_id="c")
        self.tokens = TokenStore(lambda: self.image.carried, secret_key=secret_key, clock=self.clock)
        self.commit(*(token.record for token in tokens))

    def commit(self, *records: Message) -> None:
        draft = MetadataDraft(self.image)
        draft.replay(records)
        self.image = draft.finish(offset=self.image.offset + len(records), epoch=1)


def test_the_hmac_is_that_of_kafka() -> None:
    # RFC 4231, test case 2: HMAC-SHA-512 with the key "Jefe".
    assert token_hmac("Jefe", "what do ya want for nothing?").hex() == (
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    )
    assert token_hmac("schlüssel", "id") == hmac.new("schlüssel".encode(), b"id", hashlib.sha512).digest()


def test_a_token_is_read_from_its_record() -> None:
    world = World(token())
    assert list(world.tokens) == [token()]
    assert world.tokens.get("id") == world.tokens.find_by_id("id") == token()
    assert world.image.carried["token", "id"] == DelegationTokenRecord(
        "User:alice", "User:bob", ["User:carol"], NOW, NOW + 2000, NOW + 1000, "id"
    )


def test_an_expired_token_is_kept_but_is_not_valid() -> None:
    world = World(token())
    world.clock.advance(999)
    assert world.tokens.find_by_id("id") is not None
    world.clock.advance(1)
    assert world.tokens.find_by_id("id") is None
    assert world.tokens.get("id") == token()


def test_a_token_is_found_by_its_hmac_until_it_is_removed() -> None:
    world = World(token("a"), token("b"))
    secret = token_hmac("secret", "a")
    assert world.tokens.find_by_hmac(secret) == token("a")
    world.commit(token("c").record)
    assert world.tokens.find_by_hmac(token_hmac("secret", "c")) == token("c")
    world.commit(token("a", expires_ms=NOW + 5).record)
    assert world.tokens.find_by_hmac(secret) == token("a", expires_ms=NOW + 5)
    world.commit(RemoveDelegationTokenRecord("a"))
    assert world.tokens.find_by_hmac(secret) is None
    assert world.tokens.find_by_hmac(b"") is None
    assert world.tokens.find_by_hmac(token_hmac("another secret", "b")) is None


def test_without_a_secret_key_there_are_no_tokens() -> None:
    for secret_key in (None, ""):
        world = World(token(), secret_key=secret_key)
        assert not world.tokens.is_enabled
        assert list(world.tokens) == []
        assert world.tokens.get("id") is None
        assert world.tokens.find("id", "SCRAM-SHA-256") is None
        assert world.tokens.find_by_hmac(token_hmac("", "id")) is None


def test_a_record_that_cannot_be_read_is_no_token() -> None:
    world = World()
    world.commit(DelegationTokenRecord("alice", "User:bob", [], NOW, NOW, NOW, "id"))
    assert world.tokens.get("id") is None
    assert list(world.tokens) == []


def test_a_token_shows_no_hmac() -> None:
    world = World(token())
    secret = token_hmac("secret", "id")
    assert secret.hex() not in f"{token()!r} {world.tokens!r}"
    assert "secret" not in f"{world.tokens!r}"


# -- logins --


def log_in(world: World, secret: bytes, *, token_id: str = "id", mechanism: str = "SCRAM-SHA-512") -> Outcome:
    """What the server says to a client that has the HMAC of a token."""
    services = ScramServices(
        users=ScramUsers({}), tokens=world.tokens, clock=world.clock, fake_salt_key=b"key of tests"
    )
    server = ScramServer(BY_NAME[mechanism], services)
    hash_name = BY_NAME[mechanism].hash_name
    client = Scram(hash_name, token_id, token_password(secret), extensions=",tokenauth=true")
    challenge = server.step(client.first())
    assert isinstance(challenge, Challenge)
    return server.step(client.proof(challenge.data))


def test_whoever_has_the_hmac_logs_in_as_the_owner_with_either_mechanism() -> None:
    world = World(token())
    for mechanism in BY_NAME:
        outcome = log_in(world, token_hmac("secret", "id"), mechanism=mechanism)
        assert isinstance(outcome, Success)
        assert outcome.principal == ALICE
        assert outcome.principal.is_by_token
        assert outcome.expires_at_ms == NOW + 1000


def test_an_expired_a_removed_and_a_forged_token_are_refused() -> None:
    world = World(token())
    assert isinstance(log_in(world, token_hmac("another secret", "id")), Failure)
    assert isinstance(log_in(world, token_hmac("secret", "other"), token_id="other"), Failure)
    world.clock.advance(1000)
    assert isinstance(log_in(world, token_hmac("secret", "id")), Failure)
    world.commit(token(expires_ms=NOW + 2000).record)
    assert isinstance(log_in(world, token_hmac("secret", "id")), Success)
    world.commit(RemoveDelegationTokenRecord("id"))
    assert isinstance(log_in(world, token_hmac("secret", "id")), Failure)


def test_a_token_of_another_controller_whose_owner_is_no_user_is_refused() -> None:
    world = World(token(owner=Principal("Group", "alice")))
    assert isinstance(log_in(world, token_hmac("secret", "id")), Failure)


def test_the_credential_of_a_token_is_derived_once() -> None:
    world = World(token())
    first = world.tokens.find("id", "SCRAM-SHA-256")
    assert first is not None
    world.commit(token(expires_ms=NOW + 1500).record)
    renewed = world.tokens.find("id", "SCRAM-SHA-256")
    assert renewed is not None
    assert renewed.credential is first.credential
    assert renewed.expires_at_ms == NOW + 1500
    assert world.tokens.find("id", "PLAIN") is None
