"""The index of aborted transactions: order, search, truncation, damage."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.log.transaction_index import (
    AbortedTransaction,
    CorruptIndexError,
    TransactionIndex,
    write_transaction_index,
)

FIRST = AbortedTransaction(producer_id=1, first_offset=0, last_offset=9, last_stable_offset=5)
SECOND = AbortedTransaction(producer_id=2, first_offset=5, last_offset=12, last_stable_offset=13)
THIRD = AbortedTransaction(producer_id=1, first_offset=20, last_offset=25, last_stable_offset=26)


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    index = TransactionIndex(tmp_path / "00000000000000000000.txnindex")
    for aborted in (FIRST, SECOND, THIRD):
        index.append(aborted)
    return index


def test_file_is_created_with_the_first_entry(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "0.txnindex")
    assert index.entries() == []
    assert not index.path.exists()
    index.append(FIRST)
    assert index.path.read_bytes() == struct.pack(">hqqqq", 0, 1, 0, 9, 5)


def test_entries_survive_a_restart(index: TransactionIndex) -> None:
    assert TransactionIndex(index.path).entries() == [FIRST, SECOND, THIRD]


def test_marker_before_the_last_one_is_refused(index: TransactionIndex) -> None:
    with pytest.raises(ValueError, match="not after"):
        index.append(AbortedTransaction(3, 1, 25, 26))


def test_collect_finds_transactions_touching_the_range(index: TransactionIndex) -> None:
    assert index.collect(10, 13) == ([SECOND], True)
    assert index.collect(0, 30) == ([FIRST, SECOND, THIRD], False)
    assert index.collect(13, 20) == ([], True)


def test_collect_stops_where_the_last_stable_offset_reaches_the_end(index: TransactionIndex) -> None:
    found, is_complete = index.collect(0, 5)
    assert found == [FIRST]
    assert is_complete


def test_truncation_drops_markers_at_or_above_the_offset(index: TransactionIndex) -> None:
    index.truncate_to(12)
    assert index.entries() == [FIRST]
    assert TransactionIndex(index.path).entries() == [FIRST]
    index.append(SECOND)
    assert TransactionIndex(index.path).entries() == [FIRST, SECOND]


def test_reset_removes_the_file(index: TransactionIndex) -> None:
    index.reset()
    assert not index.path.exists()
    assert index.entries() == []


def test_whole_index_is_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "0.txnindex"
    write_transaction_index(path, [])
    assert not path.exists()
    write_transaction_index(path, [FIRST, SECOND])
    assert TransactionIndex(path).entries() == [FIRST, SECOND]


@given(length=st.integers(1, 101).filter(lambda length: length % 34))
def test_torn_file_is_detected(length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("index") / "0.txnindex"
    write_transaction_index(path, [FIRST, SECOND, THIRD])
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CorruptIndexError):
        TransactionIndex(path).check()


@pytest.mark.parametrize("position", [0, 1, 2, 10, 18, 34, 35])
def test_impossible_values_are_detected(index: TransactionIndex, position: int) -> None:
    data = bytearray(index.path.read_bytes())
    data[position] ^= 0x80
    index.path.write_bytes(bytes(data))
    with pytest.raises(CorruptIndexError):
        index.check()


def test_marker_before_its_segment_is_detected(index: TransactionIndex) -> None:
    with pytest.raises(CorruptIndexError, match="before the segment"):
        index.check(base_offset=10)
