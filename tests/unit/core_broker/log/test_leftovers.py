from pathlib import Path

import pytest

from core_broker.log.leftovers import survey
from core_broker.protocol.records import Record, build_batch


def batches(*bases: int) -> bytes:
    return b"".join(build_batch([Record(value=b"v")], base_offset=base) for base in bases)


def name(base: int, suffix: str) -> str:
    return f"{base:020d}{suffix}"


def put(directory: Path, base: int, suffix: str, content: bytes = b"") -> None:
    (directory / name(base, suffix)).write_bytes(content)


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    assert survey(tmp_path / "a" / "t-0") == {}
    assert (tmp_path / "a" / "t-0").is_dir()


def test_files_come_with_their_sizes(tmp_path: Path) -> None:
    put(tmp_path, 0, ".log", b"12345")
    (tmp_path / "partition.metadata").write_text("x")
    assert survey(tmp_path) == {name(0, ".log"): 5, "partition.metadata": 1}


@pytest.mark.parametrize("suffix", [".log.deleted", ".index.deleted", ".log.cleaned", ".snapshot.tmp", ".timeindex"])
def test_what_nobody_needs_is_deleted(tmp_path: Path, suffix: str) -> None:
    put(tmp_path, 0, ".log")
    put(tmp_path, 7, suffix)
    assert list(survey(tmp_path)) == [name(0, ".log")]


def test_an_interrupted_swap_is_finished(tmp_path: Path) -> None:
    for base in (0, 10, 20, 30):
        put(tmp_path, base, ".log", batches(base))
        put(tmp_path, base, ".index", b"old")
        put(tmp_path, base, ".txnindex", b"old")
    put(tmp_path, 0, ".log.swap", batches(5, 25))
    put(tmp_path, 0, ".index.swap", b"new")
    files = survey(tmp_path)
    assert files == {
        name(0, ".log"): len(batches(5, 25)),
        name(0, ".index"): 3,
        name(30, ".log"): len(batches(30)),
        name(30, ".index"): 3,
        name(30, ".txnindex"): 3,
    }
    assert (tmp_path / name(0, ".index")).read_bytes() == b"new"


def test_a_swap_whose_log_was_renamed_keeps_its_new_index(tmp_path: Path) -> None:
    put(tmp_path, 0, ".log", batches(0))
    put(tmp_path, 0, ".index.swap", b"new")
    put(tmp_path, 0, ".index", b"old")
    survey(tmp_path)
    assert (tmp_path / name(0, ".index")).read_bytes() == b"new"


def test_a_damaged_swap_is_dropped_and_the_originals_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, 0, ".log", batches(0))
    put(tmp_path, 0, ".log.swap", batches(0)[:-5])
    put(tmp_path, 10, ".log", batches(10))
    files = survey(tmp_path)
    assert sorted(files) == [name(0, ".log"), name(10, ".log")]
    assert files[name(0, ".log")] == len(batches(0))
    assert "damaged result of a compaction deleted" in caplog.messages


def test_a_swap_is_void_while_one_before_it_is_still_being_cleaned(tmp_path: Path) -> None:
    put(tmp_path, 0, ".log", batches(0))
    put(tmp_path, 5, ".log.swap", batches(5))
    put(tmp_path, 0, ".log.cleaned", batches(0))
    assert list(survey(tmp_path)) == [name(0, ".log")]
