"""ACLs, credentials, tokens and quotas are neither lost nor kept longer than they count."""

import pytest

from core_broker.cluster.carried_records import carried_removals
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_records import decode_record, encode_record, records_of
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored

USER = [stored.EntityData("user", "alice"), stored.EntityData("client-id", None)]
CARRIED = [
    (
        stored.AccessControlEntryRecord(b"a" * 16, 2, "t", 3, "User:alice", "*", 3, 3),
        stored.RemoveAccessControlEntryRecord(b"a" * 16),
    ),
    (
        stored.UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096),
        stored.RemoveUserScramCredentialRecord("alice", 1),
    ),
    (
        stored.DelegationTokenRecord("User:alice", "User:bob", ["User:carol"], 1, 2, 3, "id"),
        stored.RemoveDelegationTokenRecord("id"),
    ),
    (
        stored.ClientQuotaRecord(USER, "producer_byte_rate", 1024.0),
        stored.ClientQuotaRecord(USER[::-1], "producer_byte_rate", 0.0, remove=True),
    ),
]


def replay(image: MetadataImage, *records: Message) -> MetadataImage:
    draft = MetadataDraft(image)
    draft.replay(records)
    return draft.finish(offset=image.offset + len(records), epoch=1)


@pytest.mark.parametrize("record,removal", CARRIED)
def test_a_record_that_only_kafka_uses_stays_until_it_is_removed(record: Message, removal: Message) -> None:
    empty = MetadataImage(cluster_id="c")
    image = replay(empty, record)
    assert [decode_record(encode_record(kept, 30)) for kept in records_of(image)] == [record]
    assert list(records_of(replay(image, record))) == [record]
    assert list(records_of(replay(image, removal))) == []
    assert empty.carried == {}


@pytest.mark.parametrize("record", [record for record, _ in CARRIED])
def test_removals_lead_from_one_state_to_another(record: Message) -> None:
    """For those who follow records, when a snapshot lacks what they know."""
    empty = MetadataImage(cluster_id="c")
    everything = replay(empty, *(known for known, _ in CARRIED))
    left = replay(empty, *(known for known, _ in CARRIED if known is not record))
    (removed,) = carried_removals(everything.carried, left.carried)
    assert replay(everything, removed).carried == left.carried
    assert list(carried_removals(left.carried, everything.carried)) == []
