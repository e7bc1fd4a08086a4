"""Transactions of version 2 (KIP-890), as the newest Java clients speak them, and what protects the older ones."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Self

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from core_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from core_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import SystemClock
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.routing import GROUP, TRANSACTION, coordinator_of, leader_of
from tests.support.wire import WireConnection

PARTITIONS = 3
FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
RETRY = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Transactor:
    """A transactional producer, request by request; topic, transactional id and group have the same name."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[int, int] = {}
        self._bootstrap = bootstrap
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.coordinator = self._connect(coordinator_of(self._bootstrap, self.name, TRANSACTION))
        self.group_coordinator = self._connect(coordinator_of(self._bootstrap, self.name, GROUP))
        self.leaders = [self._connect(leader_of(self._bootstrap, self.name, number)) for number in range(PARTITIONS)]
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    def _connect(self, address: str) -> WireConnection:
        return self._open.enter_context(WireConnection(address))

    def init(self) -> None:
        """Take an id, and bump its epoch when there is one."""
        answer = eventually(
            lambda: self.coordinator.request(
                InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000),
                5,
                InitProducerIdResponse,
            ),
            lambda answer: answer.error_code not in RETRY,
        )
        assert answer.error_code == 0
        self.adopt(answer.producer_id, answer.producer_epoch)

    def adopt(self, producer_id: int, epoch: int) -> None:
        """Go on under this id and epoch; sequences begin anew."""
        self.producer_id, self.epoch = producer_id, epoch
        self.sequences = {}

    def produce(self, value: bytes, *, partition: int = 0, version: int = 12, epoch: int | None = None) -> int:
        """Send one record; returns the error code."""
        batch = build_batch(
            [Record(-1, SystemClock().now_ms(), None, value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=self.sequences.get(partition, 0),
            is_transactional=True,
        )
        data = TopicProduceData(
            name=self.name, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))]
        )
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=5_000, topic_data=[data])
        answer = self.leaders[partition].request(request, version, ProduceResponse)
        code = answer.responses[0].partition_responses[0].error_code
        if code == 0:
            self.sequences[partition] = self.sequences.get(partition, 0) + 1
        return code

    def produce_soon(self, value: bytes, *, partition: int = 0) -> None:
        """Send one record as often as the broker asks for a retry."""
        eventually(lambda: self.produce(value, partition=partition), lambda code: code == 0)

    def end(self, *, commit: bool, version: int = 5, epoch: int | None = None) -> EndTxnResponse:
        """End the transaction."""
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commit,
        )
        return eventually(
            lambda: self.coordinator.request(request, version, EndTxnResponse),
            lambda answer: answer.error_code not in RETRY,
        )

    def end_and_go_on(self, *, commit: bool) -> None:
        """End the transaction and take over the epoch that the answer brings."""
        answer = self.end(commit=commit)
        assert answer.error_code == 0
        self.adopt(answer.producer_id, answer.producer_epoch)


@pytest.fixture
def transactor(broker: BrokerProcess, name: str) -> Iterator[Transactor]:
    create_topic(broker, name, partitions=PARTITIONS)
    with Transactor(broker.bootstrap, name) as found:
        found.init()
        yield found


def committed(broker: BrokerProcess, topic: str) -> list[bytes]:
    return sorted(record.value or b"" for record in read_to_end(broker.bootstrap, topic, isolation="read_committed"))


def test_partitions_join_a_transaction_by_being_written_to(broker: BrokerProcess, transactor: Transactor) -> None:
    for partition in range(PARTITIONS):
        transactor.produce_soon(b"%d" % partition, partition=partition)
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"0", b"1", b"2"])


def test_every_transaction_has_an_epoch_of_its_own(broker: BrokerProcess, transactor: Transactor) -> None:
    epochs = []
    for number in range(4):
        transactor.produce_soon(b"%d" % number)
        epochs.append(transactor.epoch)
        transactor.end_and_go_on(commit=number % 2 == 0)
    assert epochs == [epochs[0] + n for n in range(4)]
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"0", b"2"])


