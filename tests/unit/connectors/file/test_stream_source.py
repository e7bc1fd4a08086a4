"""FileStreamSource: its suite, and what only files do."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from connect.api.errors import ConnectError
from connect.api.record import SourceRecord
from connect.testing.contexts import FakeConnectorContext, FakeSourceContext
from connect.testing.source_suite import SourceSuite, offsets_of
from connectors.file.config import FileStreamSourceConfig
from connectors.file.stream_source import FileStreamSourceConnector, FileStreamSourceTask


class TestFileStreamSource(SourceSuite):
    connector_class = FileStreamSourceConnector
    batch_option = "batch.size"
    can_break = True

    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.file = tmp_path / "lines.txt"

    def config(self) -> Mapping[str, str]:
        return {"file": str(self.file), "topic": "lines"}

    def produce(self, first: int, count: int) -> None:
        append(self.file, "".join(f"line {number}\n" for number in range(first, first + count)))

    def break_other_side(self) -> None:
        """Somebody moves the file away while it is read."""
        self.file.rename(self.file.with_suffix(".away"))

    def mend_other_side(self) -> None:
        self.file.with_suffix(".away").rename(self.file)

    def test_the_offset_is_the_position_behind_the_line_and_the_partition_the_path(self) -> None:
        append(self.file, "partial line")
        with self.running() as (task, _):
            assert not task.poll()
            append(self.file, " finished\n")
            [record] = self.read(task, 1)
        assert record.value == "partial line finished"
        assert record.source_partition == {"filename": str(self.file)}
        assert record.source_offset == {"position": 22}

    def test_lines_end_by_any_of_the_three_endings_and_a_last_return_waits(self) -> None:
        append(self.file, "line1\rline2\r\nline3\nline4\n\r")
        with self.running() as (task, _):
            records = self.read(task, 4)
            assert [record.value for record in records] == ["line1", "line2", "line3", "line4"]
            assert positions(records) == [6, 13, 19, 25]
            assert not task.poll()
            append(self.file, "subsequent text")
            [empty] = self.read(task, 1)
        assert (empty.value, positions([empty])) == ("", [26])

    def test_positions_are_bytes_not_characters(self) -> None:
        append(self.file, "ä\nö\n")
        with self.running() as (task, _):
            records = self.read(task, 2)
        with self.running(offsets_of(records[:1])) as (task, _):
            [again] = self.read(task, 1)
        assert positions(records) == [3, 6]
        assert again.value == "ö"

    def test_bytes_that_are_no_text_do_not_stop_the_stream(self) -> None:
        self.file.write_bytes(b"\xff\xfe\nnext\n")
        with self.running() as (task, _):
            records = self.read(task, 2)
        assert [record.value for record in records] == ["\ufffd\ufffd", "next"]

    def test_a_file_that_is_missing_is_waited_for(self) -> None:
        with self.running() as (task, context):
            assert not task.poll()
            assert context.waited_seconds > 0
            self.produce(0, 1)
            [record] = self.read(task, 1)
        assert record.value == "line 0"

    def test_a_truncated_file_is_read_from_its_start(self) -> None:
        self.produce(0, 5)
        with self.running() as (task, _):
            self.read(task, 5)
            self.file.write_text("new\n")
            [record] = self.read(task, 1)
        assert (record.value, positions([record])) == ("new", [4])

    def test_a_rotated_file_is_finished_and_the_new_one_read_from_its_start(self) -> None:
        self.produce(0, 2)
        with self.running() as (task, _):
            self.read(task, 2)
            append(self.file, "last words\nwithout an end")
            self.file.rename(self.file.with_suffix(".1"))
            append(self.file, "first of the new\n")
            records = self.read(task, 3)
        assert [record.value for record in records] == ["last words", "without an end", "first of the new"]
        assert positions(records)[-1] == 17

    def test_a_file_that_became_shorter_while_the_task_was_down_is_read_from_its_start(self) -> None:
        self.file.write_text("new\n")
        with self.running([({"filename": str(self.file)}, {"position": 500})]) as (task, _):
            [record] = self.read(task, 1)
        assert record.value == "new"

    def test_a_line_that_is_too_long_stops_the_task_and_says_why(self) -> None:
        append(self.file, "x" * 100)
        with (
            self.running(changes={"line.max.bytes": "50"}) as (task, _),
            pytest.raises(ConnectError, match="line.max.bytes=50"),
        ):
            task.poll()

    def test_an_offset_that_is_none_stops_the_task(self) -> None:
        with (
            pytest.raises(ConnectError, match="Long"),
            self.running([({"filename": str(self.file)}, {"position": "12"})]),
        ):
            pass


def test_without_a_file_the_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as other_end:
        monkeypatch.setattr(sys, "stdin", stream)
        task = FileStreamSourceTask(FileStreamSourceConfig.parse({"topic": "t"}), FakeSourceContext())
        task.start()
        assert not task.poll()
        other_end.write("typed\n")
        other_end.flush()
        [record] = task.poll()
        task.stop()
        assert not stream.closed
    assert (record.value, record.source_offset) == ("typed", {})


@pytest.mark.parametrize(
    ("partition", "offset", "text"),
    [
        ({"filename": "f"}, {"position": "1"}, "Long"),
        ({"filename": "f"}, {"position": -1}, "non-negative"),
        ({"filename": "f"}, {}, "contain the key 'position'"),
        ({"other": "f"}, {"position": 1}, "contain the key 'filename'"),
    ],
)
def test_offsets_that_cannot_be_some_are_refused(
    partition: dict[str, str], offset: dict[str, object], text: str
) -> None:
    connector = connector_of({"topic": "t", "file": "f"})
    with pytest.raises(ConnectError, match=text):
        connector.alter_offsets([(partition, offset)])


def test_offsets_are_altered_and_forgotten() -> None:
    connector = connector_of({"topic": "t", "file": "f"})
    assert connector.alter_offsets([({"filename": "f"}, {"position": 0}), ({"anything": 1}, None)])


def test_offsets_of_the_standard_input_are_not_altered() -> None:
    with pytest.raises(ConnectError, match="stdin"):
        connector_of({"topic": "t"}).alter_offsets([({"filename": "f"}, {"position": 0})])


def connector_of(config: dict[str, str]) -> FileStreamSourceConnector:
    return FileStreamSourceConnector(FileStreamSourceConfig.parse(config), FakeConnectorContext())


def append(file: Path, text: str) -> None:
    with file.open("a", newline="") as stream:
        stream.write(text)


def positions(records: list[SourceRecord]) -> list[int]:
    return [record.source_offset["position"] for record in records]
