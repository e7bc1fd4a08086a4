"""DirectorySource: its suite with every format, and what becomes of files."""

import csv
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet

from connect.api import data
from connect.api.data import Type
from connect.testing.contexts import FakeConnectorContext, FakeSourceContext
from connect.testing.source_suite import SourceSuite, offsets_of
from connectors.file.config import DirectorySourceConfig
from connectors.file.directory_source import DirectorySourceConnector, DirectorySourceTask

AVRO = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Person",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
)


class FolderSuite(SourceSuite):
    """Files arrive in a folder, and leave it for another."""

    connector_class = DirectorySourceConnector
    batch_option = "batch.size"
    can_break = True
    kind: str

    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.folder, self.finished = tmp_path / "in", tmp_path / "finished"
        self.folder.mkdir()

    def config(self) -> Mapping[str, str]:
        return {
            "path": str(self.folder),
            "topic": "files",
            "format": self.kind,
            "finished.policy": "move",
            "finished.path": str(self.finished),
            "file.minimum.age.ms": "0",
            "poll.interval.ms": "10",
            "key.field": "id",
        }

    def produce(self, first: int, count: int) -> None:
        rows = [{"id": number, "name": f"name {number}"} for number in range(first, first + count)]
        half = len(rows) // 2
        for part, some in (("a", rows[:half]), ("b", rows[half:])):
            self.write(self.folder / f"{first:06}{part}.{self.kind}", some)

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        raise NotImplementedError

    def break_other_side(self) -> None:
        self.folder.rename(self.folder.with_name("away"))

    def mend_other_side(self) -> None:
        self.folder.with_name("away").rename(self.folder)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


