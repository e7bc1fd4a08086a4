"""Asks the coordinator of a transaction, here or on another broker, whether a partition belongs to it (KIP-890)."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from core_broker.cluster.coordinators import TRANSACTIONS_TOPIC
from core_broker.cluster.metadata import NO_LEADER, MetadataImage
from core_broker.errors import ErrorCode
from core_broker.protocol.messages import add_partitions_to_txn as wire
from core_broker.transactions.broker_calls import BrokerCalls, Question, QuestionBatches
from core_broker.transactions.coordinator import TransactionCoordinator

PURPOSE: Final = "txn-verify"


class _Verification(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topic: str
    partition: int


class TransactionVerifier:
    """Verifies the partitions of transactions for the leaders of these partitions."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        calls: BrokerCalls,
        *,
        local_id: int,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._coordinator = coordinator
        self._calls = calls
        self._local_id = local_id
        self._image = image
        self._remote = QuestionBatches(self._send)

    async def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        add: bool,
        knows_abortable: bool = False,
    ) -> ErrorCode:
        """Whether a producer may write to a partition within its transaction.

        With `add` (Produce v12+, TxnOffsetCommit v5+) the partition is added, otherwise it must have been added before.
        `knows_abortable` (Produce v11+, TxnOffsetCommit v4+): the client understands TRANSACTION_ABORTABLE.
        NETWORK_EXCEPTION if the coordinator's broker cannot be reached.
        """
        broker_id = self._coordinator_of(transactional_id)
        if broker_id == self._local_id:
            return await self._coordinator.verify_or_add_partition(
                transactional_id,
                producer_id,
                producer_epoch,
                topic,
                partition,
                add=add,
                knows_abortable=knows_abortable,
            )
        if not self._image().is_live(broker_id):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        question = _Verification(transactional_id, producer_id, producer_epoch, not add, topic, partition)
        code = await self._remote.ask(broker_id, question)
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH  # producers of all versions understand it in a Produce response
        if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code

    def _coordinator_of(self, transactional_id: str) -> int:
        topic = self._image().topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return NO_LEADER
        return topic.partitions[self._coordinator.partition_of(transactional_id)].leader_id

    async def _send(self, broker_id: int, questions: list[Question[_Verification]]) -> None:
        """Send as few requests as possible: each has an id only once, because the response names nothing else."""
        left = questions
        while left:
            now: dict[str, tuple[int, int, bool]] = {}
            this = [q for q in left if now.setdefault(q.content.transactional_id, q.content[1:4]) == q.content[1:4]]
            left = [question for question in left if question not in this]
            await self._send_one(broker_id, this)

    async def _send_one(self, broker_id: int, questions: list[Question[_Verification]]) -> None:
        request = wire.AddPartitionsToTxnRequest(transactions=list(_grouped(q.content for q in questions)))
        response = await self._calls.call(broker_id, request, wire.AddPartitionsToTxnResponse, purpose=PURPOSE)
        codes = {
            (result.transactional_id, topic.name, partition.partition_index): partition.partition_error_code
            for result in response.results_by_transaction
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for question in questions:
            asked = question.content
            at = (asked.transactional_id, asked.topic, asked.partition)
            question.answer = ErrorCode(response.error_code or codes.get(at, ErrorCode.UNKNOWN_SERVER_ERROR))
            if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                # This broker may not ask, which is no error of the client; as in Kafka it cannot continue.
                question.answer = ErrorCode.INVALID_TXN_STATE


def _grouped(questions: Iterable[_Verification]) -> Iterable[wire.AddPartitionsToTxnTransaction]:
    by_transaction: defaultdict[tuple[str, int, int, bool], defaultdict[str, list[int]]]
    by_transaction = defaultdict(lambda: defaultdict(list))
    for question in questions:
        by_transaction[question[:4]][question.topic].append(question.partition)
    for (transactional_id, producer_id, producer_epoch, verify_only), topics in by_transaction.items():
        yield wire.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=verify_only,
            topics=[wire.AddPartitionsToTxnTopic(name, partitions) for name, partitions in topics.items()],
        )
