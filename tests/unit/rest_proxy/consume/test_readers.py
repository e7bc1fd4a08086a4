import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from core_broker.client.reachability import Reachability
from rest_proxy.consume.readers import ReaderPool, Readers, ResumePoint
from rest_proxy.errors import ProxyError
from rest_proxy.identity import Identity
from rest_proxy.settings import ProxySettings

HERE = ResumePoint(topic="t", partition=0, offset=5, isolation_level="read_committed")
THERE = ResumePoint(topic="t", partition=0, offset=6, isolation_level="read_committed")

SETTINGS = ProxySettings(bootstrap_servers=("127.0.0.1:1",), readers_max=2, streams_max=2)


class NoReaders(Readers):
    """Readers of a cluster that is not there."""

    def __init__(self, pool: ReaderPool, identity: Identity | None = None) -> None:
        super().__init__(pool, SETTINGS, Reachability(SETTINGS.kafka(), patience_seconds=0.1), identity)
        self.pool = pool


@asynccontextmanager
async def nowhere(idle_seconds: float = 30.0) -> AsyncIterator[NoReaders]:
    async with ReaderPool(SETTINGS, idle_seconds=idle_seconds) as pool:
        yield NoReaders(pool)


@pytest.fixture
async def readers() -> AsyncIterator[NoReaders]:
    """Two readers at most."""
    async with nowhere() as made:
        yield made


async def kept(readers: NoReaders, point: ResumePoint) -> object:
    """A reader that was used and stopped at a point."""
    async with readers.borrow(None) as lease:
        lease.reader = readers.create(point.isolation_level)
        readers.give_back(lease, point)
    return lease.reader


async def test_a_reader_is_kept_for_the_next_page(readers: NoReaders) -> None:
    reader = await kept(readers, HERE)
    async with readers.borrow(THERE) as other:
        assert other.reader is None
    async with readers.borrow(HERE) as lease:
        assert lease.reader is reader
        assert (readers.pool.in_use, readers.pool.idle) == (1, 0)
    assert (readers.pool.in_use, readers.pool.idle) == (0, 0)


async def test_more_than_the_limit_are_refused(readers: NoReaders) -> None:
    async with readers.borrow(HERE), readers.borrow(HERE):
        with pytest.raises(ProxyError, match="readers.max") as caught:
            async with readers.borrow(HERE):
                pass
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 1)
    async with readers.borrow(HERE):
        assert readers.pool.in_use == 1


async def test_the_reader_that_waits_longest_makes_room(readers: NoReaders) -> None:
    await kept(readers, HERE)
    second = await kept(readers, THERE)
    async with readers.borrow(None):
        assert readers.pool.idle == 1
    async with readers.borrow(THERE) as lease:
        assert lease.reader is second


async def test_a_reader_that_stays_idle_is_closed() -> None:
    async with nowhere(idle_seconds=0.01) as readers:
        await kept(readers, HERE)
        async with asyncio.timeout(10):
            while readers.pool.idle:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)


async def test_a_reader_is_kept_for_its_own_caller_alone(readers: NoReaders) -> None:
    await kept(readers, HERE)
    other = NoReaders(readers.pool, Identity(SETTINGS))
    async with other.borrow(HERE) as lease:
        assert lease.reader is None
    async with readers.borrow(HERE) as lease:
        assert lease.reader is not None


async def test_a_reader_that_failed_is_not_kept(readers: NoReaders) -> None:
    with pytest.raises(ValueError, match="bad"):
        async with readers.borrow(None) as lease:
            lease.reader = readers.create("read_committed")
            raise ValueError("bad")
    assert (readers.pool.in_use, readers.pool.idle) == (0, 0)


async def test_leaving_does_not_wait_for_the_thread_that_still_reads(readers: NoReaders) -> None:
    may_end = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), readers.borrow(None) as lease:
            lease.reader = readers.create("read_committed")
            await lease.run(may_end.wait, 10)
    assert readers.pool.in_use == 0
    assert lease.reader is not None
    assert lease.reader.assigned() == []  # It is still open: it is in use.
    may_end.set()


async def test_a_cluster_that_is_not_there_is_reported_with_its_address(readers: NoReaders) -> None:
    with pytest.raises(ProxyError, match=r"127\.0\.0\.1:1") as caught:
        await readers.check()
    assert caught.value.status == 503
