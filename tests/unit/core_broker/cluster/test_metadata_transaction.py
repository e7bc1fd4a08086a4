from core_broker.cluster.metadata_transaction import MetadataTransaction
from core_broker.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)

FIRST, SECOND = FeatureLevelRecord("metadata.version", 30), FeatureLevelRecord("group.version", 1)


def test_records_of_a_transaction_count_once_it_ends() -> None:
    transaction = MetadataTransaction()
    assert transaction.take([NoOpRecord(), BeginTransactionRecord("Bootstrap records"), FIRST]) == [NoOpRecord()]
    assert transaction.is_open
    assert transaction.take([SECOND, EndTransactionRecord(), NoOpRecord()]) == [FIRST, SECOND, NoOpRecord()]
    assert not transaction.is_open


def test_records_of_an_aborted_transaction_never_count() -> None:
    transaction = MetadataTransaction()
    assert transaction.take([BeginTransactionRecord(), FIRST]) == []
    assert transaction.take([AbortTransactionRecord(), SECOND]) == [SECOND]
    assert not transaction.is_open
