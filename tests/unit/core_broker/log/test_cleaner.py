"""The passes of compaction: pacing, aborted transactions, reading segments."""

import threading
from pathlib import Path

import pytest
from typing_extensions import override

from core_broker.log.cleaner import AbortedLookup, CleaningStoppedError, Pacer, SourceSegment, iterate_batches
from core_broker.log.transaction_index import AbortedTransaction, write_transaction_index
from core_broker.protocol.records import CorruptBatch, Record, build_batch
from core_broker.service.clock import ManualClock


class RecordingEvent(threading.Event):
    """Notes how long it was waited for, and lets the clock go on by as much."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.waits: list[float] = []

    @override
    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self.clock.advance(round(timeout * 1000))
        return self.is_set()


def test_pacer_keeps_to_the_bytes_per_second() -> None:
    clock = ManualClock()
    stop = RecordingEvent(clock)
    pacer = Pacer(clock, stop, bytes_per_second=1_000_000)
    for _ in range(10):
        pacer.note_work(1, 500_000)
    assert sum(stop.waits) == pytest.approx(5.0)


def test_pacer_lets_the_event_loop_in_after_some_records() -> None:
    clock = ManualClock()
    stop = RecordingEvent(clock)
    pacer = Pacer(clock, stop)
    for _ in range(100):
        pacer.note_work(50, 1000)
    assert 10 <= len(stop.waits) <= 30
    assert max(stop.waits) < 0.01


def test_pacer_stops_the_work_when_asked() -> None:
    clock = ManualClock()
    stop = RecordingEvent(clock)
    pacer = Pacer(clock, stop)
    stop.set()
    with pytest.raises(CleaningStoppedError):
        pacer.note_work(1_000_000, 0)


def source(directory: Path, base_offset: int, end_offset: int, data: bytes = b"") -> SourceSegment:
    log_path = directory / f"{base_offset}.log"
    log_path.write_bytes(data)
    return SourceSegment(
        base_offset=base_offset,
        end_offset=end_offset,
        size_bytes=len(data),
        index_bytes=0,
        log_path=log_path,
        transaction_index_path=directory / f"{base_offset}.txnindex",
    )


def test_transaction_aborted_in_a_later_segment_is_found(tmp_path: Path) -> None:
    segments = [source(tmp_path, 0, 10), source(tmp_path, 10, 20)]
    early = AbortedTransaction(1, 5, 12, 13)
    late = AbortedTransaction(2, 3, 25, 30)
    write_transaction_index(segments[1].transaction_index_path, [early])
    write_transaction_index(tmp_path / "active.txnindex", [late])
    lookup = AbortedLookup(segments, [tmp_path / "active.txnindex"])
    assert lookup.touching(segments[0]) == [early]
    assert lookup.touching(segments[1]) == [early, late]


def test_search_for_aborted_transactions_ends_where_the_last_stable_offset_says(tmp_path: Path) -> None:
    segments = [source(tmp_path, 0, 10), source(tmp_path, 10, 20)]
    write_transaction_index(segments[0].transaction_index_path, [AbortedTransaction(1, 2, 9, 10)])
    segments[1].transaction_index_path.write_bytes(b"garbage that nobody needs to read")
    lookup = AbortedLookup(segments, [])
    assert lookup.touching(segments[0]) == [AbortedTransaction(1, 2, 9, 10)]


def test_batches_of_any_size_are_read(tmp_path: Path) -> None:
    large = build_batch([Record(-1, 0, b"k", b"x" * 5_000_000)], base_offset=1)
    small = build_batch([Record(-1, 0, b"k", b"v")])
    last = build_batch([Record(-1, 0, b"k", b"v")], base_offset=2)
    segment = source(tmp_path, 0, 3, bytes(small + large + last))
    assert [(header.base_offset, len(batch)) for header, batch in iterate_batches(segment)] == [
        (0, len(small)),
        (1, len(large)),
        (2, len(last)),
    ]


@pytest.mark.parametrize("cut", [1, 30, 60, 61, 70])
def test_segment_that_ends_within_a_batch_is_refused(tmp_path: Path, cut: int) -> None:
    batch = build_batch([Record(-1, 0, b"key", b"a value of some length")])
    segment = source(tmp_path, 0, 3, bytes(batch + batch[:cut]))
    with pytest.raises(CorruptBatch):
        list(iterate_batches(segment))