def test_a_late_record_of_an_ended_transaction_is_refused(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"in time")
    old = transactor.epoch
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"in time"])
    transactor.sequences = {0: 1}
    assert transactor.produce(b"late", epoch=old) in FENCED
    transactor.sequences = {}
    transactor.produce_soon(b"next")
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"in time", b"next"])


def test_a_late_end_cannot_end_the_next_transaction(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"one")
    old = transactor.epoch
    transactor.end_and_go_on(commit=True)
    transactor.produce_soon(b"two")
    assert transactor.end(commit=False, epoch=old).error_code in FENCED
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"one", b"two"])


def test_an_end_that_is_sent_twice_is_answered_twice(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"once")
    first = transactor.end(commit=True)
    again = transactor.end(commit=True)
    assert (first.error_code, again.error_code) == (0, 0)
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, first.producer_epoch)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"once"])


def test_a_new_producer_fences_the_old_one(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"zombie")
    with Transactor(broker.bootstrap, transactor.name) as successor:
        successor.init()
        assert successor.producer_id == transactor.producer_id
        assert successor.epoch > transactor.epoch
        assert transactor.produce(b"zombie again") in FENCED
        assert transactor.end(commit=True).error_code in FENCED
        successor.produce_soon(b"successor")
        successor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"successor"])


def test_offsets_join_a_transaction_by_being_committed_in_it(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"record")
    assert commit_offset(transactor, 42) == 0
    assert fetch_offset(transactor) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    transactor.end_and_go_on(commit=True)
    eventually(lambda: fetch_offset(transactor), lambda found: found == (0, 42))
    assert commit_offset(transactor, 99) == 0
    transactor.end_and_go_on(commit=False)
    eventually(lambda: fetch_offset(transactor), lambda found: found == (0, 42))


def commit_offset(transactor: Transactor, offset: int) -> int:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=transactor.name,
        group_id=transactor.name,
        producer_id=transactor.producer_id,
        producer_epoch=transactor.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=transactor.name, partitions=[partition])],
    )
    return eventually(
        lambda: (
            transactor.group_coordinator.request(request, 5, TxnOffsetCommitResponse).topics[0].partitions[0].error_code
        ),
        lambda code: code not in RETRY,
    )


def fetch_offset(transactor: Transactor) -> tuple[int, int]:
    topics = [OffsetFetchRequestTopics(name=transactor.name, partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=transactor.name, topics=topics)], require_stable=True
    )
    (group,) = transactor.group_coordinator.request(request, 9, OffsetFetchResponse).groups
    (partition,) = group.topics[0].partitions
    return partition.error_code, partition.committed_offset


def test_an_older_client_must_add_a_partition_before_it_writes(broker: BrokerProcess, transactor: Transactor) -> None:
    code = eventually(
        lambda: transactor.produce(b"unannounced", version=9), lambda code: code != ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert code == ErrorCode.INVALID_TXN_STATE
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactor.name,
        v3_and_below_producer_id=transactor.producer_id,
        v3_and_below_producer_epoch=transactor.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=transactor.name, partitions=[0])],
    )
    answer = transactor.coordinator.request(request, 0, AddPartitionsToTxnResponse)
    codes = [p.partition_error_code for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition]
    assert codes == [0]
    assert transactor.produce(b"announced", version=9) == 0
    assert transactor.end(commit=True, version=1).error_code == 0
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"announced"])


def test_ending_what_was_never_begun_is_refused_to_older_clients(transactor: Transactor) -> None:
    assert transactor.end(commit=True, version=1).error_code == ErrorCode.INVALID_TXN_STATE


def test_an_empty_transaction_can_be_aborted(transactor: Transactor) -> None:
    assert transactor.end(commit=False).error_code == 0
