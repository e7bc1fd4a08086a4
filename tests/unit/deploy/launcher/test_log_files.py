import logging
from pathlib import Path
from typing import TextIO, cast

import pytest

from core_broker.service import logs
from deploy.launcher.log_files import OLD_FILES, LogFile, LogStream, old_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.log"


def test_each_start_begins_a_new_file_and_few_old_ones_are_kept(path: Path) -> None:
    for number in range(5):
        log = LogFile(path)
        log.begin()
        log.write(f"run {number}\n".encode())
        log.close()
    assert [old_file(path, number).read_text() for number in range(OLD_FILES + 1)] == ["run 4\n", "run 3\n", "run 2\n"]
    assert len(list(path.parent.iterdir())) == OLD_FILES + 1


def test_an_empty_file_is_not_kept_as_an_old_one(path: Path) -> None:
    for _ in range(2):
        log = LogFile(path)
        log.begin()
        log.close()
    assert list(path.parent.iterdir()) == [path]


def test_all_files_together_stay_below_their_bound_whatever_is_written(path: Path) -> None:
    log = LogFile(path, bytes_max=1_000)
    log.begin()
    for number in range(2_000):
        log.write(b"%d a line of a service that talks and talks\n" % number)
    log.close()
    sizes = [file.stat().st_size for file in path.parent.iterdir()]
    assert len(sizes) == OLD_FILES + 1
    assert max(sizes) <= 1_000
    assert path.read_text().splitlines()[-1].startswith("1999 ")


def test_the_last_lines_are_remembered_with_one_that_is_not_finished(path: Path) -> None:
    log = LogFile(path)
    log.write(b"one\ntwo\nth")
    log.write(b"ree\nfour")
    log.close()
    assert log.last_lines(3) == ["two", "three", "four"]


def test_memory_is_bounded_when_a_line_never_ends(path: Path) -> None:
    log = LogFile(path, bytes_max=1_000_000)
    for _ in range(100):
        log.write(b"x" * 10_000)
    log.close()
    assert sum(map(len, log.last_lines(40))) < 10_000


def test_a_file_that_cannot_be_written_stops_no_service_and_is_tried_again(path: Path) -> None:
    log = LogFile(path.parent / "later" / path.name)
    log.write(b"lost\n")
    log.path.parent.mkdir()
    log.write(b"kept\n")
    log.close()
    assert log.path.read_bytes() == b"kept\n"
    assert log.last_lines(2) == ["lost", "kept"]


def test_notes_of_the_launcher_look_like_lines_of_the_service(path: Path) -> None:
    log = LogFile(path)
    log.note("broker started  pid=7", now_ms=1_700_000_000_123)
    log.close()
    assert path.read_text() == "2023-11-14 22:13:20.123 INFO    launcher: broker started  pid=7\n"


def test_the_launchers_own_logs_go_to_its_file(path: Path) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log = LogFile(path)
    try:
        logs.configure(style="text", stream=cast("TextIO", LogStream(log)))
        logging.getLogger("somebody").info("something happened", extra={"number": 1})
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        log.close()
    assert path.read_text().endswith("somebody: something happened  number=1\n")
