"""Transactions as records of `__transaction_state`, in Kafka's format.

The key is the transactional id; a value of null (a tombstone) means that the id was removed. Key and value begin with
the int16 version of their schema.
"""

import struct
from collections import defaultdict
from typing import Final

from core_broker.protocol.fields import decode, encode
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import Record
from core_broker.protocol.stored.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from core_broker.transactions.transaction import TopicPartition, Transaction, TransactionState, restore

KEY_VERSION: Final = 0
_VERSION: Final = struct.Struct(">h")


def record_of(transaction: Transaction, *, transaction_version: int) -> Record:
    """The record that stores a transaction; before transaction version 1 in the older, non-flexible schema."""
    value_version = 1 if transaction_version >= 1 else 0
    value = _VERSION.pack(value_version) + encode(_value_of(transaction), value_version)
    return Record(timestamp=transaction.updated_ms, key=_key_of(transaction.transactional_id), value=bytes(value))


def tombstone_of(transactional_id: str, *, timestamp_ms: int) -> Record:
    """The record that removes a transactional id."""
    return Record(timestamp=timestamp_ms, key=_key_of(transactional_id), value=None)


def read_record(record: Record) -> tuple[str, Transaction | None] | None:
    """The transactional id and its state (None for a tombstone); None for an unknown kind of key."""
    if record.key is None or len(record.key) < _VERSION.size:
        raise DecodeError("the record of __transaction_state has no key")
    if _VERSION.unpack_from(record.key)[0] != KEY_VERSION:
        return None  # KIP-915: kinds of records added later are skipped, so that a downgrade works
    transactional_id = decode(TransactionLogKey, KEY_VERSION, record.key, _VERSION.size).transactional_id
    if record.value is None:
        return transactional_id, None
    return transactional_id, _read_value(transactional_id, record.value)


def _key_of(transactional_id: str) -> bytes:
    return bytes(_VERSION.pack(KEY_VERSION) + encode(TransactionLogKey(transactional_id), KEY_VERSION))


def _value_of(transaction: Transaction) -> TransactionLogValue:
    # Kafka stores null, not an empty list, for a transactional id that has no transaction.
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else _group_by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )


def _group_by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        by_topic[topic].append(partition)
    return [PartitionsSchema(topic, indexes) for topic, indexes in by_topic.items()]


def _read_value(transactional_id: str, data: bytes) -> Transaction:
    if len(data) < _VERSION.size:
        raise DecodeError(f"the state of transactional id {transactional_id} has no version")
    version = _VERSION.unpack_from(data)[0]
    lowest, highest = TransactionLogValue.VERSIONS
    if not lowest <= version <= highest:
        raise DecodeError(f"the state of transactional id {transactional_id} has unknown version {version}")
    value = decode(TransactionLogValue, version, data, _VERSION.size)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise DecodeError(f"{transactional_id} has unknown state {value.transaction_status}") from error
    return restore(
        Transaction(
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            timeout_ms=value.transaction_timeout_ms,
            state=state,
            partitions=frozenset(
                (topic.topic, partition)
                for topic in value.transaction_partitions or ()
                for partition in topic.partition_ids
            ),
            start_ms=value.transaction_start_timestamp_ms,
            updated_ms=value.transaction_last_update_timestamp_ms,
            client_version=value.client_transaction_version,
        )
    )
