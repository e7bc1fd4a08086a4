"""A partition of a coordinator's topic during one leader epoch: every read and write is fenced by that epoch.

A coordinator keeps in memory what it read from the log, and decides on that. As soon as another leader may have
written, its decisions are worth nothing: so a write fails unless the partition is still led in the epoch in which it
was loaded, both when it is appended and when it is committed. The check before the append and the append itself run
without suspending, so that no change of leader can come between them.

A new leader may have records that are not committed yet, and that it loses again if it fails at once. It must not show
them to clients: `committed_batches` ends only when everything that earlier leaders wrote is committed.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import AppendResult
from core_broker.log.producer_state import Origin
from core_broker.protocol.records import BatchHeader

_BATCHES_PER_TURN: Final = 200
"""How much is read before other work of the broker gets its turn."""
_COMMIT_WAIT_MS: Final = 500
"""How long a load waits for the replicas before it checks that this broker still leads the partition."""


class NotCommittedError(BrokerError):
    """Records were appended, but it is unknown whether they will be committed; a later read may find them."""


class LedPartition:
    """A partition as this broker leads it in one epoch, until that epoch ends or the coordinator releases it."""

    __slots__ = ("_inherited_end", "_is_released", "leader_epoch", "partition")

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self._inherited_end = partition.log.end_offset
        self._is_released = False

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in the same epoch."""
        partition = self.partition
        return not self._is_released and partition.is_leader and partition.leader_epoch == self.leader_epoch

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to load."""
        return self.partition.log.end_offset == self.partition.log.start_offset

    def release(self) -> None:
        """Make all further reads and writes fail."""
        self._is_released = True

    def append(self, buffer: bytearray, *, transaction_version: int = 0) -> AppendResult:
        """Append an encoded batch of a coordinator; raises BrokerError, and then it is not in the log."""
        self._check()
        return self.partition.append(
            buffer, acks_all=True, origin=Origin.COORDINATOR, transaction_version=transaction_version
        )

    async def wait_committed(self, appended: AppendResult, *, timeout_ms: int) -> None:
        """Return once a batch is committed; raises NotCommittedError."""
        try:
            await self.partition.wait_committed(appended.last_offset, timeout_ms=timeout_ms)
            # A later leader may have replaced the batch by another one with the same offsets.
            self._check()
        except BrokerError as error:
            raise NotCommittedError(error.code, error.message) from error

    async def committed_batches(self) -> AsyncIterator[tuple[BatchHeader, memoryview]]:
        """Every committed batch, including those appended meanwhile (transaction markers are written while loading).

        Ends, without suspending, when all that earlier leaders wrote is committed and everything committed was read.
        Raises NOT_LEADER_OR_FOLLOWER when the epoch ends first.
        """
        partition = self.partition
        position = partition.log.start_offset
        count = 0
        while True:
            self._check()
            committed = partition.high_watermark
            for batch in partition.log.read_batches(position, committed):
                yield batch
                count += 1
                if count % _BATCHES_PER_TURN == 0:
                    await asyncio.sleep(0)
                    self._check()
            position = max(position, committed)
            if position < partition.high_watermark:
                continue
            if position >= self._inherited_end:
                return
            await self._wait_for_replicas()

    async def _wait_for_replicas(self) -> None:
        try:
            await self.partition.wait_committed(self._inherited_end - 1, timeout_ms=_COMMIT_WAIT_MS)
        except BrokerError as error:
            if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                raise

    def _check(self) -> None:
        if not self.is_current:
            partition = self.partition
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition.topic}-{partition.index} is no longer led by this broker in epoch {self.leader_epoch}",
            )
