"""Changes of in-sync replicas: collects what leaders propose, and has the controller decide (AlterPartition, KIP-497).

One request is on its way at a time, for all partitions that have a proposal then. A proposal is sent until the
controller has applied or rejected it: what became of a lost request is unknown, and until then the leader counts on the
larger set.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.metadata import PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.replicas.leader import IsrProposal
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages import alter_partition as wire
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.05
_PARTITIONS_PER_TURN: Final = 256
"""How many partitions are checked before yielding to the event loop."""


class IsrChanges:
    """Sends the proposals of this broker's leaders to the controller."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        local_id: int,
        broker_epoch: Callable[[], int],
        channel: ControllerChannel,
        settings: BrokerSettings,
    ) -> None:
        self._partitions = partitions
        self._local_id = local_id
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._check_seconds = settings.replica_lag_time_max_ms / 2000
        # Until a lost response is asked for again, the leader counts on replicas that may be gone, and commits nothing.
        self._request_seconds = settings.broker_session_timeout_ms / 1000
        self._waiting: dict[Partition, None] = {}
        self._has_work = asyncio.Event()
        partitions.on_isr_proposal.append(self._add)

    async def run(self) -> None:
        """Check for replicas that have fallen behind, and send proposals, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._check())
            tasks.create_task(self._send())

    def _add(self, partition: Partition) -> None:
        self._waiting[partition] = None
        self._has_work.set()

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            for number, partition in enumerate(tuple(self._partitions), 1):
                partition.check_isr()
                if number % _PARTITIONS_PER_TURN == 0:
                    await asyncio.sleep(0)

    async def _send(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._waiting:
                try:
                    if await self.send_once():
                        continue
                except Exception:
                    log.exception("changes of in-sync replicas could not be sent, retrying")
                await asyncio.sleep(_RETRY_SECONDS)

    async def send_once(self) -> bool:
        """Send all proposals and apply the answers; returns whether each was applied or rejected."""
        sent = self._collect()
        if not sent:
            return True
        request = wire.AlterPartitionRequest(self._local_id, self._broker_epoch(), _topics(sent))
        try:
            response = await self._channel.call(request, timeout_seconds=self._request_seconds)
        except BrokerError as error:
            log.warning("the controller does not answer, retrying", extra={"reason": error.message})
            return False
        assert isinstance(response, wire.AlterPartitionResponse)
        if response.error_code:
            extra = {"error": ErrorCode(response.error_code).name}
            log.warning("the controller rejected the changes of in-sync replicas, retrying", extra=extra)
            return False
        for topic in response.topics:
            for answer in topic.partitions:
                found = sent.get((topic.topic_id, answer.partition_index))
                if found is not None:
                    self._apply(*found, answer)
        return not any(_is_open(partition, proposal) for partition, proposal in sent.values())

    def _apply(
        self, partition: Partition, proposal: IsrProposal, answer: wire.AlterPartitionResponsePartitionData
    ) -> None:
        error, metrics = ErrorCode(answer.error_code), self._partitions.metrics
        if error:
            metrics.isr_changes_failed += 1
            extra = {"topic": partition.topic, "partition": partition.index, "isr": proposal.isr, "error": error.name}
            log.info("change of in-sync replicas rejected", extra=extra)
            partition.isr_answered(proposal, error, None)
            return
        image = PartitionImage(
            replicas=partition.replicas,
            isr=tuple(answer.isr),
            leader_id=answer.leader_id,
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            leader_recovery_state=answer.leader_recovery_state,
        )
        if len(image.replicas) > 1:  # a single replica only reports that it has recovered
            extra = {"topic": partition.topic, "partition": partition.index, "isr": image.isr}
            log.info("in-sync replicas changed", extra=extra)
        before = partition.isr
        partition.isr_answered(proposal, error, image)
        metrics.isr_changed(before, partition.isr)

    def _collect(self) -> dict[tuple[bytes, int], tuple[Partition, IsrProposal]]:
        """The proposals that are still open, by topic id and partition; those that are over are dropped."""
        found: dict[tuple[bytes, int], tuple[Partition, IsrProposal]] = {}
        for partition in tuple(self._waiting):
            replication = partition.replication
            if replication is None or replication.proposal is None:
                del self._waiting[partition]
            else:
                found[partition.topic_id, partition.index] = (partition, replication.proposal)
        return found


def _topics(sent: dict[tuple[bytes, int], tuple[Partition, IsrProposal]]) -> list[wire.TopicData]:
    topics: dict[bytes, wire.TopicData] = {}
    for (topic_id, index), (_, proposal) in sent.items():
        members = [wire.BrokerState(*member) for member in zip(proposal.isr, proposal.broker_epochs, strict=True)]
        topics.setdefault(topic_id, wire.TopicData(topic_id)).partitions.append(
            wire.PartitionData(
                partition_index=index,
                leader_epoch=proposal.leader_epoch,
                new_isr=list(proposal.isr),
                new_isr_with_epochs=members,
                leader_recovery_state=proposal.recovery_state,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return list(topics.values())


def _is_open(partition: Partition, proposal: IsrProposal) -> bool:
    return partition.replication is not None and partition.replication.proposal is proposal
