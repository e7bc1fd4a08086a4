import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
import pytest

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError, too_many
from rest_proxy.formats.encoding import Encoders
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import STRONGEST, Guarantees
from rest_proxy.produce.v3.sender import Destination, V3RecordSender
from rest_proxy.produce.v3.stream import NextChunk, RecordStream, RecordStreams, StreamLimits
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings

LIMITS = StreamLimits(max_record_bytes=1000, idle_seconds=60, max_seconds=60, grace_seconds=60)
RECORD = b'{"value":{"type":"STRING","data":"x"}}'


class MemoryLog:
    """A log in memory that acknowledges when the test allows it."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.may_acknowledge = asyncio.Event()
        self.may_acknowledge.set()
        self.refusal: ProxyError | None = None
        self.offset = 0

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees
    ) -> list[Delivery | ProxyError]:
        """Append records."""
        assert guarantees is STRONGEST
        self.groups.append(len(records))
        await self.may_acknowledge.wait()
        if self.refusal:
            raise self.refusal
        return [self._appended(record) for record in records]

    def _appended(self, record: OutgoingRecord | ProxyError) -> Delivery | ProxyError:
        if isinstance(record, ProxyError):
            return record
        self.offset += 1
        return Delivery(topic=record.topic, partition=0, offset=self.offset - 1, timestamp_ms=1)


class Streams:
    """A log and streams into it."""

    def __init__(self, registry: RegistryClient) -> None:
        self.log = MemoryLog()
        self.streams = RecordStreams()
        self._sender = V3RecordSender(self.log, Encoders(registry), ProxyMetrics())

    def stream(self, limits: StreamLimits = LIMITS) -> RecordStream:
        """A new stream."""
        return RecordStream(self._sender, Destination("c", "t", STRONGEST), limits=limits, streams=self.streams)


@pytest.fixture
async def setup() -> AsyncIterator[Streams]:
    """What a stream needs; no schema is used, so no registry is asked."""
    with RegistryClient(RegistryClientSettings.parse({"url": "http://localhost:1"})) as registry:
        yield Streams(registry)


def body(chunks: Iterable[bytes]) -> NextChunk:
    """A body in these chunks."""
    left = iter(chunks)

    async def next_chunk() -> bytes | None:
        return next(left, None)

    return next_chunk


async def never() -> bytes | None:
    """A body of which nothing comes."""
    await asyncio.Event().wait()
    return None


async def codes(stream: RecordStream, next_chunk: NextChunk) -> list[int]:
    """The codes of all answers."""
    lines = b"".join([part async for part in stream.answers(next_chunk)]).splitlines()
    return [msgspec.json.decode(line)["error_code"] for line in lines]


async def test_all_records_are_answered_in_their_order(setup: Streams) -> None:
    lines = b"".join([part async for part in setup.stream().answers(body([RECORD * 2500, RECORD[:9], RECORD[9:]]))])
    offsets = [msgspec.json.decode(line)["offset"] for line in lines.split(b"\r\n")[:-1]]
    assert offsets == list(range(2501))


async def test_no_more_is_read_while_a_thousand_records_are_on_their_way(setup: Streams) -> None:
    asked = 0

    async def next_chunk() -> bytes | None:
        nonlocal asked
        asked += 1
        return RECORD * 1500 if asked < 3 else None

    setup.log.may_acknowledge.clear()
    answers = setup.stream().answers(next_chunk)
    first = asyncio.ensure_future(anext(answers))
    for _ in range(100):
        await asyncio.sleep(0)
    assert (asked, setup.log.groups, first.done()) == (1, [1000], False)
    setup.log.may_acknowledge.set()
    lines = [await first, *[part async for part in answers]]
    assert [part.count(b"\r\n") for part in lines] == setup.log.groups == [1000, 500, 1000, 500]


async def test_a_bad_record_does_not_end_the_stream(setup: Streams) -> None:
    assert await codes(setup.stream(), body([RECORD + b'{"key":1}' + RECORD])) == [200, 400, 200]


@pytest.mark.parametrize("bad", [b"{]}", b"17", b"[]", b'{"a":"' + b"x" * 1000 + b'"}'])
async def test_after_what_cannot_be_read_nothing_is_answered(setup: Streams, bad: bytes) -> None:
    answered = await codes(setup.stream(), body([RECORD, RECORD + bad + RECORD, RECORD]))
    assert answered[:2] == [200, 200]
    assert answered[2:] in ([400], [413])
    assert setup.log.offset == 2


async def test_a_body_that_ends_within_a_record_is_answered_with_an_error(setup: Streams) -> None:
    assert await codes(setup.stream(), body([RECORD + b"{"])) == [200, 400]


async def test_a_refusal_of_all_is_answered_for_each(setup: Streams) -> None:
    setup.log.refusal = too_many("full")
    assert await codes(setup.stream(), body([RECORD + b'{"key":1}' + RECORD])) == [429, 400, 429]


async def test_a_stream_that_brings_nothing_is_ended(setup: Streams) -> None:
    limits = msgspec.structs.replace(LIMITS, idle_seconds=0.01)
    assert await codes(setup.stream(limits), never) == [408]


async def test_records_that_come_too_late_are_refused_and_not_sent(setup: Streams) -> None:
    limits = msgspec.structs.replace(LIMITS, max_seconds=0)
    assert await codes(setup.stream(limits), body([RECORD * 2, b'{"key":1}'])) == [408, 408, 408]
    assert setup.log.offset == 0


async def test_a_stream_ends_when_its_grace_is_over(setup: Streams) -> None:
    limits = msgspec.structs.replace(LIMITS, max_seconds=0, grace_seconds=0.01)
    assert await codes(setup.stream(limits), never) == [408]


async def test_streams_end_when_the_proxy_stops(setup: Streams) -> None:
    waiting = asyncio.ensure_future(codes(setup.stream(), never))
    await asyncio.sleep(0)
    setup.streams.stop()
    assert await waiting == [503]
    assert await codes(setup.stream(), body([RECORD])) == [503]


async def test_a_client_that_goes_ends_its_stream_without_an_answer(setup: Streams) -> None:
    async def gone() -> bytes | None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await codes(setup.stream(), gone)
    setup.streams.stop()  # which finds none of it


async def test_what_has_arrived_in_part_is_bounded_over_all_streams(setup: Streams) -> None:
    setup.streams = RecordStreams(max_bytes=100)
    chunks = [b'{"value":{"type":"STRING","data":"' + b"x" * 40, b'"}}']
    left, goes_on = iter(chunks), asyncio.Event()

    async def slow() -> bytes | None:
        chunk = next(left, None)
        if chunk != chunks[0]:
            await goes_on.wait()
        return chunk

    first = asyncio.ensure_future(codes(setup.stream(), slow))
    await asyncio.sleep(0.01)
    assert await codes(setup.stream(), body(chunks)) == [429]
    goes_on.set()
    assert await first == [200]
    assert await codes(setup.stream(), body(chunks)) == [200]
