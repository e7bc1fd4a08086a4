"""Produce: what is accepted, what is refused, and that each partition has an answer of its own."""

import pytest

from core_broker.errors import RECORD_ERRORS_MAX, ErrorCode
from core_broker.handlers.produce import AcksNoneFailed
from core_broker.protocol.compression import Codec
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from tests.support.handler_world import HandlerWorld

NOW_MS = 1_700_000_000_000


def batch(*values: bytes, sequence: int = -1, producer_id: int = -1, transactional: bool = False) -> bytes:
    records = [Record(timestamp=NOW_MS, value=value) for value in values]
    epoch = 0 if producer_id >= 0 else -1
    return bytes(
        build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def request(
    *parts: tuple[str, int, bytes | None], acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    topics: dict[str, TopicProduceData] = {}
    for topic, index, records in parts:
        data = topics.setdefault(topic, TopicProduceData(name=topic, partition_data=[]))
        data.partition_data.append(PartitionProduceData(index, records))
    return ProduceRequest(transactional_id, acks, 1000, list(topics.values()))


async def produce(world: HandlerWorld, sent: ProduceRequest, version: int = 9) -> list[PartitionProduceResponse]:
    response = await world.call(sent, ProduceResponse, version)
    return [result for topic in response.responses for result in topic.partition_responses]


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
async def test_an_append_is_answered_with_its_first_offset(world: HandlerWorld, version: int, acks: int) -> None:
    await world.create("orders")
    (first,) = await produce(world, request(("orders", 0, batch(b"a", b"b")), acks=acks), version)
    (second,) = await produce(world, request(("orders", 0, batch(b"c")), acks=acks), version)
    assert [(r.error_code, r.base_offset) for r in (first, second)] == [(0, 0), (0, 2)]
    assert world.partition("orders").high_watermark == 3


async def test_from_version_13_on_topics_go_by_their_id(world: HandlerWorld) -> None:
    topic_id = await world.create("orders")
    sent = ProduceRequest(
        None, -1, 1000, [TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(0, batch(b"a"))])]
    )
    response = await world.call(sent, ProduceResponse, 13)
    assert response.responses[0].topic_id == topic_id
    assert response.responses[0].partition_responses[0].error_code == 0
    sent.topic_data[0].topic_id = bytes(range(16))
    (refused,) = await produce(world, sent, 13)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_one_bad_partition_does_not_hide_the_fate_of_the_others(world: HandlerWorld) -> None:
    await world.create("orders", 2)
    broken = bytearray(batch(b"x"))
    broken[-1] ^= 1
    results = await produce(
        world,
        request(
            ("orders", 0, batch(b"a")),
            ("orders", 1, bytes(broken)),
            ("orders", 7, batch(b"a")),
            ("missing", 0, batch(b"a")),
        ),
    )
    assert [ErrorCode(result.error_code) for result in results] == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [result.base_offset for result in results] == [0, -1, -1, -1]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_old_message_formats_are_refused_politely(world: HandlerWorld, version: int) -> None:
    await world.create("orders")
    (result,) = await produce(world, request(("orders", 0, b"old message set")), version)
    assert result.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("acks", [2, -2, 100])
async def test_acks_other_than_0_1_and_all_are_refused(world: HandlerWorld, acks: int) -> None:
    await world.create("orders")
    (result,) = await produce(world, request(("orders", 0, batch(b"a")), acks=acks))
    assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert world.partition("orders").log.end_offset == 0


async def test_acks_0_is_not_answered_and_a_failure_closes_the_connection(world: HandlerWorld) -> None:
    await world.create("orders")
    assert await world.send(request(("orders", 0, batch(b"a")), acks=0), 9) is None
    assert world.partition("orders").log.end_offset == 1
    with pytest.raises(AcksNoneFailed):
        await world.send(request(("missing", 0, batch(b"a")), acks=0), 9)


