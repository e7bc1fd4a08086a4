"""Produce to guarded topics: what is answered in which version, and what is appended."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from core_broker.cluster.controller.configs import ConfigChange
from core_broker.cluster.controller.topics import NewTopic
from core_broker.cluster.metadata import ResourceType
from core_broker.errors import BrokerError, ErrorCode
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
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.fake_registry import FakeRegistry
from tests.support.handler_world import HandlerWorld

NOW_MS = 1_700_000_000_000


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path, registry: FakeRegistry) -> AsyncIterator[HandlerWorld]:
    settings = BrokerSettings(confluent_schema_registry_url=(registry.url,))
    world = HandlerWorld(tmp_path, settings, ManualClock(NOW_MS))
    await world.register()
    yield world
    await world.close()


async def guard(world: HandlerWorld, topic: str) -> bytes:
    return await world.create(topic, confluent_value_schema_validation="true")


def framed(schema_id: int, payload: bytes = b"payload") -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def batch(*values: bytes | None, codec: Codec = Codec.NONE, sequence: int = -1) -> bytes:
    records = [Record(timestamp=NOW_MS, value=value) for value in values]
    if sequence < 0:
        return bytes(build_batch(records, codec=codec))
    return bytes(build_batch(records, codec=codec, producer_id=1, producer_epoch=0, base_sequence=sequence))


def request(*parts: tuple[str, int, bytes], acks: int = -1) -> ProduceRequest:
    topics = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(i, b)]) for topic, i, b in parts]
    return ProduceRequest(None, acks, 1000, topics)


async def produce(world: HandlerWorld, sent: ProduceRequest, version: int = 9) -> list[PartitionProduceResponse]:
    response = await world.call(sent, ProduceResponse, version)
    return [result for topic in response.responses for result in topic.partition_responses]


@pytest.mark.parametrize("version", range(3, 13))
async def test_a_bad_record_refuses_its_batch_and_is_named_from_version_8_on(
    world: HandlerWorld, registry: FakeRegistry, version: int
) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    (result,) = await produce(
        world, request(("orders", 0, batch(framed(good), b"plain", framed(good), framed(99)))), version
    )
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    errors = [(error.batch_index, error.batch_index_error_message) for error in result.record_errors]
    if version < 8:
        assert (errors, result.error_message) == ([], None)
    else:
        assert errors == [
            (1, "value begins with byte 112, not with a zero byte and the id of its schema"),
            (3, "value: schema 99 is not registered under subject orders-value"),
        ]
        assert result.error_message is not None
        assert result.error_message.startswith("record 1: ")
    assert world.partition("orders").log.end_offset == 0
    assert world.services.metrics.topic("orders").unregistered_records == 2


async def test_from_version_13_on_guarded_topics_go_by_their_id_too(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    topic_id = await guard(world, "orders")
    data = [PartitionProduceData(0, batch(b"plain"))]
    sent = ProduceRequest(None, -1, 1000, [TopicProduceData(topic_id=topic_id, partition_data=data)])
    (result,) = await produce(world, sent, 13)
    assert result.error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec))
async def test_compressed_batches_are_looked_into_and_stored_as_they_came(
    world: HandlerWorld, registry: FakeRegistry, codec: Codec
) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    (bad,) = await produce(world, request(("orders", 0, batch(framed(good), b"plain", codec=codec))))
    (fine,) = await produce(world, request(("orders", 0, batch(framed(good), None, codec=codec))))
    assert (bad.error_code, fine.error_code, fine.base_offset) == (ErrorCode.INVALID_RECORD, 0, 0)
    ((_, stored),) = world.partition("orders").log.read_batches(0, 2)
    assert bytes(stored)[21:] == batch(framed(good), None, codec=codec)[21:]


async def test_other_topics_of_the_same_request_are_written_and_not_looked_at(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    await guard(world, "orders")
    await world.create("free")
    results = await produce(world, request(("orders", 0, batch(b"plain")), ("free", 0, batch(b"plain"))))
    assert [ErrorCode(result.error_code) for result in results] == [ErrorCode.INVALID_RECORD, ErrorCode.NONE]
    garbage = bytearray(batch(b"records that nobody could read"))
    garbage[61:] = bytes(len(garbage) - 61)
    struct.pack_into(">I", garbage, 17, crc32c(garbage[21:]))
    (result,) = await produce(world, request(("free", 0, bytes(garbage))))
    assert result.error_code == 0
    assert registry.asked == []
    assert world.partition("free").log.end_offset == 2


async def test_a_partition_that_is_named_twice_cannot_smuggle_a_bad_batch(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    sent = request(("orders", 0, batch(b"plain")), ("orders", 0, batch(framed(good))))
    results = await produce(world, sent)
    assert [result.error_code for result in results] == [ErrorCode.INVALID_RECORD] * 2
    assert world.partition("orders").log.end_offset == 0


async def test_damaged_batches_are_told_from_bad_records(world: HandlerWorld, registry: FakeRegistry) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    damaged = bytearray(batch(framed(good)))
    damaged[-1] ^= 1
    (result,) = await produce(world, request(("orders", 0, bytes(damaged))))
    assert result.error_code == ErrorCode.CORRUPT_MESSAGE
    (result,) = await produce(world, request(("orders", 0, b"short")))
    assert result.error_code == ErrorCode.CORRUPT_MESSAGE
    assert result.record_errors == []


async def test_late_timestamps_of_a_guarded_topic_are_named_and_not_counted_as_unregistered(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    good = framed(registry.register("orders-value").id)
    await guard(world, "orders")
    records = [Record(timestamp=NOW_MS, value=good), Record(timestamp=NOW_MS + 10**9, value=good)]
    (result,) = await produce(world, request(("orders", 0, bytes(build_batch(records)))))
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in result.record_errors] == [1]
    assert world.services.metrics.topic("orders").unregistered_records == 0


async def test_a_batch_that_unfolds_to_more_than_is_allowed_is_refused_as_a_whole(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    await guard(world, "orders")
    bomb = bytes(build_batch([Record(timestamp=NOW_MS, value=bytes(65 * 1024 * 1024))], codec=Codec.ZSTD))
    (result,) = await produce(world, request(("orders", 0, bomb)))
    assert (result.error_code, result.record_errors) == (ErrorCode.INVALID_RECORD, [])
    assert "decompresses to more than" in (result.error_message or "")
    assert registry.asked == []


async def test_without_a_registry_producers_are_told_to_send_again(world: HandlerWorld, registry: FakeRegistry) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    registry.stop()
    (result,) = await produce(world, request(("orders", 0, batch(framed(good)))))
    assert (result.error_code, result.record_errors) == (ErrorCode.NOT_ENOUGH_REPLICAS, [])
    assert "127.0.0.1" in (result.error_message or "")
    registry.start()
    world.clock.advance(1000)
    (result,) = await produce(world, request(("orders", 0, batch(framed(good)))))
    assert (result.error_code, result.base_offset) == (0, 0)


async def test_acks_0_closes_the_connection_of_whoever_sent_a_bad_record(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    for bad in (batch(b"plain"), batch(framed(99)), batch(framed(99))):
        with pytest.raises(AcksNoneFailed):
            await world.send(request(("orders", 0, bad), acks=0), 9)
    assert await world.send(request(("orders", 0, batch(framed(good))), acks=0), 9) is None
    assert world.partition("orders").log.end_offset == 1


async def test_a_batch_that_waited_is_appended_though_its_frame_was_used_again(
    world: HandlerWorld, registry: FakeRegistry
) -> None:
    good = registry.register("orders-value").id
    await guard(world, "orders")
    (result,) = await produce(world, request(("orders", 0, batch(framed(good, b"a"), sequence=0))))
    (again,) = await produce(world, request(("orders", 0, batch(framed(good, b"a"), sequence=0))))
    assert (result.base_offset, again.base_offset) == (0, 0)
    assert world.partition("orders").log.end_offset == 1


async def test_a_guard_that_is_taken_off_lets_everything_in(world: HandlerWorld, registry: FakeRegistry) -> None:
    await world.create("orders")
    assert world.partitions.guarded == {}
    resource = (ResourceType.TOPIC, "orders")
    on = ConfigChange(key="confluent.value.schema.validation", value="true")
    off = ConfigChange(key="confluent.value.schema.validation", value="false")
    await world.controller.alter_configs([(resource, [on])])
    (result,) = await produce(world, request(("orders", 0, batch(b"plain"))))
    assert result.error_code == ErrorCode.INVALID_RECORD
    await world.controller.alter_configs([(resource, [off])])
    (result,) = await produce(world, request(("orders", 0, batch(b"plain"))))
    assert (result.error_code, world.partitions.guarded) == (0, {})


async def test_a_topic_is_not_guarded_without_a_registry_to_ask(tmp_path: Path) -> None:
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(NOW_MS))
    await world.register()
    configs = {"confluent.key.schema.validation": "true"}
    (result,) = await world.controller.create_topics([NewTopic(name="orders", partition_count=1, configs=configs)])
    assert isinstance(result, BrokerError)
    assert result.code is ErrorCode.INVALID_CONFIG
    assert "confluent.schema.registry.url" in result.message
    await world.close()


async def test_a_guarded_topic_stays_closed_when_the_broker_forgets_its_registry(
    tmp_path: Path, registry: FakeRegistry
) -> None:
    settings = BrokerSettings(confluent_schema_registry_url=(registry.url,))
    world = HandlerWorld(tmp_path, settings, ManualClock(NOW_MS))
    await world.register()
    await guard(world, "orders")
    await world.close()
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(NOW_MS))
    await world.register()
    (result,) = await produce(world, request(("orders", 0, batch(framed(1)))))
    assert result.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert "confluent.schema.registry.url" in (result.error_message or "")
    await world.close()


async def test_deleting_a_topic_takes_its_guard_along(world: HandlerWorld) -> None:
    topic_id = await guard(world, "orders")
    assert list(world.partitions.guarded) == ["orders"]
    await world.controller.delete_topics([topic_id])
    assert world.partitions.guarded == {}


async def test_a_waiting_batch_finds_its_topic_deleted(world: HandlerWorld, registry: FakeRegistry) -> None:
    topic_id = await guard(world, "orders")
    registry.go.clear()
    waiting = asyncio.ensure_future(produce(world, request(("orders", 0, batch(framed(1))))))
    assert await asyncio.to_thread(registry.asked_now.acquire, timeout=10)
    await world.controller.delete_topics([topic_id])
    registry.go.set()
    (result,) = await waiting
    assert result.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
