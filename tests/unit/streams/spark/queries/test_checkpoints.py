"""What is kept of a query: where it began, and what its batches read."""

import json
from pathlib import Path
from typing import Any

import pytest

from streams.spark.files import Files
from streams.spark.queries.checkpoints import Checkpoint, StateLost
from streams.spark.queries.notes import Note, notes_folder, read_note, write_note


def _offsets(view: str, **partitions: int) -> dict[str, Any]:
    return {"version": 1, "topics": {"t": {name[1:]: at for name, at in partitions.items()}}, "view": view}


def _plan(checkpoint: Checkpoint, batch: int, *documents: dict[str, Any], version: str = "v1") -> None:
    folder = Path(checkpoint.location) / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(batch)).write_text("\n".join([version, "{}", *map(json.dumps, documents)]))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(Files(), str(tmp_path / "Q" / "0"))


def test_a_query_that_never_ran_has_no_start(checkpoint: Checkpoint) -> None:
    assert checkpoint.start() is None
    assert checkpoint.last_batch() == -1


def test_the_first_batch_begins_where_the_query_began(checkpoint: Checkpoint) -> None:
    checkpoint.begin({"S": _offsets("S", p0=5)})
    _plan(checkpoint, 0, _offsets("S", p0=7, p1=2))
    span = checkpoint.spans(0)["S"]
    assert (span.start, span.end) == ({("t", 0): 5}, {("t", 0): 7, ("t", 1): 2})
    assert span.changed == [("t", 0), ("t", 1)]


def test_later_batches_begin_where_the_ones_before_ended(checkpoint: Checkpoint) -> None:
    checkpoint.begin({"S": _offsets("S", p0=5)})
    _plan(checkpoint, 9, _offsets("S", p0=7, p1=2))
    _plan(checkpoint, 10, _offsets("S", p0=7, p1=3))
    assert checkpoint.last_batch() == 10
    assert checkpoint.spans(10)["S"].changed == [("t", 1)]


def test_a_source_without_offsets_yet_reads_nothing(checkpoint: Checkpoint) -> None:
    checkpoint.begin({"A": _offsets("A", p0=0), "B": _offsets("B", p0=0)})
    folder = Path(checkpoint.location) / "offsets"
    folder.mkdir(parents=True)
    (folder / "0").write_text("\n".join(["v1", "{}", "-", json.dumps(_offsets("B", p0=1))]))
    assert list(checkpoint.spans(0)) == ["B"]


def test_a_log_of_another_version_is_refused(checkpoint: Checkpoint) -> None:
    checkpoint.begin({"S": _offsets("S", p0=5)})
    _plan(checkpoint, 0, version="v99")
    with pytest.raises(StateLost, match="unknown|not known"):
        checkpoint.spans(0)


def test_notes_are_kept_while_a_batch_may_need_them(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = notes_folder(str(tmp_path / "Q" / "0"), "S", "t")
    for end in (5, 7, 9):
        write_note(folder, 0, end, Note(stream_time_ms=end))
    checkpoint.sweep(folder, {0: 7})
    assert [read_note(folder, 0, end) for end in (5, 7, 9)] == [None, Note(stream_time_ms=7), Note(stream_time_ms=9)]


def test_nothing_is_left_of_a_query_that_is_forgotten(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.begin({"S": _offsets("S", p0=5)})
    checkpoint.forget()
    assert not (tmp_path / "Q" / "0").exists()
