import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import Record
from core_broker.transactions.records import read_record, record_of, tombstone_of
from core_broker.transactions.transaction import Transaction, TransactionState, restore

ONGOING = Transaction(
    transactional_id="tx",
    producer_id=7,
    producer_epoch=3,
    previous_producer_id=7,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({("orders", 0), ("orders", 2), ("payments", 1)}),
    start_ms=100,
    updated_ms=200,
    client_version=2,
)

stored_states = st.sampled_from([state for state in TransactionState if state < TransactionState.DEAD])
transactions = st.builds(
    Transaction,
    transactional_id=st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=stored_states,
    partitions=st.frozensets(st.tuples(st.text("abc", min_size=1), st.integers(0, 100)), max_size=8),
    start_ms=st.integers(-1, 2**62),
    updated_ms=st.integers(0, 2**62),
    client_version=st.sampled_from([0, 2]),
)


@given(transactions.filter(lambda found: found.state is not TransactionState.EMPTY or not found.partitions))
def test_transaction_reads_back_as_written(transaction: Transaction) -> None:
    record = record_of(transaction, transaction_version=2)
    assert read_record(record) == (transaction.transactional_id, restore(transaction))


def test_ongoing_transaction_is_stored_byte_for_byte_as_kafka_does() -> None:
    record = record_of(ONGOING, transaction_version=2)
    assert record.key == b"\x00\x00" + b"\x00\x02tx"
    assert record.value == (
        b"\x00\x01"  # version
        + (7).to_bytes(8, "big")
        + (3).to_bytes(2, "big")
        + (60_000).to_bytes(4, "big")
        + b"\x01"  # Ongoing
        + b"\x03"  # two topics
        + b"\x07orders\x03" + (0).to_bytes(4, "big") + (2).to_bytes(4, "big") + b"\x00"
        + b"\x09payments\x02" + (1).to_bytes(4, "big") + b"\x00"
        + (200).to_bytes(8, "big")
        + (100).to_bytes(8, "big")
        + b"\x02"  # two tagged fields: previous producer id, client version
        + b"\x00\x08" + (7).to_bytes(8, "big")
        + b"\x02\x02" + (2).to_bytes(2, "big")
    )  # fmt: skip
    assert record.timestamp == 200


def test_before_transaction_version_1_the_older_schema_is_written() -> None:
    record = record_of(ONGOING, transaction_version=0)
    assert record.value is not None
    assert record.value[:2] == b"\x00\x00"
    found = read_record(record)
    assert found is not None
    assert found[1] is not None
    assert found[1].partitions == ONGOING.partitions


def test_empty_state_stores_null_for_its_partitions() -> None:
    empty = Transaction(transactional_id="tx", producer_id=7, producer_epoch=0, timeout_ms=1, updated_ms=5)
    value = record_of(empty, transaction_version=0).value
    assert value is not None
    assert value[2 + 8 + 2 + 4 + 1 :][:4] == b"\xff\xff\xff\xff"


def test_tombstone_says_that_the_id_is_forgotten() -> None:
    assert read_record(tombstone_of("tx", timestamp_ms=9)) == ("tx", None)


def test_kind_of_key_added_later_is_skipped() -> None:
    assert read_record(Record(key=b"\x00\x05whatever", value=b"")) is None


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x09abc", b"\x00\x01\x00", b"\x00\x00" + bytes(14) + b"\x63"])
def test_value_that_is_none_of_ours_is_refused(value: bytes) -> None:
    key = tombstone_of("tx", timestamp_ms=0).key
    with pytest.raises(DecodeError):
        read_record(Record(key=key, value=value))


def test_unknown_state_is_refused() -> None:
    record = record_of(ONGOING, transaction_version=2)
    assert record.value is not None
    damaged = record.value[:16] + b"\x63" + record.value[17:]
    with pytest.raises(DecodeError, match="state 99"):
        read_record(Record(key=record.key, value=damaged))
