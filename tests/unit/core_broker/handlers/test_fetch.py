"""Fetch: whole batches, limits, long polls, sessions, committed reads."""

import asyncio

import pytest

from core_broker.errors import ErrorCode
from core_broker.log.producer_state import Origin
from core_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from core_broker.protocol.records import Record, build_batch, end_transaction_marker, parse_batches
from tests.support.handler_world import HandlerWorld

NOW_MS = 1_700_000_000_000
READ_COMMITTED = 1


def request(
    *wanted: tuple[int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 30,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
) -> FetchRequest:
    """A fetch of (partition, offset) pairs of the topic `orders`."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for index, offset in wanted
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic="orders", partitions=partitions)] if wanted else [],
    )


async def fetch(world: HandlerWorld, asked: FetchRequest, version: int = 12) -> list[PartitionData]:
    response = await world.call(asked, FetchResponse, version)
    return [partition for topic in response.responses for partition in topic.partitions]


def offsets_in(data: PartitionData) -> list[tuple[int, int]]:
    """First and last offset of each batch of an answer."""
    return [(header.base_offset, header.last_offset) for header in parse_batches(bytes(data.records or b""))]


@pytest.mark.parametrize("version", range(4, 13))
async def test_whole_batches_come_from_the_one_that_holds_the_offset(world: HandlerWorld, version: int) -> None:
    await world.create("orders")
    for _ in range(3):
        world.append("orders", NOW_MS, NOW_MS)
    (found,) = await fetch(world, request((0, 3)), version)
    assert offsets_in(found) == [(2, 3), (4, 5)]
    assert (found.error_code, found.high_watermark) == (0, 6)


async def test_from_version_13_on_topics_go_by_their_id(world: HandlerWorld) -> None:
    topic_id = await world.create("orders")
    world.append("orders", NOW_MS)
    asked = request((0, 0))
    asked.topics[0].topic_id = topic_id
    (found,) = await fetch(world, asked, 13)
    assert offsets_in(found) == [(0, 0)]
    asked.topics[0].topic_id = bytes(range(16))
    (refused,) = await fetch(world, asked, 13)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("partition", "offset", "code"),
    [
        (0, 2, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, -5, ErrorCode.OFFSET_OUT_OF_RANGE),
        (9, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_what_cannot_be_read_is_told_at_once(
    world: HandlerWorld, partition: int, offset: int, code: ErrorCode
) -> None:
    await world.create("orders")
    world.append("orders", NOW_MS)
    (found,) = await fetch(world, request((partition, offset), max_wait_ms=60_000))
    assert found.error_code == code
    assert found.records == b""


async def test_a_first_batch_larger_than_the_limit_comes_whole_and_alone(world: HandlerWorld) -> None:
    await world.create("orders", 2)
    for index in (0, 1):
        big = build_batch([Record(timestamp=NOW_MS, value=bytes(5000))])
        world.partition("orders", index).append(big, acks_all=False)
    first, second = await fetch(world, request((0, 0), (1, 0), partition_max_bytes=100))
    assert offsets_in(first) == [(0, 0)]
    assert offsets_in(second) == []


async def test_the_limit_of_the_answer_counts_over_all_partitions(world: HandlerWorld) -> None:
    await world.create("orders", 2)
    for index in (0, 1):
        for _ in range(4):
            part = build_batch([Record(timestamp=NOW_MS, value=bytes(1000))])
            world.partition("orders", index).append(part, acks_all=False)
    first, second = await fetch(world, request((0, 0), (1, 0), max_bytes=5000))
    assert offsets_in(first) == [(n, n) for n in range(4)]
    assert offsets_in(second) == []


async def test_an_empty_fetch_waits_for_data(world: HandlerWorld) -> None:
    await world.create("orders")
    waiting = asyncio.create_task(fetch(world, request((0, 0), max_wait_ms=60_000)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    world.append("orders", NOW_MS)
    (found,) = await asyncio.wait_for(waiting, 10)
    assert offsets_in(found) == [(0, 0)]
    assert not world.partition("orders").readers


async def test_a_fetch_past_the_end_is_answered_empty_when_its_time_is_up(world: HandlerWorld) -> None:
    await world.create("orders")
    (found,) = await fetch(world, request((0, 0), max_wait_ms=20))
    assert (found.error_code, found.records) == (0, b"")


async def test_a_fetch_that_wants_more_bytes_goes_on_waiting(world: HandlerWorld) -> None:
    await world.create("orders")
    waiting = asyncio.create_task(fetch(world, request((0, 0), max_wait_ms=60_000, min_bytes=150)))
    await asyncio.sleep(0)
    world.append("orders", NOW_MS)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    world.append("orders", NOW_MS)
    world.append("orders", NOW_MS)
    (found,) = await asyncio.wait_for(waiting, 10)
    assert len(offsets_in(found)) >= 2


async def test_a_fetch_that_waits_on_a_topic_is_told_when_it_is_deleted(world: HandlerWorld) -> None:
    topic_id = await world.create("orders")
    waiting = asyncio.create_task(fetch(world, request((0, 0), max_wait_ms=60_000)))
    await asyncio.sleep(0)
    await world.controller.delete_topics([topic_id])
    (found,) = await asyncio.wait_for(waiting, 10)
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_given_up_fetch_leaves_no_trace(world: HandlerWorld) -> None:
    await world.create("orders")
    waiting = asyncio.create_task(fetch(world, request((0, 0), max_wait_ms=60_000)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert not world.partition("orders").readers


def transaction(world: HandlerWorld, sequence: int) -> None:
    part = build_batch(
        [Record(timestamp=NOW_MS, value=b"t")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    world.partition("orders").append(part, acks_all=False)


def end(world: HandlerWorld, *, commit: bool) -> None:
    marker = end_transaction_marker(7, 0, commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS)
    world.partition("orders").append(marker, acks_all=False, origin=Origin.COORDINATOR)


async def test_committed_readers_stop_at_an_open_transaction(world: HandlerWorld) -> None:
    await world.create("orders")
    world.append("orders", NOW_MS)
    transaction(world, 0)
    world.append("orders", NOW_MS)
    (committed,) = await fetch(world, request((0, 0), isolation_level=READ_COMMITTED))
    assert offsets_in(committed) == [(0, 0)]
    assert (committed.last_stable_offset, committed.high_watermark) == (1, 3)
    (everything,) = await fetch(world, request((0, 0)))
    assert offsets_in(everything) == [(0, 0), (1, 1), (2, 2)]
    assert everything.aborted_transactions is None


async def test_aborted_transactions_are_named_to_committed_readers(world: HandlerWorld) -> None:
    await world.create("orders")
    transaction(world, 0)
    end(world, commit=False)
    transaction(world, 1)
    end(world, commit=True)
    (found,) = await fetch(world, request((0, 0), isolation_level=READ_COMMITTED))
    assert offsets_in(found) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert [(t.producer_id, t.first_offset) for t in found.aborted_transactions or ()] == [(7, 0)]


async def test_data_in_an_open_transaction_does_not_answer_a_committed_reader_early(world: HandlerWorld) -> None:
    await world.create("orders")
    asked = request((0, 0), max_wait_ms=60_000, isolation_level=READ_COMMITTED)
    waiting = asyncio.create_task(fetch(world, asked))
    await asyncio.sleep(0)
    transaction(world, 0)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    end(world, commit=True)
    (found,) = await asyncio.wait_for(waiting, 10)
    assert offsets_in(found) == [(0, 0), (1, 1)]


async def test_a_session_hears_only_of_partitions_with_news(world: HandlerWorld) -> None:
    await world.create("orders", 3)
    opened = await world.call(request((0, 0), (1, 0), (2, 0), session=(0, 0)), FetchResponse, 12)
    assert opened.session_id > 0
    assert len(opened.responses[0].partitions) == 3
    world.partition("orders", 1).append(build_batch([Record(timestamp=NOW_MS, value=b"v")]), acks_all=False)
    (news,) = await fetch(world, request(session=(opened.session_id, 1)))
    assert news.partition_index == 1
    assert offsets_in(news) == [(0, 0)]
    (moved,) = await fetch(world, request((1, 1), session=(opened.session_id, 2), min_bytes=0)) or [news]
    assert moved.partition_index == 1
    assert await fetch(world, request(session=(opened.session_id, 3), min_bytes=0)) == []


async def test_an_unknown_session_is_refused_as_a_whole(world: HandlerWorld) -> None:
    response = await world.call(request(session=(4711, 5)), FetchResponse, 12)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.responses == []


async def test_a_reader_with_another_leader_epoch_is_told(world: HandlerWorld) -> None:
    await world.create("orders")
    for epoch, code in ((99, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)):
        asked = request((0, 0))
        asked.topics[0].partitions[0].current_leader_epoch = epoch
        (found,) = await fetch(world, asked)
        assert found.error_code == code


async def test_deleted_records_are_out_of_range(world: HandlerWorld) -> None:
    await world.create("orders")
    for _ in range(3):
        world.append("orders", NOW_MS)
    world.partition("orders").delete_records_before(2)
    (found,) = await fetch(world, request((0, 1)))
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (kept,) = await fetch(world, request((0, 2)))
    assert (kept.log_start_offset, offsets_in(kept)) == (2, [(2, 2)])


@pytest.mark.parametrize("version", [12, 13])
async def test_a_failed_fetch_is_counted_for_its_topic(world: HandlerWorld, version: int) -> None:
    topic_id = await world.create("orders")
    asked = request((0, 99))
    if version == 13:
        asked.topics[0].topic, asked.topics[0].topic_id = "", topic_id
    (found,) = await fetch(world, asked, version)
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.services.metrics.topics["orders"].failed_fetch_requests == 1
