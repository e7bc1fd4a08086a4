"""Background work on logs: retention, compaction, flushes, checkpoints, expiry of idle producers.

Each kind of work has its own loop. Errors are logged, and the work is retried in the next round; nothing here stops the
broker. Work that waits for the disk runs in a worker thread. Settings are read in each round, since they may change.
"""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol

from core_broker.errors import BrokerError
from core_broker.log.checkpoints import write_offsets
from core_broker.log.cleaner import CleaningStoppedError
from core_broker.log.compaction import CleaningPlan, Compactor, plan_cleaning
from core_broker.log.log_directory import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    LogDirectory,
)
from core_broker.log.partition_log import PartitionLog
from core_broker.log.transaction_index import CorruptIndexError
from core_broker.protocol.records import CorruptBatch
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1000
FILE_CHECK_MS = 5000

_LOGS_PER_TURN = 64
"""How many logs are visited before yielding to the event loop."""
_SLEEP_MS_MAX = 24 * 3_600_000
_DISK_SECONDS_MAX = 60.0

Work = Callable[[], Awaitable[None]]
Interval = Callable[[BrokerSettings], int]
"""How many milliseconds to wait before the next turn, by the settings in force."""


class Store(Protocol):
    """What upkeep needs from the store, which imports this module."""

    settings: BrokerSettings
    clock: Clock
    cleaner_offsets: dict[tuple[str, int], int]
    high_watermark_of: Callable[[PartitionLog], int]

    @property
    def directories(self) -> tuple[LogDirectory, ...]:
        """The directories of log.dirs."""
        ...

    def __iter__(self) -> Iterator[PartitionLog]: ...

    def is_current(self, partition_log: PartitionLog) -> bool:
        """Whether the log still belongs to the store."""
        ...

    def checkpoints_of(self, directory: LogDirectory) -> dict[str, dict[tuple[str, int], int]]:
        """The current content of a directory's checkpoint files."""
        ...

    def take_due_directories(self) -> list[Path]:
        """Directories of deleted logs whose deletion is due."""
        ...


