import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from core_broker.client.reachability import Reachability
from rest_proxy.consume.readers import Readers, Spot
from rest_proxy.errors import ProxyError
from rest_proxy.settings import ProxySettings

HERE = Spot(topic="t", partition=0, offset=5, isolation_level="read_committed")
THERE = Spot(topic="t", partition=0, offset=6, isolation_level="read_committed")


def nowhere(idle_seconds: float = 30.0) -> Readers:
    """Readers of a cluster that is not there."""
    settings = ProxySettings(bootstrap_servers=("127.0.0.1:1",), readers_max=2, streams_max=2)
    return Readers(settings, Reachability(settings.kafka(), patience_seconds=0.1), idle_seconds=idle_seconds)


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    """Two readers at most."""
    async with nowhere() as made:
        yield made


async def kept(readers: Readers, spot: Spot) -> object:
    """A reader that was used and stopped at a spot."""
    async with readers.borrowed(None) as lease:
        lease.reader = readers.make(spot.isolation_level)
        readers.give_back(lease, spot)
    return lease.reader


async def test_a_reader_waits_for_who_goes_on_where_it_stopped(readers: Readers) -> None:
    reader = await kept(readers, HERE)
    async with readers.borrowed(THERE) as other:
        assert other.reader is None
    async with readers.borrowed(HERE) as lease:
        assert lease.reader is reader
        assert (readers.in_use, readers.idle) == (1, 0)
    assert (readers.in_use, readers.idle) == (0, 0)


async def test_more_than_the_limit_are_refused(readers: Readers) -> None:
    async with readers.borrowed(HERE), readers.borrowed(HERE):
        with pytest.raises(ProxyError, match="readers.max") as caught:
            async with readers.borrowed(HERE):
                pass
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 1)
    async with readers.borrowed(HERE):
        assert readers.in_use == 1


async def test_the_reader_that_waits_longest_makes_room(readers: Readers) -> None:
    await kept(readers, HERE)
    second = await kept(readers, THERE)
    async with readers.borrowed(None):
        assert readers.idle == 1
    async with readers.borrowed(THERE) as lease:
        assert lease.reader is second


async def test_a_reader_that_nobody_comes_for_is_closed() -> None:
    async with nowhere(idle_seconds=0.01) as readers:
        await kept(readers, HERE)
        async with asyncio.timeout(10):
            while readers.idle:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)


async def test_a_reader_that_failed_is_not_kept(readers: Readers) -> None:
    with pytest.raises(ValueError, match="bad"):
        async with readers.borrowed(None) as lease:
            lease.reader = readers.make("read_committed")
            raise ValueError("bad")
    assert (readers.in_use, readers.idle) == (0, 0)


async def test_leaving_does_not_wait_for_the_thread_that_still_reads(readers: Readers) -> None:
    may_end = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), readers.borrowed(None) as lease:
            lease.reader = readers.make("read_committed")
            await lease.run(may_end.wait, 10)
    assert readers.in_use == 0
    assert lease.reader is not None
    assert lease.reader.assigned() == []  # It is open still: somebody uses it.
    may_end.set()


async def test_a_cluster_that_is_not_there_is_told_with_its_address(readers: Readers) -> None:
    with pytest.raises(ProxyError, match=r"127\.0\.0\.1:1") as caught:
        await readers.check()
    assert caught.value.status == 503