@pytest.mark.parametrize("records", [None, b"", b"too short"])
async def test_a_partition_without_a_whole_batch_is_refused(world: HandlerWorld, records: bytes | None) -> None:
    await world.create("orders")
    (result,) = await produce(world, request(("orders", 0, records)))
    assert result.error_code == ErrorCode.CORRUPT_MESSAGE


async def test_clients_do_not_write_to_internal_topics(world: HandlerWorld) -> None:
    await world.services.topic_creation.ensure_internal_topic("__consumer_offsets")
    (result,) = await produce(world, request(("__consumer_offsets", 0, batch(b"a"))))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_retried_batch_is_answered_with_its_original_offset(world: HandlerWorld) -> None:
    await world.create("orders")
    sent = batch(b"a", b"b", sequence=0, producer_id=7)
    (first,) = await produce(world, request(("orders", 0, sent)))
    await produce(world, request(("orders", 0, batch(b"c", sequence=2, producer_id=7))))
    (again,) = await produce(world, request(("orders", 0, sent)))
    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert world.partition("orders").log.end_offset == 3


async def test_a_gap_in_the_sequence_is_refused(world: HandlerWorld) -> None:
    await world.create("orders")
    await produce(world, request(("orders", 0, batch(b"a", sequence=0, producer_id=7))))
    (result,) = await produce(world, request(("orders", 0, batch(b"c", sequence=2, producer_id=7))))
    assert result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("version", range(3, 13))
async def test_the_records_without_a_key_are_named_from_version_8_on(world: HandlerWorld, version: int) -> None:
    await world.create("orders", cleanup_policy="compact")
    records = [Record(timestamp=NOW_MS, key=key, value=b"v") for key in (b"k", None, b"k", None)]
    (result,) = await produce(world, request(("orders", 0, bytes(build_batch(records)))), version)
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    errors = [(error.batch_index, error.batch_index_error_message) for error in result.record_errors]
    if version < 8:
        assert (errors, result.error_message) == ([], None)
    else:
        reason = "a record of a compacted topic must have a key"
        assert errors == [(1, reason), (3, reason)]
        assert result.error_message == f"record 1: {reason}; record 3: {reason}; no record of the batch was written"
    assert world.partition("orders").log.end_offset == 0


async def test_an_answer_names_a_limited_number_of_records_but_one_of_each_batch(world: HandlerWorld) -> None:
    await world.create("orders", cleanup_policy="compact")
    keyless = [Record(timestamp=NOW_MS)] * (RECORD_ERRORS_MAX - 1)
    many = bytes(build_batch(keyless, codec=Codec.ZSTD))
    results = await produce(world, request(*[("orders", 0, many)] * 4))
    assert [len(result.record_errors) for result in results] == [RECORD_ERRORS_MAX - 1, 1, 1, 1]


async def test_a_transactional_batch_needs_a_transactional_id(world: HandlerWorld) -> None:
    await world.create("orders")
    sent = batch(b"a", sequence=0, producer_id=7, transactional=True)
    (result,) = await produce(world, request(("orders", 0, sent)))
    assert result.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_topic_that_asks_for_the_disk_is_flushed_before_the_answer(world: HandlerWorld) -> None:
    await world.create("orders", flush_messages="1")
    (result,) = await produce(world, request(("orders", 0, batch(b"a"))))
    assert result.error_code == 0
    assert world.partition("orders").log.recovery_point == 1


async def test_without_that_the_answer_does_not_wait_for_the_disk(world: HandlerWorld) -> None:
    await world.create("orders")
    await produce(world, request(("orders", 0, batch(b"a"))))
    assert world.partition("orders").log.recovery_point == 0


async def test_traffic_and_refusals_are_counted(world: HandlerWorld) -> None:
    await world.create("orders")
    await produce(world, request(("orders", 0, batch(b"a", b"b"))))
    await produce(world, request(("orders", 9, batch(b"a"))))
    traffic = world.services.metrics.topics["orders"]
    assert (traffic.messages_in, traffic.produce_requests, traffic.failed_produce_requests) == (2, 1, 1)
    await produce(world, request(("invented", 0, batch(b"a"))))
    assert "invented" not in world.services.metrics.topics
