"""A transactional producer that sends its requests one by one, in either version of transactions."""

from contextlib import ExitStack
from typing import Final, Self

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
from tests.support.patience import eventually
from tests.support.routing import GROUP, TRANSACTION, coordinator_of, leader_of
from tests.support.wire import WireConnection

_RETRY: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
_TIMEOUT_MS: Final = 300_000


class Transactor:
    """A transactional producer, request by request; its group, and by default its topic, have its transactional id."""

    def __init__(self, bootstrap: str, name: str, *, topic: str | None = None, partitions: int = 1) -> None:
        self.name = name
        self.topic = topic or name
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[int, int] = {}
        self._bootstrap = bootstrap
        self._partitions = range(partitions)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.leaders = [self._connect(leader_of(self._bootstrap, self.topic, number)) for number in self._partitions]
        return self.use_coordinators(
            coordinator_of(self._bootstrap, self.name, TRANSACTION), coordinator_of(self._bootstrap, self.name, GROUP)
        )

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    def _connect(self, address: str) -> WireConnection:
        return self._open.enter_context(WireConnection(address))

    def use_coordinators(self, transactions: str, groups: str) -> Self:
        """Connect to these coordinators from now on."""
        self.coordinator, self.group_coordinator = self._connect(transactions), self._connect(groups)
        return self

    def init(self) -> None:
        """Take an id, and bump its epoch when there is one."""
        answer = eventually(
            lambda: self.coordinator.request(
                InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=_TIMEOUT_MS),
                5,
                InitProducerIdResponse,
            ),
            lambda answer: answer.error_code not in _RETRY,
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
            name=self.topic, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))]
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
            lambda answer: answer.error_code not in _RETRY,
        )

    def end_and_go_on(self, *, commit: bool) -> None:
        """End the transaction and take over the epoch that the answer brings."""
        answer = self.end(commit=commit)
        assert answer.error_code == 0
        self.adopt(answer.producer_id, answer.producer_epoch)

    def add_partition(self, partition: int = 0) -> int:
        """Add a partition before it is written to, as clients must that do not know version 2; the error code."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[partition])],
        )
        answer = self.coordinator.request(request, 0, AddPartitionsToTxnResponse)
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    def commit_offset(self, offset: int) -> int:
        """Make an offset of the group part of the transaction; the error code."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        return eventually(
            lambda: (
                self.group_coordinator.request(request, 5, TxnOffsetCommitResponse).topics[0].partitions[0].error_code
            ),
            lambda code: code not in _RETRY,
        )

    def fetch_offset(self) -> tuple[int, int]:
        """The error code and the offset of the group, which must not be pending."""
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.name, topics=topics)], require_stable=True
        )
        (group,) = self.group_coordinator.request(request, 9, OffsetFetchResponse).groups
        if group.error_code:
            return group.error_code, -1
        (partition,) = group.topics[0].partitions
        return partition.error_code, partition.committed_offset