class TestJsonLines(FolderSuite):
    kind = "json"

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def test_values_have_no_schema_and_the_key_is_a_field(self) -> None:
        self.write(self.folder / "one.json", [{"id": 7, "name": None}])
        with self.running() as (task, _):
            [record] = self.read(task, 1)
        assert (record.key, record.value, record.value_schema) == (7, {"id": 7, "name": None}, None)

    def test_a_bad_line_is_told_and_the_others_are_read(self) -> None:
        (self.folder / "some.json").write_text('{"id": 1}\n{"id": \n{"id": 3}\n\xff\n')
        with self.running() as (task, context):
            records = self.read(task, 2)
            self.commit(task, records)
        assert [record.value["id"] for record in records] == [1, 3]
        assert [(report.data, report.offset["position"]) for report in context.reported] == [
            (b'{"id": \n', 2),
            ("\xff\n".encode(), 4),
        ]
        assert records[-1].source_offset["is_last"]
        assert self.names() == []

    def test_empty_lines_are_nothing(self) -> None:
        (self.folder / "a.json").write_text('{"id": 1}\n\n{"id": 2}\n  \n')
        with self.running() as (task, context):
            records = self.rest(task)
        assert [(record.key, record.source_offset["position"]) for record in records] == [(1, 1), (2, 4)]
        assert context.reported == []

    def test_a_line_that_is_too_long_fails_the_file(self) -> None:
        (self.folder / "long.json").write_text('"' + "x" * 100 + '"\n')
        with self.running(changes={"line.max.bytes": "50"}) as (task, context):
            self.rest(task)
        assert "line.max.bytes=50" in str(context.reported[0].error)
        assert [path.name for path in (self.finished / "failed").iterdir()] == ["long.json"]

    def test_a_file_leaves_only_when_its_records_are_safe(self) -> None:
        self.write(self.folder / "one.json", [{"id": 1}, {"id": 2}])
        with self.running() as (task, _):
            records = self.read(task, 2)
            task.commit()
            assert self.names() == ["one.json"]
            self.commit(task, records[1:])
            assert self.names() == ["one.json"]
            self.commit(task, records[:1])
        assert self.names() == []
        assert (self.finished / "one.json").exists()

    def test_a_file_that_was_read_before_a_crash_leaves_after_it(self) -> None:
        self.write(self.folder / "one.json", [{"id": 1}])
        with self.running() as (task, _):
            records = self.read(task, 1)
        with self.running(offsets_of(records)) as (task, _):
            assert self.rest(task) == []
        assert self.names() == []

    def test_a_new_file_of_an_old_name_is_read_even_if_it_looks_alike(self) -> None:
        path = self.folder / "one.json"
        self.write(path, [{"id": 1}])
        with self.running() as (task, _):
            first = self.read(task, 1)
            self.commit(task, first)
            self.write(path, [{"id": 1}])
            second = self.read(task, 1)
            self.commit(task, second)
        assert [record.value for record in [*first, *second]] == [{"id": 1}] * 2
        assert sorted(path.name for path in self.finished.iterdir()) == ["one.json", "one.json.1"]

    def test_a_file_that_takes_the_place_of_one_that_is_about_to_leave_is_read(self) -> None:
        path = self.folder / "one.json"
        self.write(path, [{"id": 1}])
        with self.running() as (task, _):
            first = self.read(task, 1)
            self.write(path, [{"id": 2}, {"id": 3}])
            self.commit(task, first)
            second = self.read(task, 2)
        assert [record.value["id"] for record in second] == [2, 3]

    def test_an_empty_file_leaves_at_once(self) -> None:
        (self.folder / "empty.json").touch()
        with self.running() as (task, _):
            assert self.rest(task) == []
        assert self.names() == []

    def test_finished_files_are_deleted_when_asked_for(self) -> None:
        self.produce(0, 4)
        with self.running(changes={"finished.policy": "delete"}) as (task, _):
            self.commit(task, self.read(task, 4))
        assert self.names() == []
        assert not self.finished.exists()

    def test_a_file_of_bad_lines_alone_is_deleted_only_when_the_dead_letters_are_safe(self) -> None:
        (self.folder / "bad.json").write_text("{\n")
        with self.running(changes={"finished.policy": "delete"}) as (task, context):
            self.rest(task)
            assert len(context.reported) == 1
            assert self.names() == ["bad.json"]
            task.commit()
        assert self.names() == []

    def test_files_that_are_kept_are_read_once_and_again_when_they_have_grown(self) -> None:
        path = self.folder / "one.json"
        self.write(path, [{"id": 1}])
        with self.running(changes={"finished.policy": "keep"}) as (task, _):
            records = self.read(task, 1) + self.rest(task)
            with path.open("a") as stream:
                stream.write('{"id": 2}\n')
            records += self.read(task, 1)
        with path.open("a") as stream:
            stream.write('{"id": 3}\n')
        with self.running(offsets_of(records), changes={"finished.policy": "keep"}) as (task, _):
            records += self.read(task, 1) + self.rest(task)
        assert [record.value["id"] for record in records] == [1, 2, 3]

    def test_files_are_read_in_the_order_of_their_names(self) -> None:
        for name in ("b", "a", "c"):
            self.write(self.folder / f"{name}.json", [{"id": name}])
        with self.running() as (task, _):
            assert [record.key for record in self.read(task, 3)] == ["a", "b", "c"]

    def test_only_files_that_are_meant_are_read(self) -> None:
        (self.folder / "deep").mkdir()
        for name in ("a.json", "deep/b.json", "c.txt", ".hidden.json", "d.json.tmp"):
            self.write(self.folder / name, [{"id": name}])
        with self.running(changes={"pattern": "**/*.json"}) as (task, _):
            records = self.read(task, 2) + self.rest(task)
        assert [record.key for record in records] == ["a.json", "deep/b.json"]

    def test_finished_files_below_the_same_folder_are_not_read_again(self) -> None:
        self.finished = self.folder / "done"
        self.write(self.folder / "a.json", [{"id": 1}])
        with self.running(changes={"pattern": "**/*.json"}) as (task, _):
            self.commit(task, self.read(task, 1))
            assert self.rest(task) == []
        assert (self.finished / "a.json").exists()

    def test_a_file_that_has_just_changed_waits(self) -> None:
        self.write(self.folder / "one.json", [{"id": 1}])
        with self.running(changes={"file.minimum.age.ms": "600000"}) as (task, _):
            assert self.rest(task) == []

    def test_tasks_share_the_files(self) -> None:
        for number in range(20):
            self.write(self.folder / f"{number}.json", [{"id": number}])
        connector = DirectorySourceConnector(DirectorySourceConfig.parse(self.config()), FakeConnectorContext())
        seen = []
        for number, config in enumerate(connector.task_configs(2)):
            task = DirectorySourceTask(DirectorySourceConfig.parse(config), FakeSourceContext(task=number))
            task.start()
            seen.append({record.key for record in self.rest(task)})
            task.stop()
        assert seen[0] | seen[1] == set(range(20))
        assert not seen[0] & seen[1]


class TestText(FolderSuite):
    kind = "text"

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        path.write_text("".join(f"{row['id']} {row['name']}\r\n" for row in rows))

    def test_a_line_is_text_without_its_end(self) -> None:
        (self.folder / "a.txt").write_bytes(b"one\r\ntwo\nlast")
        with self.running() as (task, _):
            records = self.read(task, 3)
        assert [record.value for record in records] == ["one", "two", "last"]
        assert records[0].value_schema == data.STRING


