"""A few tests of the other files against three brokers; `make test-cluster` runs all of them that way."""

from collections.abc import Iterator

import pytest

from tests.conformance.test_acks import (
    test_a_duplicate_batch_is_answered_with_its_original_offset,
    test_idempotent_producer_writes_each_record_once,
)
from tests.conformance.test_classic_groups import test_a_group_reads_everything_once_and_goes_on_where_it_stopped
from tests.conformance.test_configs import test_configs_are_altered_one_by_one
from tests.conformance.test_exactly_once import test_aiokafka_consume_transform_produce
from tests.conformance.test_kip848_groups import test_records_are_read_once_and_offsets_are_kept
from tests.conformance.test_list_offsets import filled, test_deleted_records_are_gone_for_every_reader
from tests.conformance.test_produce_consume import test_keys_decide_the_partition
from tests.conformance.test_topics import (
    test_a_topic_created_again_starts_empty_with_a_new_id,
    test_confluent_creates_grows_and_deletes,
    test_description_tells_leader_replicas_and_isr,
    test_the_cluster_describes_itself,
)
from tests.conformance.test_transactions import test_a_transaction_spans_topics
from tests.conformance.test_transactions_v2 import (
    test_offsets_join_a_transaction_by_being_committed_in_it,
    test_partitions_join_a_transaction_by_being_written_to,
    transactor,
)
from tests.support.broker import BrokerProcess
from tests.support.cluster import ClusterProcess

__all__ = [
    "filled",
    "test_a_duplicate_batch_is_answered_with_its_original_offset",
    "test_a_group_reads_everything_once_and_goes_on_where_it_stopped",
    "test_a_topic_created_again_starts_empty_with_a_new_id",
    "test_a_transaction_spans_topics",
    "test_aiokafka_consume_transform_produce",
    "test_configs_are_altered_one_by_one",
    "test_confluent_creates_grows_and_deletes",
    "test_deleted_records_are_gone_for_every_reader",
    "test_description_tells_leader_replicas_and_isr",
    "test_idempotent_producer_writes_each_record_once",
    "test_keys_decide_the_partition",
    "test_offsets_join_a_transaction_by_being_committed_in_it",
    "test_partitions_join_a_transaction_by_being_written_to",
    "test_records_are_read_once_and_offsets_are_kept",
    "test_the_cluster_describes_itself",
    "transactor",
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Three brokers instead of the one that the tests usually get."""
    with ClusterProcess(tmp_path_factory.mktemp("three-brokers"), size=3) as process:
        yield process
