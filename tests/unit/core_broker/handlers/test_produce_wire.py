"""Produce is read and written by hand exactly as the codec would."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import ErrorCode
from core_broker.handlers.produce_wire import (
    PartitionResult,
    ProduceCall,
    TopicResult,
    read_request,
    reject_all,
    write_response,
)
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from core_broker.protocol.primitives import DecodeError

VERSIONS = range(14)
TOPIC_ID = bytes(range(16))


def request_of(version: int) -> ProduceRequest:
    return ProduceRequest(
        transactional_id="bank" if version >= 3 else None,
        acks=-1,
        timeout_ms=1234,
        topic_data=[
            TopicProduceData(
                name="" if version >= 13 else "orders" * 30,
                topic_id=TOPIC_ID if version >= 13 else bytes(16),
                partition_data=[
                    PartitionProduceData(0, b"first"),
                    PartitionProduceData(7, None),
                    PartitionProduceData(8, os.urandom(300)),
                ],
            ),
            TopicProduceData(name="" if version >= 13 else "empty", partition_data=[]),
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_is_read_as_the_codec_reads_it(version: int) -> None:
    message = request_of(version)
    call = read_request(memoryview(b"skipped" + encode(message, version)), 7, version)
    assert (call.transactional_id, call.acks, call.timeout_ms) == (message.transactional_id, -1, 1234)
    assert [topic.name for topic in call.topics] == [topic.name for topic in message.topic_data]
    assert [[(p.index, p.records) for p in topic.partitions] for topic in call.topics] == [
        [(p.index, p.records) for p in topic.partition_data] for topic in message.topic_data
    ]
    assert call.topics[0].key == (TOPIC_ID if version >= 13 else ("orders" * 30).encode())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("message", "single"),
    [
        (None, []),
        ("the batch is too large" * 20, []),
        ("two are bad", [(1, "no schema id"), (300, "not registered" * 20)]),
        ("many are bad", [(index, "ä") for index in range(200)]),
    ],
)
def test_a_response_is_written_as_the_codec_writes_it(
    version: int, message: str | None, single: list[tuple[int, str]]
) -> None:
    key = TOPIC_ID if version >= 13 else b"orders"
    results = [TopicResult(key, [PartitionResult(3, 10, 77, 88, 99, message, single), PartitionResult(4)])]
    errors = [BatchIndexAndErrorMessage(index, text) for index, text in single]
    expected = ProduceResponse(
        [
            TopicProduceResponse(
                "" if version >= 13 else "orders",
                TOPIC_ID if version >= 13 else bytes(16),
                [
                    PartitionProduceResponse(3, 10, 77, 88, 99, errors, error_message=message),
                    PartitionProduceResponse(4, 0, -1, -1, -1),
                ],
            )
        ]
    )
    raw = write_response(results, version, 42)
    assert int.from_bytes(raw[:4]) == len(raw) - 4
    assert int.from_bytes(raw[4:8]) == 42
    body = raw[9:] if version >= 9 else raw[8:]
    assert body == encode(expected, version)
    assert decode(ProduceResponse, version, body).responses[0].partition_responses[0].base_offset == 77


@pytest.mark.parametrize("version", [0, 3, 8, 9, 12, 13])
def test_a_request_cut_anywhere_is_refused_or_read_within_its_bounds(version: int) -> None:
    raw = encode(request_of(version), version)
    for length in range(len(raw)):
        with pytest.raises(DecodeError):
            read_request(memoryview(raw[:length]), 0, version)


@given(raw=st.binary(max_size=200), version=st.sampled_from([3, 8, 9, 13]))
def test_random_bytes_never_do_more_than_raise_a_decode_error(raw: bytes, version: int) -> None:
    try:
        call = read_request(memoryview(raw), 0, version)
    except DecodeError:
        return
    assert isinstance(call, ProduceCall)


@pytest.mark.parametrize("version", [3, 9])
def test_an_array_longer_than_the_frame_takes_no_memory(version: int) -> None:
    count = b"\x7f\xff\xff\xff" if version < 9 else b"\xff\xff\xff\xff\x0f"
    null_id = b"\xff\xff" if version < 9 else b"\x00"
    with pytest.raises(DecodeError, match="elements"):
        read_request(memoryview(null_id + b"\xff\xff\0\0\0\0" + count), 0, version)


def test_a_refusal_names_every_partition() -> None:
    call = read_request(memoryview(encode(request_of(9), 9)), 0, 9)
    (first, second) = reject_all(call, ErrorCode.INVALID_REQUIRED_ACKS)
    assert [(p.index, p.error) for p in first.partitions] == [(0, 21), (7, 21), (8, 21)]
    assert second.partitions == []
