from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.launcher.log_files import LogFile
from deploy.launcher.log_reading import LogReader, LogReaders


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.log"


@pytest.fixture
def reader(path: Path) -> Iterator[LogReader]:
    made = LogReader("broker", path)
    yield made
    made.close()


def texts(lines: object) -> list[str]:
    assert isinstance(lines, list)
    return [line.text for line in lines]


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_the_last_lines_are_read_from_the_end_of_a_long_file(path: Path, reader: LogReader) -> None:
    path.write_text("".join(f"line {number} {'x' * 50}\n" for number in range(50_000)))
    assert [text.split()[1] for text in texts(reader.last_lines(3))] == ["49997", "49998", "49999"]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_short_file_is_read_whole_or_as_far_as_asked(path: Path, reader: LogReader, count: int) -> None:
    path.write_text("a\nb\n")
    assert texts(reader.last_lines(count)) == ["a", "b"][2 - min(count, 2) :]


def test_a_file_that_is_not_there_yet_is_followed_once_it_is(path: Path, reader: LogReader) -> None:
    assert reader.last_lines(5) == []
    assert reader.new_lines() == []
    add(path, "first\n")
    assert texts(reader.new_lines()) == ["first"]


def test_following_goes_on_behind_the_last_lines(path: Path, reader: LogReader) -> None:
    path.write_text("a\nb\n")
    reader.last_lines(1)
    add(path, "c\nd\n")
    assert texts(reader.new_lines()) == ["c", "d"]
    assert reader.new_lines() == []


def test_a_line_is_shown_when_it_is_whole(path: Path, reader: LogReader) -> None:
    path.write_text("a\nhal")
    assert texts(reader.last_lines(5)) == ["a"]
    add(path, "f a line\nrest")
    assert texts(reader.new_lines()) == ["half a line"]


def test_no_line_is_missed_when_a_new_file_is_begun(path: Path, reader: LogReader) -> None:
    log = LogFile(path, bytes_max=10_000)
    log.begin()
    reader.last_lines(0)
    seen: list[str] = []
    for number in range(1_000):
        log.write(b"line %d of a long story that fills files\n" % number)
        if number % 40 == 0:
            seen += texts(reader.new_lines())
    seen += texts(reader.new_lines())
    log.close()
    assert [int(text.split()[1]) for text in seen] == list(range(1_000))


def test_a_file_that_was_cut_is_read_from_its_beginning(path: Path, reader: LogReader) -> None:
    path.write_text("long long ago\n")
    reader.last_lines(5)
    path.write_text("new\n")
    assert texts(reader.new_lines()) == ["new"]


def test_bytes_that_are_no_text_do_no_harm(path: Path, reader: LogReader) -> None:
    path.write_bytes(b"\xff\xfe\n")
    assert texts(reader.last_lines(1)) == ["��"]


def test_lines_of_several_logs_stand_in_the_order_of_time_and_traces_stay_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        "2026-01-01 10:00:00.000 ERROR   a: it broke\nTraceback (most recent call last):\n  File ...\n"
        "2026-01-01 10:00:03.000 INFO    a: again\n"
    )
    (tmp_path / "b").write_text('{"time": "2026-01-01T10:00:01.500Z", "message": "json"}\n')
    (tmp_path / "c").write_text("2026-01-01 10:00:02.000 INFO    c: two\n")
    readers = LogReaders({name: tmp_path / name for name in "abc"})
    lines = readers.last_lines(10)
    readers.close()
    assert [(line.name, line.text[:9]) for line in lines] == [
        ("a", "2026-01-0"),
        ("a", "Traceback"),
        ("a", "  File .."),
        ("b", '{"time": '),
        ("c", "2026-01-0"),
        ("a", "2026-01-0"),
    ]
