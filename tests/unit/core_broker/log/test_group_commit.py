"""Group commit: one flush for all who wait."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.group_commit import GroupCommit


class SlowDisk:
    """A flush that waits until the test lets it go."""

    def __init__(self) -> None:
        self.flushes = 0
        self.began = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.error: OSError | None = None

    def flush(self) -> None:
        self.flushes += 1
        self.began.release()
        assert self.go.acquire(timeout=10)
        if self.error is not None:
            raise self.error


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


async def began(disk: SlowDisk) -> None:
    assert await asyncio.to_thread(disk.began.acquire, timeout=10)


async def test_all_who_come_during_a_flush_share_the_next_one(disk: SlowDisk, executor: ThreadPoolExecutor) -> None:
    commit = GroupCommit(disk.flush, executor)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(commit.wait())
        await began(disk)
        others = [group.create_task(commit.wait()) for _ in range(20)]
        await asyncio.sleep(0)
        disk.go.release()
        await first
        assert not any(task.done() for task in others)
        disk.go.release()
    assert disk.flushes == 2


async def test_failed_flush_is_told_to_those_who_waited_and_the_next_one_is_tried(
    disk: SlowDisk, executor: ThreadPoolExecutor
) -> None:
    commit = GroupCommit(disk.flush, executor)
    disk.error = OSError("no space left")
    disk.go.release()
    with pytest.raises(BrokerError, match="no space left") as caught:
        await commit.wait()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.error = None
    disk.go.release()
    await commit.wait()


async def test_wait_for_a_stuck_disk_ends(disk: SlowDisk, executor: ThreadPoolExecutor) -> None:
    commit = GroupCommit(disk.flush, executor)
    with pytest.raises(BrokerError, match="did not confirm"):
        await commit.wait(timeout_seconds=0.01)
    disk.go.release()


async def test_waiter_that_gives_up_does_not_take_the_others_along(
    disk: SlowDisk, executor: ThreadPoolExecutor
) -> None:
    commit = GroupCommit(disk.flush, executor)
    impatient = asyncio.create_task(commit.wait())
    await began(disk)
    patient = asyncio.create_task(commit.wait())
    impatient.cancel()
    disk.go.release(2)
    await patient
    assert disk.flushes == 2
