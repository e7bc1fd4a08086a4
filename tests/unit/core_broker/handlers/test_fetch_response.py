"""The hand-written answer to Fetch is what the codec would write."""

import os
from pathlib import Path

import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers.fetch_response import SENDFILE_BYTES_MIN, FetchResponse, ReadResult
from core_broker.handlers.fetch_sessions import FetchEntry
from core_broker.log.log_file import LogFile
from core_broker.log.segment_chain import LogSlice
from core_broker.protocol.fields import decode
from core_broker.protocol.messages import fetch as wire

TOPIC_ID = bytes(range(16))


def joined(chunks: list[bytearray | bytes | LogSlice]) -> bytes:
    """The answer as a client would read it."""
    return b"".join(
        os.pread(chunk.file.fd, chunk.length, chunk.position) if isinstance(chunk, LogSlice) else chunk
        for chunk in chunks
    )


@pytest.fixture
def big_slice(tmp_path: Path) -> LogSlice:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 10 + os.urandom(SENDFILE_BYTES_MIN))
    return LogSlice(LogFile(path), 10, SENDFILE_BYTES_MIN, 99)


@pytest.fixture
def small_slice(big_slice: LogSlice) -> LogSlice:
    return LogSlice(big_slice.file, 5, 1000, 99)


@pytest.mark.parametrize("version", range(4, 19))
def test_it_reads_back_in_every_version(version: int, big_slice: LogSlice, small_slice: LogSlice) -> None:
    name, topic_id = ("", TOPIC_ID) if version >= 13 else ("orders", bytes(16))
    results = [
        ReadResult(FetchEntry(name, topic_id, 0), ErrorCode.NONE, 100, 90, 5, big_slice, [(7, 8), (9, 10)]),
        ReadResult(FetchEntry(name, topic_id, 1), ErrorCode.NONE, 100, 90, 5, small_slice),
        ReadResult(FetchEntry(name, topic_id, 2), ErrorCode.OFFSET_OUT_OF_RANGE),
    ]
    raw = joined(FetchResponse(version, 42).build(results, session_id=77))
    assert int.from_bytes(raw[:4]) == len(raw) - 4
    assert int.from_bytes(raw[4:8]) == 42
    response = decode(wire.FetchResponse, version, raw, 9 if version >= 12 else 8)
    assert response.session_id == (77 if version >= 7 else 0)
    (topic,) = response.responses
    assert (topic.topic, topic.topic_id) == (name, topic_id)
    first, second, third = topic.partitions
    assert first.records == joined([big_slice])
    assert [(t.producer_id, t.first_offset) for t in first.aborted_transactions or ()] == [(7, 8), (9, 10)]
    assert (first.high_watermark, first.last_stable_offset) == (100, 90)
    assert second.records == joined([small_slice])
    assert second.aborted_transactions is None
    assert third.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert third.records == b""


def test_a_diverging_history_is_told_from_version_12_on() -> None:
    result = ReadResult(FetchEntry("orders", bytes(16), 0), diverging=(3, 1234))
    raw = joined(FetchResponse(12, 1).build([result], session_id=0))
    partition = decode(wire.FetchResponse, 12, raw, 9).responses[0].partitions[0]
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (3, 1234)


def test_large_data_is_not_copied(big_slice: LogSlice) -> None:
    chunks = FetchResponse(12, 1).build(
        [ReadResult(FetchEntry("orders", bytes(16), 0), ErrorCode.NONE, 1, 1, 0, big_slice)], session_id=0
    )
    assert big_slice in chunks


def test_only_partitions_with_news_are_news() -> None:
    entry = FetchEntry("orders", bytes(16), 0, sent_high_watermark=10, sent_start_offset=0)
    assert not ReadResult(entry, ErrorCode.NONE, 10, 10, 0).has_changed
    assert ReadResult(entry, ErrorCode.NONE, 11, 11, 0).has_changed
    assert ReadResult(entry, ErrorCode.NONE, 10, 10, 1).has_changed
    assert ReadResult(entry, ErrorCode.UNKNOWN_TOPIC_ID, 10, 10, 0).has_changed
