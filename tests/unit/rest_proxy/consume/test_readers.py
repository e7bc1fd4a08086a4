import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from core_broker.client.reachability import Reachability
from rest_proxy.consume.readers import Readers, ResumePoint
from rest_proxy.errors import ProxyError
from rest_proxy.settings import ProxySettings

HERE = ResumePoint(topic="t", partition=0, offset=5, isolation_level="read_committed")
THERE = ResumePoint(topic="t", partition=0, offset=6, isolation_level="read_committed")


def nowhere(idle_seconds: float = 30.0) -> Readers:
    """Readers of a cluster that is not there."""
    settings = ProxySettings(bootstrap_servers=("127.0.0.1:1",), readers_max=2, streams_max=2)
    return Readers(settings, Reachability(settings.kafka(), patience_seconds=0.1), idle_seconds=idle_seconds)


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    """Two readers at most."""
    async with nowhere() as made:
        yield made


async def kept(readers: Readers, point: ResumePoint) -> object:
    """A reader that was used and stopped at a point."""
    async with readers.borrow(None) as lease:
        lease.reader = readers.create(point.isolation_level)
        readers.give_back(lease, point)
    return lease.reader


async def test_a_reader_is_kept_for_the_next_page(readers: Readers) -> None:
    reader = await kept(readers, HERE)
    async with readers.borrow(THERE) as other:
        assert other.reader is None
    async with readers.borrow(HERE) as lease:
        assert lease.reader is reader
        assert (readers.in_use, readers.idle) == (1, 0)
    assert (readers.in_use, readers.idle) == (0, 0)


async def test_more_than_the_limit_are_refused(readers: Readers) -> None:
    async with readers.borrow(HERE), readers.borrow(HERE):
        with pytest.raises(ProxyError, match="readers.max") as caught:
            async with readers.borrow(HERE):
                pass
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 1)
    async with readers.borrow(HERE):
        assert readers.in_use == 1


async def test_the_reader_that_waits_longest_makes_room(readers: Readers) -> None:
    await kept(readers, HERE)
    second = await kept(readers, THERE)
    async with readers.borrow(None):
        assert readers.idle == 1
    async with readers.borrow(THERE) as lease:
        assert lease.reader is second


async def test_a_reader_that_stays_idle_is_closed() -> None:
    async with nowhere(idle_seconds=0.01) as readers:
        await kept(readers, HERE)
        async with asyncio.timeout(10):
            while readers.idle:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)


async def test_a_reader_that_failed_is_not_kept(readers: Readers) -> None:
    with pytest.raises(ValueError, match="bad"):
        async with readers.borrow(None) as lease:
            lease.reader = readers.create("read_committed")
            raise ValueError("bad")
    assert (readers.in_use, readers.idle) == (0, 0)


async def test_leaving_does_not_wait_for_the_thread_that_still_reads(readers: Readers) -> None:
    may_end = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), readers.borrow(None) as lease:
            lease.reader = readers.create("read_committed")
            await lease.run(may_end.wait, 10)
    assert readers.in_use == 0
    assert lease.reader is not None
    assert lease.reader.assigned() == []  # It is still open: it is in use.
    may_end.set()


async def test_a_cluster_that_is_not_there_is_reported_with_its_address(readers: Readers) -> None:
    with pytest.raises(ProxyError, match=r"127\.0\.0\.1:1") as caught:
        await readers.check()
    assert caught.value.status == 503
