from collections.abc import AsyncIterator

import pytest

from core_broker.client.producer import Producer
from core_broker.client.reachability import Reachability
from core_broker.client.records import OutgoingRecord
from rest_proxy.consume.readers import ReaderPool, Readers
from rest_proxy.consume.reads import Page, PageRequest, Pages, Start
from rest_proxy.settings import ProxySettings
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes


@pytest.fixture
async def readers(broker: BrokerProcess) -> AsyncIterator[Readers]:
    """Readers of the running broker."""
    settings = ProxySettings(bootstrap_servers=(broker.bootstrap,))
    async with ReaderPool(settings) as pool:
        yield Readers(pool, settings, Reachability(settings.kafka()))


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    """A topic with ten records."""
    create_topic(broker, name)
    with Producer(ProxySettings(bootstrap_servers=(broker.bootstrap,)).kafka()) as producer:
        for number in range(10):
            producer.send(OutgoingRecord(topic=name, value=b"%d" % number, partition=0))
    return name


async def read(readers: Readers, topic: str, offset: int, *, is_gone: bool = False, timeout_ms: int = 0) -> Page:
    async def client_is_gone() -> bool:
        return is_gone

    request = PageRequest(
        topic=topic,
        partition=0,
        start=Start(offset=offset),
        isolation_level="read_committed",
        timeout_ms=timeout_ms,
        max_bytes=1_000_000,
        max_records=4,
    )
    return await Pages(readers).page(request, is_gone=client_is_gone)


async def test_pages_that_follow_each_other_share_a_reader(readers: Readers, topic: str) -> None:
    seen, kept, offset = [], set(), 0
    while offset < 10:
        page = await read(readers, topic, offset)
        seen += [record.offset for record in page.records]
        offset = page.next_offset
        kept |= set(readers._pool._idle)
        assert (readers._pool.in_use, readers._pool.idle) == (0, 1)
    assert seen == list(range(10))
    assert len(kept) == 1


async def test_pages_elsewhere_have_readers_of_their_own(readers: Readers, topic: str) -> None:
    for offset in (0, 7, 2):
        page = await read(readers, topic, offset)
        assert page.records[0].offset == offset
    assert readers._pool.idle == 3


async def test_a_page_knows_the_bounds_of_its_partition(readers: Readers, topic: str) -> None:
    page = await read(readers, topic, 10)
    assert (page.records, page.beginning_offset, page.next_offset, page.end_offset) == ([], 0, 10, 10)


async def test_a_page_does_not_wait_when_the_client_has_left(readers: Readers, topic: str) -> None:
    page = await read(readers, topic, 10, is_gone=True, timeout_ms=2**31)
    assert page.records == []
    readers._pool.is_stopping = True
    assert (await read(readers, topic, 10, timeout_ms=2**31)).records == []
