from typing import Final

import msgspec
import pytest

from core_broker.cluster.metadata_records import UnsupportedRecordError, decode_record, encode_record
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.control import EndTxnMarker
from core_broker.protocol.stored.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

DIRECTORIES: Final = [b"d" * 16, b"e" * 16]
FULL: Final[list[tuple[Message, dict[int, dict[str, object]]]]] = [
    (
        RegisterBrokerRecord(
            broker_id=4,
            is_migrating_zk_broker=False,
            incarnation_id=b"i" * 16,
            broker_epoch=17,
            end_points=[BrokerEndpoint("PLAINTEXT", "h", 9092, 0)],
            features=[BrokerFeature("metadata.version", 7, 25)],
            rack="r",
            fenced=False,
            in_controlled_shutdown=True,
            log_dirs=DIRECTORIES,
            cordoned_log_dirs=DIRECTORIES[:1],
        ),
        {30: {"cordoned_log_dirs": None}, 17: {"log_dirs": []}},
    ),
    (
        BrokerRegistrationChangeRecord(
            broker_id=4,
            broker_epoch=17,
            fenced=1,
            in_controlled_shutdown=1,
            log_dirs=DIRECTORIES,
            cordoned_log_dirs=DIRECTORIES[:1],
        ),
        {30: {"cordoned_log_dirs": None}, 17: {"log_dirs": []}},
    ),
    (
        PartitionRecord(
            partition_id=3,
            topic_id=b"t" * 16,
            replicas=[1, 4],
            isr=[1],
            removing_replicas=[1],
            adding_replicas=[4],
            leader=1,
            leader_recovery_state=1,
            leader_epoch=5,
            partition_epoch=6,
            directories=DIRECTORIES,
            eligible_leader_replicas=[4],
            last_known_elr=[1],
        ),
        {23: {"eligible_leader_replicas": None, "last_known_elr": None}, 17: {"directories": []}},
    ),
    (
        PartitionChangeRecord(
            partition_id=3,
            topic_id=b"t" * 16,
            isr=[1],
            leader=1,
            replicas=[1, 4],
            removing_replicas=[1],
            adding_replicas=[4],
            leader_recovery_state=1,
            directories=DIRECTORIES,
            eligible_leader_replicas=[],
            last_known_elr=[1],
        ),
        {23: {"eligible_leader_replicas": None, "last_known_elr": None}, 17: {"directories": None}},
    ),
]
"""Records with every field set, and the fields that are missing below a level."""


def test_a_record_is_framed_with_version_kind_and_record_version() -> None:
    assert encode_record(TopicRecord("t", b"i" * 16), 30) == b"\x01\x02\x00" + b"\x02t" + b"i" * 16 + b"\x00"


def test_a_record_is_read_back_as_it_was() -> None:
    record = FeatureLevelRecord("metadata.version", 30)
    assert decode_record(encode_record(record, 30)) == record


@pytest.mark.parametrize("level", range(7, 31))
@pytest.mark.parametrize("record,missing_below", FULL, ids=lambda value: type(value).__name__)
def test_a_record_has_the_fields_that_every_member_knows_at_the_level(
    record: Message, missing_below: dict[int, dict[str, object]], level: int
) -> None:
    expected = record
    for since, missing in missing_below.items():
        if level < since:
            expected = msgspec.structs.replace(expected, **missing)
    assert decode_record(encode_record(record, level)) == expected


@pytest.mark.parametrize(
    "value, message", [(b"\x01\x7f\x00", "type 127"), (b"\x01\x14\x09\x00", "NoOpRecord has version 9")]
)
def test_a_record_of_newer_software_is_not_skipped(value: bytes, message: str) -> None:
    with pytest.raises(UnsupportedRecordError, match=message):
        decode_record(value)


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x02\x14\x00\x00", b"\x01\x14\x09\x00", b"\x01\x02\x00\x40"])
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_record(value)


def test_a_message_that_is_no_metadata_record_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        encode_record(EndTxnMarker(1), 30)
    assert encode_record(NoOpRecord(), 30) == b"\x01\x14\x00\x00"
