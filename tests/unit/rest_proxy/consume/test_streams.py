from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from core_broker.client.producer import Producer
from core_broker.client.reachability import Reachability
from core_broker.client.records import OutgoingRecord
from rest_proxy.consume.readers import ReaderPool, Readers
from rest_proxy.consume.reads import Start
from rest_proxy.consume.rendering import RecordRenderer, RecordV2
from rest_proxy.consume.stream_frames import JsonLines
from rest_proxy.consume.streams import Stream, StreamRequest, Streams
from rest_proxy.errors import ProxyError
from rest_proxy.settings import ProxySettings
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes

PLAIN = RecordRenderer(
    lambda record: RecordV2("", None, None, record.partition, record.offset),
    lambda record, _: RecordV2("", None, None, record.partition, record.offset),
)


class OpenStreams(Streams):
    """At most one stream of the running broker, that never says that it lives."""

    def __init__(self, pool: ReaderPool, settings: ProxySettings) -> None:
        super().__init__(pool, limit=1, heartbeat_ms=10**6)
        self.readers = Readers(pool, settings, Reachability(settings.kafka()))


@pytest.fixture
async def streams(broker: BrokerProcess) -> AsyncIterator[OpenStreams]:
    """Streams of the proxy itself."""
    settings = ProxySettings(bootstrap_servers=(broker.bootstrap,))
    async with ReaderPool(settings) as pool:
        yield OpenStreams(pool, settings)


async def opened(streams: OpenStreams, wanted: StreamRequest) -> Stream:
    return await streams.open(wanted, streams.readers)


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    """A topic with three records."""
    create_topic(broker, name)
    with Producer(ProxySettings(bootstrap_servers=(broker.bootstrap,)).kafka()) as producer:
        for _ in range(3):
            producer.send(OutgoingRecord(topic=name, value=None, partition=0))
    return name


def request(topic: str, **changes: Any) -> StreamRequest:
    usual: dict[str, Any] = {
        "topic": topic,
        "partition": 0,
        "start": Start(),
        "position": None,
        "isolation_level": "read_committed",
        "max_records": None,
        "until_end": True,
    }
    return StreamRequest(**(usual | changes))


def chunks(
    streams: Streams, stream: Stream, count: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[bytes, None]:
    return streams.chunks(stream, JsonLines(PLAIN, stream.positions), decoders=(), count=count)


async def test_a_stream_counts_its_records(streams: OpenStreams, topic: str) -> None:
    counted: list[int] = []
    stream = await opened(streams, request(topic))
    text = b"".join([chunk async for chunk in chunks(streams, stream, counted.append)])
    stream.close()
    assert (text.count(b"\n"), sum(counted)) == (3, 3)


async def test_a_stream_counts_as_one_until_it_is_closed_however_often(streams: OpenStreams, topic: str) -> None:
    stream = await opened(streams, request(topic))
    with pytest.raises(ProxyError, match="streams.max") as caught:
        await opened(streams, request(topic))
    assert caught.value.status == 429
    for _ in range(2):
        stream.close()
        assert streams.count == 0


async def test_a_stream_that_cannot_begin_does_not_count(streams: OpenStreams, topic: str) -> None:
    for wrong in (
        {"partition": 5},
        {"partition": 2**31 - 1},
        {"position": {0: 99}},
        {"partition": None, "position": {7: 0}},
    ):
        with pytest.raises(ProxyError):
            await opened(streams, request(topic, **wrong))
        assert streams.count == 0


async def test_all_streams_end_when_the_proxy_stops_and_none_begins(streams: OpenStreams, topic: str) -> None:
    stream = await opened(streams, request(topic, until_end=False))
    async with aclosing(chunks(streams, stream)) as lines:
        assert (await anext(lines)).count(b"\n") == 3
        streams.stop()
        rest = [chunk async for chunk in lines]
    stream.close()
    assert b'"error_code":503' in rest[-1]
    assert b'"position":"0:3"' in rest[-1]
    with pytest.raises(ProxyError, match="the proxy stops"):
        await opened(streams, request(topic))
