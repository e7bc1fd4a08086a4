from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from core_broker.security.credentials import ScramCredentials
from core_broker.security.sasl.scram import ScramCredential


class World:
    """Credentials in the newest image of a node."""

    def __init__(self) -> None:
        self.image = MetadataImage(cluster_id="c")
        self.credentials = ScramCredentials(lambda: self.image.carried)

    def commit(self, *records: Message) -> None:
        draft = MetadataDraft(self.image)
        draft.replay(records)
        self.image = draft.finish(offset=self.image.offset + len(records), epoch=1)


ALICE = UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096)
ALICE_512 = UserScramCredentialRecord("alice", 2, b"salt", b"stored", b"server", 8192)
BOB = UserScramCredentialRecord("bob", 2, b"salt", b"stored", b"server", 4096)


def test_a_credential_is_found_by_user_and_mechanism() -> None:
    world = World()
    assert world.credentials.find("alice", "SCRAM-SHA-256") is None
    world.commit(ALICE)
    assert world.credentials.find("alice", "SCRAM-SHA-256") == ScramCredential(b"salt", b"stored", b"server", 4096)
    assert world.credentials.find("alice", "SCRAM-SHA-512") is None
    assert world.credentials.find("bob", "SCRAM-SHA-256") is None
    assert world.credentials.find("alice", "PLAIN") is None


def test_a_change_counts_as_soon_as_it_is_committed() -> None:
    world = World()
    world.commit(ALICE)
    world.commit(UserScramCredentialRecord("alice", 1, b"other", b"stored", b"server", 4096))
    found = world.credentials.find("alice", "SCRAM-SHA-256")
    assert found is not None
    assert found.salt == b"other"
    world.commit(RemoveUserScramCredentialRecord("alice", 1))
    assert world.credentials.find("alice", "SCRAM-SHA-256") is None


def test_what_a_snapshot_lacks_is_gone() -> None:
    world = World()
    world.commit(ALICE)
    world.image = MetadataImage(cluster_id="c")  # as a follower that installs the snapshot of its leader
    assert world.credentials.find("alice", "SCRAM-SHA-256") is None


def test_users_are_listed_once_with_the_iterations_of_each_mechanism() -> None:
    world = World()
    world.commit(ALICE, BOB, ALICE_512)
    assert list(world.credentials.names()) == ["alice", "bob"]
    assert world.credentials.iterations_of("alice") == {1: 4096, 2: 8192}
    assert world.credentials.iterations_of("carol") == {}


def test_a_credential_does_not_show_its_keys() -> None:
    world = World()
    world.commit(ALICE)
    shown = f"{world.credentials.find('alice', 'SCRAM-SHA-256')!r} {world.image!r}"
    assert "alice" in shown
    assert "stored" not in shown.replace("stored.metadata", "")
    assert "b'server'" not in shown
