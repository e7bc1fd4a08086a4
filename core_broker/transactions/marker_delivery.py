"""Takes the markers of transactions to the leaders of their partitions, on this broker and on others."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.cluster.led_partition import LedPartition
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages import write_txn_markers as wire
from core_broker.protocol.records import end_transaction_marker
from core_broker.transactions.broker_calls import BrokerCalls, Question, QuestionBatches
from core_broker.transactions.markers import MarkerRequest

PURPOSE: Final = "markers"
_APPEND_TIMEOUT_MS: Final = 5000

_RemoteMarker = tuple[str, int, MarkerRequest]
"""Topic, partition and marker."""


class CompleteOffsets(Protocol):
    """`GroupCoordinator.complete_transaction`."""

    def __call__(self, partition_index: int, producer_id: int, *, commit: bool, log_offset: int) -> None:
        """A marker was appended to `__consumer_offsets`; the pending offsets of its producer depend on it."""


class LocalMarkers:
    """Writes markers to the partitions that this broker leads."""

    def __init__(self, partitions: Partitions, complete_offsets: CompleteOffsets) -> None:
        self._partitions = partitions
        self._complete_offsets = complete_offsets

    async def write(self, topic: str, index: int, marker: MarkerRequest) -> ErrorCode:
        """Write a marker; returns once it is committed, or with the partition's error."""
        try:
            partition = self._partitions.get(topic, index)
            await self._append(partition, marker)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    async def _append(self, partition: Partition, marker: MarkerRequest) -> None:
        led = LedPartition(partition, partition.leader_epoch)
        batch = end_transaction_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=partition.clock.now_ms(),
        )
        try:
            appended = led.append(batch, transaction_version=marker.transaction_version)
        except BrokerError as error:
            if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                # The coordinator takes it for a marker that was written already, so that one must be committed first.
                await partition.wait_committed(partition.log.end_offset - 1, timeout_ms=_APPEND_TIMEOUT_MS)
            raise
        if partition.topic == OFFSETS_TOPIC:
            self._complete_offsets(
                partition.index, marker.producer_id, commit=marker.commit, log_offset=appended.first_offset
            )
        await led.wait_committed(appended, timeout_ms=_APPEND_TIMEOUT_MS)


class MarkerDelivery:
    """Writes a marker on the broker that leads the partition at that moment; `MarkerWriter` tries again if it moves."""

    def __init__(
        self, local: LocalMarkers, calls: BrokerCalls, *, local_id: int, image: Callable[[], MetadataImage]
    ) -> None:
        self._local = local
        self._calls = calls
        self._local_id = local_id
        self._image = image
        self._remote = QuestionBatches(self._send)

    async def write(self, topic: str, index: int, marker: MarkerRequest) -> ErrorCode:
        """Write a marker; UNKNOWN_TOPIC_OR_PARTITION only if the topic was deleted."""
        leader_id = self._leader_of(topic, index)
        if leader_id is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if leader_id == self._local_id:
            code = await self._local.write(topic, index, marker)
        elif self._image().is_live(leader_id):
            code = await self._remote.ask(leader_id, (topic, index, marker))
        else:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._leader_of(topic, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # the leader has not heard of the topic yet
        return code

    def _leader_of(self, topic: str, index: int) -> int | None:
        found = self._image().topics.get(topic)
        partition = None if found is None else found.partitions.get(index)
        return None if partition is None else partition.leader_id

    async def _send(self, broker_id: int, questions: list[Question[_RemoteMarker]]) -> None:
        request = wire.WriteTxnMarkersRequest(list(_grouped(question.content for question in questions)))
        response = await self._calls.call(broker_id, request, wire.WriteTxnMarkersResponse, purpose=PURPOSE)
        codes = {
            (marker.producer_id, topic.name, result.partition_index): result.error_code
            for marker in response.markers
            for topic in marker.topics
            for result in topic.partitions
        }
        for question in questions:
            topic, index, marker = question.content
            code = codes.get((marker.producer_id, topic, index), ErrorCode.UNKNOWN_SERVER_ERROR)
            question.answer = ErrorCode(code)


def _grouped(markers: Iterable[_RemoteMarker]) -> Iterable[wire.WritableTxnMarker]:
    """One entry for each marker, with all its partitions on that broker."""
    by_marker: defaultdict[MarkerRequest, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, index, marker in markers:
        by_marker[marker][topic].append(index)
    for marker, topics in by_marker.items():
        yield wire.WritableTxnMarker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            transaction_result=marker.commit,
            topics=[wire.WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