class TestCsv(FolderSuite):
    kind = "csv"

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ["id", "name"])
            writer.writeheader()
            writer.writerows(rows)

    def read_all(self, text: str, **changes: str) -> list[Any]:
        (self.folder / "a.csv").write_text(text, newline="")
        settings = {key.replace("_", "."): value for key, value in changes.items()}
        with self.running(changes={"key.field": "", **settings}) as (task, self.context):
            return [record.value for record in self.rest(task)]

    def test_values_are_text_and_empty_ones_null(self) -> None:
        assert self.read_all('a,b\n1,"x, ""y""\nz"\n,\n') == [{"a": "1", "b": 'x, "y"\nz'}, {"a": None, "b": None}]

    def test_types_are_those_that_are_told(self) -> None:
        types = "i:int32,f:float64,b:boolean,d:date,t:time,s:timestamp,c:decimal(2),y:bytes"
        text = "i,f,b,d,t,s,c,y\n7,0.5,true,2024-02-29,12:30:01.5,2024-02-29T12:00:00+02:00,1.5,AP8=\n"
        assert self.read_all(text, csv_types=types) == [
            {
                "i": 7,
                "f": 0.5,
                "b": True,
                "d": date(2024, 2, 29),
                "t": time(12, 30, 1, 500_000),
                "s": datetime(2024, 2, 29, 10, tzinfo=UTC),
                "c": Decimal("1.50"),
                "y": b"\x00\xff",
            }
        ]

    @pytest.mark.parametrize("row", ["x,y", "1", "1,2,3", "3000000000,x", '1,"x"y'])
    def test_a_bad_row_is_told_and_the_others_are_read(self, row: str) -> None:
        assert self.read_all(f"a,b\n1,x\n{row}\n2,y\n", csv_types="a:int32") == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
        assert [report.offset["position"] for report in self.context.reported] == [2]

    def test_names_of_columns_and_separators_are_told(self) -> None:
        values = self.read_all("1;x\n", csv_header="false", csv_columns="a,b", csv_separator="semicolon")
        assert values == [{"a": "1", "b": "x"}]

    def test_types_of_columns_that_are_not_there_fail_the_file(self) -> None:
        assert self.read_all("a,b\n1,2\n", csv_types="c:int32") == []
        assert "not there: c" in str(self.context.reported[0].error)


class TestParquet(FolderSuite):
    kind = "parquet"

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
        parquet.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=3)

    def test_types_are_those_of_the_columns(self) -> None:
        table = pa.table(
            {
                "u8": pa.array([200], pa.uint8()),
                "naive": pa.array([1_709_168_523_000_123], pa.timestamp("us")),
                "decimal": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
                "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int16())),
                "nested": pa.array([{"list": [1, None]}]),
                "words": pa.array(["x"]).dictionary_encode(),
                "time": pa.array([time(1, 2, 3)], pa.time64("us")),
            }
        )
        parquet.write_table(table, self.folder / "types.parquet")
        with self.running() as (task, _):
            [record] = self.read(task, 1)
        assert record.value == {
            "u8": 200,
            "naive": datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
            "decimal": Decimal("1.50"),
            "map": {"a": 1},
            "nested": {"list": [1, None]},
            "words": "x",
            "time": time(1, 2, 3),
        }
        assert record.value_schema is not None
        assert record.value_schema.by_name["u8"].type is Type.INT16
        assert record.value_schema.by_name["naive"].name == data.TIMESTAMP_NAME

    def test_a_file_that_is_none_is_told_and_put_aside(self) -> None:
        (self.folder / "a.parquet").write_bytes(b"PAR1 not at all")
        self.write(self.folder / "b.parquet", [{"id": 1, "name": "x"}])
        with self.running() as (task, context):
            assert len(self.read(task, 1)) == 1
        assert [report.data for report in context.reported] == ["a.parquet"]
        assert (self.finished / "failed" / "a.parquet").exists()


class TestAvro(FolderSuite):
    kind = "avro"

    def write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        with path.open("wb") as stream:
            fastavro.writer(stream, AVRO, rows)

    def test_the_schema_is_that_of_the_file(self) -> None:
        self.write(self.folder / "a.avro", [{"id": 1, "name": None}])
        with self.running() as (task, _):
            [record] = self.read(task, 1)
        assert record.value_schema == data.struct({"id": data.INT64, "name": data.OPTIONAL_STRING}, name="Person")

    def test_a_file_that_breaks_off_gives_what_it_has_and_is_put_aside(self) -> None:
        path = self.folder / "a.avro"
        with path.open("wb") as stream:
            fastavro.writer(stream, AVRO, [{"id": n, "name": "x"} for n in range(100)], sync_interval=50)
        path.write_bytes(path.read_bytes()[:-30])
        with self.running(changes={"batch.size": "10"}) as (task, context):
            records = self.rest(task)
            self.commit(task, records)
        assert 10 <= len(records) < 100
        assert len(context.reported) == 1
        assert (self.finished / "failed" / "a.avro").exists()