class Upkeep:
    """Maintains the logs of a store while `run` is running."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._chores = ThreadPoolExecutor(4, thread_name_prefix="log-chores")
        self._cleaning = ThreadPoolExecutor(1, thread_name_prefix="log-cleaner")
        self._compactor = Compactor(
            store.clock, self._cleaning, buffer_bytes=store.settings.log_cleaner_dedupe_buffer_size
        )
        self._uncleanable: dict[tuple[str, int], PartitionLog] = {}
        self._written: dict[Path, dict[tuple[str, int], int]] = {}

    async def run(self) -> None:
        """Run all background work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for interval_ms, work in self._schedule():
                    group.create_task(self._repeat(interval_ms, work))
        finally:
            self.close()

    def close(self) -> None:
        """Stop the threads: compaction stops within moments, an interrupted deletion is finished at the next start."""
        self._compactor.stop()
        self._cleaning.shutdown(wait=True, cancel_futures=True)
        self._chores.shutdown(wait=False, cancel_futures=True)

    def _schedule(self) -> list[tuple[Interval, Work]]:
        schedule: list[tuple[Interval, Work]] = [
            (lambda settings: settings.log_retention_check_interval_ms, self.apply_retention),
            (lambda _: FILE_CHECK_MS, self.remove_files),
            (lambda _: FLUSH_CHECK_MS, self.flush_due),
            (lambda settings: settings.log_flush_offset_checkpoint_interval_ms, self.write_recovery_points),
            (lambda settings: settings.log_flush_start_offset_checkpoint_interval_ms, self.write_start_offsets),
            (lambda settings: settings.replica_high_watermark_checkpoint_interval_ms, self.write_high_watermarks),
            (lambda settings: settings.producer_id_expiration_check_interval_ms, self.expire_producers),
        ]
        if self._store.settings.log_cleaner_enable:
            schedule.append((lambda settings: settings.log_cleaner_backoff_ms, self.clean))
        return schedule

    async def _repeat(self, interval_ms: Interval, work: Work) -> None:
        while True:
            await asyncio.sleep(max(1, min(interval_ms(self._store.settings), _SLEEP_MS_MAX)) / 1000)
            try:
                await work()
            except Exception:
                log.exception("background work failed and will be retried", extra={"work": work.__name__})

    async def _in_thread(self, work: Callable[[], None]) -> None:
        running = asyncio.get_running_loop().run_in_executor(self._chores, work)
        async with asyncio.timeout(_DISK_SECONDS_MAX):
            await running

    async def _each(self, visit: Callable[[PartitionLog], object]) -> None:
        """Visit every log, yielding to the event loop in between; an error in one does not stop the rest."""
        for number, partition_log in enumerate(self._store, 1):
            try:
                if self._store.is_current(partition_log):
                    visit(partition_log)
            except (BrokerError, OSError, ValueError) as error:
                _log_error(partition_log, "log skipped by background work", error)
            if number % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)

    # -- deletion ------------------------------------------------------------------------------------------------------

    async def apply_retention(self) -> None:
        """Delete segments that have expired or lie below the log start."""
        high_watermark_of = self._store.high_watermark_of
        await self._each(lambda found: found.delete_old_segments(high_watermark=high_watermark_of(found)))

    async def remove_files(self) -> None:
        """Delete files and directories whose deletion is due."""
        logs = tuple(self._store)
        await self._in_thread(lambda: _remove_files(logs))
        for path in self._store.take_due_directories():
            await self._in_thread(partial(_remove_tree, path))

    async def expire_producers(self) -> None:
        """Remove producers that have been idle for producer.id.expiration.ms."""
        now_ms = self._store.clock.now_ms()
        await self._each(lambda found: found.producers.remove_expired(now_ms))

    # -- flushes and checkpoints ---------------------------------------------------------------------------------------

    async def flush_due(self) -> None:
        """Flush rolled segments, and logs that are due according to flush.messages or flush.ms."""
        due: list[tuple[PartitionLog, int]] = []

        def note(partition_log: PartitionLog) -> None:
            offset = partition_log.flush_due_offset()
            if offset is not None and partition_log.failure is None:
                due.append((partition_log, offset))

        await self._each(note)
        flushes = (self._in_thread(partial(found.flush, offset)) for found, offset in due)
        for (found, _), result in zip(due, await asyncio.gather(*flushes, return_exceptions=True), strict=True):
            if isinstance(result, Exception) and self._store.is_current(found):
                _log_error(found, "flush of a log failed and will be retried", result)

    async def write_recovery_points(self) -> None:
        """Write the recovery points of the logs."""
        await self._write_checkpoint(RECOVERY_POINT_FILE)

    async def write_start_offsets(self) -> None:
        """Write the start offsets of the logs."""
        await self._write_checkpoint(LOG_START_FILE)

    async def write_high_watermarks(self) -> None:
        """Write the high watermarks."""
        await self._write_checkpoint(HIGH_WATERMARK_FILE)

    async def _write_checkpoint(self, name: str) -> None:
        """Write one checkpoint file of every directory, if it has changed."""
        for directory in self._store.directories:
            path = directory.path / name
            offsets = self._store.checkpoints_of(directory)[name]
            if self._written.get(path) != offsets:
                await self._in_thread(partial(write_offsets, path, offsets))
                self._written[path] = offsets

    # -- compaction ----------------------------------------------------------------------------------------------------

    async def clean(self) -> None:
        """Compact the logs that are due, those with the highest dirty ratio first."""
        due: list[tuple[CleaningPlan, PartitionLog]] = []

        def note(partition_log: PartitionLog) -> None:
            plan = self._plan(partition_log)
            if plan is not None and plan.is_due(partition_log.settings):
                due.append((plan, partition_log))

        await self._each(note)
        for plan, partition_log in sorted(due, key=lambda pair: -pair[0].dirty_ratio):
            if self._store.is_current(partition_log):
                await self._clean(partition_log, plan)
        if due:
            await self._write_checkpoint(CLEANER_FILE)

    def _plan(self, partition_log: PartitionLog) -> CleaningPlan | None:
        key = (partition_log.topic, partition_log.partition)
        if "compact" not in partition_log.settings.cleanup_policy or self._uncleanable.get(key) is partition_log:
            return None
        return plan_cleaning(
            partition_log,
            checkpoint=self._store.cleaner_offsets.get(key),
            high_watermark=self._store.high_watermark_of(partition_log),
            now_ms=self._store.clock.now_ms(),
        )

    async def _clean(self, partition_log: PartitionLog, plan: CleaningPlan) -> None:
        key = (partition_log.topic, partition_log.partition)
        is_current = partial(self._store.is_current, partition_log)
        self._compactor.buffer_bytes = self._store.settings.log_cleaner_dedupe_buffer_size
        self._compactor.bytes_per_second = self._store.settings.log_cleaner_io_max_bytes_per_second
        try:
            result = await self._compactor.clean(partition_log, plan, is_current=is_current)
        except CleaningStoppedError:
            return
        except (CorruptBatch, CorruptIndexError) as error:
            if is_current():
                self._uncleanable[key] = partition_log
                _log_error(partition_log, "log cannot be compacted until the next start", error)
            return
        except (OSError, BrokerError) as error:
            if is_current():
                _log_error(partition_log, "compaction failed and will be retried", error)
            return
        if result is None or not is_current():
            return
        self._store.cleaner_offsets[key] = result.cleaned_to_offset
        extra = {"topic": key[0], "partition": key[1], "offset": result.cleaned_to_offset}
        extra |= {"bytes_before": result.bytes_before, "bytes_after": result.bytes_after}
        log.info("log compacted", extra=extra)


def _log_error(partition_log: PartitionLog, message: str, error: Exception) -> None:
    log.error(
        message,
        extra={"topic": partition_log.topic, "partition": partition_log.partition, "reason": str(error)},
    )


def _remove_files(logs: tuple[PartitionLog, ...]) -> None:
    for partition_log in logs:
        try:
            partition_log.remove_deleted_files()
        except OSError as error:
            _log_error(partition_log, "files of deleted segments cannot be removed", error)


def _remove_tree(path: Path) -> None:
    """Delete a directory and everything in it; if that fails, the next start tries again."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        log.warning("directory of a deleted log cannot be removed", extra={"path": str(path), "reason": str(error)})
