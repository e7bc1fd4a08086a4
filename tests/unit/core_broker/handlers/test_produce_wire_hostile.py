"""Produce requests are read by hand: hostile ones meet the same limits as in the codec, and both read the same."""

import pytest

from core_broker.handlers.produce_wire import PartitionRecords, ProduceCall, read_request
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.produce import ProduceRequest
from core_broker.protocol.primitives import DecodeError, uvarint
from tests.support.hostile import mutate
from tests.support.memory import PeakMemory
from tests.support.messages import MessageFactory

VERSIONS = range(ProduceRequest.VERSIONS[0], ProduceRequest.VERSIONS[1] + 1)
ROUNDS = 3_000


def content(call: ProduceCall) -> object:
    topics = [(bytes(topic.key), [partition_content(part) for part in topic.partitions]) for topic in call.topics]
    return call.transactional_id, call.acks, call.timeout_ms, topics


def partition_content(part: PartitionRecords) -> tuple[int, bytes | None]:
    return part.index, None if part.records is None else bytes(part.records)


def expected(request: ProduceRequest, version: int) -> object:
    topics = [
        (
            topic.topic_id if version >= 13 else topic.name.encode(),
            [(part.index, part.records) for part in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, topics


@pytest.mark.parametrize("version", VERSIONS)
def test_hand_and_codec_read_the_same_or_both_refuse(version: int) -> None:
    factory = MessageFactory(seed=version)
    refused = 0
    with PeakMemory() as memory:
        for _ in range(ROUNDS):
            hostile = mutate(factory.random, bytes(encode(factory.make(ProduceRequest, version), version)))
            try:
                wanted = expected(decode(ProduceRequest, version, hostile), version)
            except DecodeError:
                refused += 1
                with pytest.raises(DecodeError):
                    read_request(memoryview(bytearray(hostile)), 0, version)
            else:
                assert content(read_request(memoryview(bytearray(hostile)), 0, version)) == wanted
    assert refused > ROUNDS / 4
    assert memory.growth_bytes < 32 << 20


def test_topics_without_end_are_refused_before_they_take_memory() -> None:
    hostile = b"\x00" + b"\x00\x01\x00\x00\x00\x00" + uvarint(0xFFFFFFFF) + bytes(100)
    with pytest.raises(DecodeError):
        read_request(memoryview(bytearray(hostile)), 0, 9)
