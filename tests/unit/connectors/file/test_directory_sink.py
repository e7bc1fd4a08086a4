"""DirectorySink: its suite with every format, how files are cut and named, and crashes between any two steps."""

import csv
import json
import random
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyarrow import parquet

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkTask
from connect.testing.contexts import FakeConnectorContext
from connect.testing.samples import EVERY_TYPE, sink_record
from connect.testing.sink_suite import TOPIC, SinkSuite
from connectors.file.config import DirectorySinkConfig
from connectors.file.directory_sink import DirectorySinkConnector

BEGIN = datetime(2024, 2, 29, 22, 30, tzinfo=UTC)


class FolderSuite(SinkSuite):
    """Finished files of a folder."""

    connector_class = DirectorySinkConnector
    is_idempotent = True
    can_break = True
    kind: str

    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "out"

    def config(self) -> Mapping[str, str]:
        return {
            "path": str(self.folder),
            "format": self.kind,
            "flush.size": "5",
            "rotate.schedule.interval.ms": "5",
        }

    def files(self) -> list[Path]:
        return sorted(path for path in (self.folder / "topics").rglob("*") if path.is_file())

    def written(self) -> list[Value]:
        return [row for path in self.files() for row in self.read_back(path)]

    def read_back(self, path: Path) -> list[Value]:
        raise NotImplementedError

    def break_other_side(self) -> None:
        self.folder.rename(self.folder.with_name("away"))

    def mend_other_side(self) -> None:
        self.folder.with_name("away").rename(self.folder)


class TestJson(FolderSuite):
    kind = "json"

    def read_back(self, path: Path) -> list[Value]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return None, {"id": object()}

    def names(self) -> list[str]:
        return [path.relative_to(self.folder / "topics").as_posix() for path in self.files()]

    def flow(self, records: list[SinkRecord], **changes: str) -> list[str]:
        settings = {key.replace("_", "."): value for key, value in changes.items()}
        with self.running(changes=settings) as (task, _):
            task.put(records)
            self.commit(task, records)
        return self.names()

    # --- how files are cut and named ---

    def test_files_are_named_after_their_first_offset(self) -> None:
        assert self.flow(self.records(0, 12)) == [
            "suite/partition=0/suite+0+0000000000.json",
            "suite/partition=0/suite+0+0000000005.json",
            "suite/partition=0/suite+0+0000000010.json",
        ]

    def test_a_file_is_cut_by_bytes(self) -> None:
        records = self.records(0, 3)
        with self.running(changes={"flush.size": "100", "file.max.bytes": "10"}) as (task, _):
            for record in records:
                task.put([record])
            self.commit(task, records)
        assert len(self.names()) == 3

    def test_a_file_is_cut_by_the_times_of_records(self) -> None:
        assert len(self.flow(timed(0, 30, 59, 60, 90, 130), flush_size="100", rotate_interval_ms="60000")) == 3

    def test_nothing_is_visible_before_it_is_finished(self) -> None:
        with self.running(changes={"rotate.schedule.interval.ms": "-1"}) as (task, _):
            task.put(self.records(0, 7))
            free = task.pre_commit({(TOPIC, 0): 7})
            assert free == {(TOPIC, 0): 5}
            assert self.names() == ["suite/partition=0/suite+0+0000000000.json"]

    def test_days_and_hours_are_those_of_the_time_zone(self) -> None:
        records = timed(0, 3600, 2 * 3600)
        assert self.flow(records, partitioner="daily") == [
            "suite/year=2024/month=02/day=29/suite+0+0000000000.json",
            "suite/year=2024/month=03/day=01/suite+0+0000000002.json",
        ]

    def test_hours_by_a_field_and_with_confluents_names(self) -> None:
        moment = BEGIN + timedelta(hours=1)
        schema = data.struct({"at": data.TIMESTAMP})
        records = [sink_record(TOPIC, 0, value={"at": moment}, value_schema=schema)]
        names = self.flow(
            records,
            partitioner_class="io.confluent.connect.storage.partitioner.HourlyPartitioner",
            format_class="io.confluent.connect.s3.format.json.JsonFormat",
            timestamp_field="at",
            timezone="Europe/Rome",
        )
        assert names == ["suite/year=2024/month=03/day=01/hour=00/suite+0+0000000000.json"]

    @pytest.mark.parametrize(
        ("value", "folder"),
        [
            ("red", "color=red"),
            (7, "color=7"),
            (True, "color=true"),
            ("../../etc", "color=%2E%2E%2F%2E%2E%2Fetc"),
            ("", "color=%00"),
        ],
    )
    def test_folders_are_named_after_fields_and_never_lead_out(self, value: object, folder: str) -> None:
        records = [sink_record(TOPIC, 0, value={"color": value})]
        names = self.flow(records, partitioner="field", partition_field_name="color")
        assert names == [f"suite/{folder}/suite+0+0000000000.json"]

    def test_a_record_without_the_field_is_bad(self) -> None:
        with (
            self.running(changes={"partitioner": "field", "partition.field.name": "color"}) as (task, _),
            pytest.raises(DataError, match="color"),
        ):
            task.put(self.records(0, 1))

    def test_few_files_are_open_at_a_time(self) -> None:
        records = [sink_record(TOPIC, number, value={"color": number}) for number in range(10)]
        changes = {"open.files.max": "3", "partitioner": "field", "partition.field.name": "color"}
        with self.running(changes={**changes, "rotate.schedule.interval.ms": "-1"}) as (task, _):
            task.put(records)
            task.put([])
            assert len(self.names()) == 7

    def test_tombstones_are_left_out_or_bad(self) -> None:
        tombstone = sink_record(TOPIC, 0, key="k", value=None)
        with self.running() as (task, _):
            task.put([tombstone])
            assert self.commit(task, [tombstone]) == {(TOPIC, 0): 1}
        with self.running(changes={"behavior.on.null.values": "fail"}) as (task, _), pytest.raises(DataError):
            task.put([tombstone])
        assert self.names() == []

    # --- each record in one file ---

    def test_records_that_come_again_are_left_out_even_if_files_are_cut_otherwise(self) -> None:
        records = self.records(0, 20)
        self.flow(records[:7], flush_size="3")
        self.flow(records, flush_size="4")
        assert self.is_there(records)

    def test_folders_that_are_further_than_others_are_not_written_twice(self) -> None:
        records = [sink_record(TOPIC, n, value={"id": n, "color": "red" if n % 3 else "blue"}) for n in range(20)]
        changes = {"partitioner": "field", "partition.field.name": "color", "rotate.schedule.interval.ms": "-1"}
        with self.abandoned(changes=changes) as (task, _):
            task.put(records[:8])
            free = task.pre_commit({(TOPIC, 0): 8})[TOPIC, 0]
            assert free == 0
            with self.running(changes={**changes, "flush.size": "3", "rotate.schedule.interval.ms": "5"}) as (task, _):
                task.put(records[free:])
                self.commit(task, records)
            assert self.is_there(records)

    def test_records_that_come_again_because_a_commit_failed_are_written_once(self) -> None:
        records = self.records(0, 7)
        with self.running() as (task, _):
            task.put(records)
            self.break_other_side()
            with pytest.raises(RetriableError):
                task.pre_commit({(TOPIC, 0): 7})
            self.mend_other_side()
            task.put(records)
            self.commit(task, records)
        assert self.is_there(records)

    def test_after_a_crash_between_the_ledger_and_the_names_files_get_their_names(self) -> None:
        records = self.records(0, 10)
        with self.abandoned() as (task, _):
            task.put(records[:5])
            (self.folder / "topics").write_text("in the way")
            with pytest.raises(ConnectError):
                task.pre_commit({(TOPIC, 0): 5})
            (self.folder / "topics").unlink()
            with self.running() as (task, _):
                task.put(records)
                self.commit(task, records)
            assert self.is_there(records)

    def test_what_a_crash_has_left_is_cleared_up(self) -> None:
        with self.abandoned(changes={"rotate.schedule.interval.ms": "-1"}) as (task, _):
            task.put([sink_record(TOPIC, 0, value="x" * 3_000_000)])
            task.put([])
            assert list(self.folder.rglob("*.tmp")) != []
            with self.running() as (task, _):
                task.put(self.records(0, 1))
                assert list(self.folder.rglob("*.tmp")) == []

    def test_a_topic_that_was_made_anew_is_written_from_its_start(self) -> None:
        self.flow(timed(0, 1, 2, 3, 4, 5, 6))
        again = [sink_record(TOPIC, n, value={"id": n, "new": True}, timestamp_ms=n) for n in range(3)]
        self.flow(again)
        assert [row for row in self.written() if row.get("new")] == [record.value for record in again]

    def test_a_task_that_finds_another_ones_files_reads_again_and_writes_nothing_twice(self) -> None:
        records = self.records(0, 12)
        with self.abandoned() as (first, context):
            first.put(records[:5])
            with self.running() as (second, _):
                second.put(records[:5])
                second.pre_commit({(TOPIC, 0): 5})
                assert first.pre_commit({(TOPIC, 0): 5}) == {}
            assert context.rewound == {(TOPIC, 0): 0}
            first.put(records[5:10])
            first.put(records)
            self.commit(first, records)
        assert self.is_there(records)

    def test_files_that_were_taken_away_are_begun_again(self) -> None:
        records = [sink_record(TOPIC, n, value={"id": n, "text": "x" * 1_000_000}) for n in range(7)]
        with self.running(changes={"rotate.schedule.interval.ms": "-1", "flush.size": "7"}) as (task, context):
            task.put(records[:3])
            task.put(records[3:5])
            shutil.rmtree(self.folder / ".caudal")
            task.put(records[5:])
            assert context.rewound == {(TOPIC, 0): 0}
            assert task.pre_commit({(TOPIC, 0): 7}) == {}
            task.put(records)
            self.commit(task, records)
        assert self.is_there(records)

    def test_records_that_are_wanted_again_long_after_are_written_if_their_files_are_gone(self) -> None:
        records = self.records(0, 50)
        with self.running() as (task, _):
            for start in range(0, 50, 5):
                task.put(records[start : start + 5])
                self.commit(task, records[: start + 5])
        self.flow(records)
        assert self.is_there(records)
        shutil.rmtree(self.folder / "topics")
        self.flow(records)
        assert self.is_there(records)

    def test_files_are_finished_early_when_they_fill_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("connectors.file.directory_sink.MEMORY_BYTES_MAX", 100)
        with self.running(changes={"rotate.schedule.interval.ms": "-1", "flush.size": "100"}) as (task, _):
            task.put(self.records(0, 10))
            task.put([])
            assert len(self.names()) == 1

    def test_a_record_that_is_gone_when_it_is_read_again_is_not_waited_for(self) -> None:
        records = self.records(0, 10)
        with self.abandoned() as (first, _):
            first.put(records[:5])
            with self.running() as (second, _):
                second.put(records[:5])
                second.pre_commit({(TOPIC, 0): 5})
                first.pre_commit({(TOPIC, 0): 5})
            for _ in range(2):
                first.put(records[2:])
            self.commit(first, records)
        assert self.is_there(records)

    def test_records_are_written_again_when_offsets_are_altered(self) -> None:
        records = self.records(0, 5)
        self.flow(records)
        connector = DirectorySinkConnector(DirectorySinkConfig.parse(self.config()), FakeConnectorContext())
        assert connector.alter_offsets({(TOPIC, 0): None}) is False
        for path in self.files():
            path.unlink()
        self.flow(records)
        assert self.is_there(records)

    @pytest.mark.parametrize("seed", range(12))
    def test_each_record_is_written_once_whatever_crashes_when(self, seed: int) -> None:
        chance = random.Random(seed)
        records = [sink_record(TOPIC, n, value={"id": n, "color": chance.randrange(3)}) for n in range(200)]
        committed = 0
        while committed < len(records):
            changes = {
                "flush.size": str(chance.randint(1, 9)),
                "rotate.schedule.interval.ms": chance.choice(["-1", "1"]),
                "partitioner": "field",
                "partition.field.name": "color",
            }
            with self.abandoned(changes=changes) as (task, _):
                committed = self._until_it_crashes(task, records, committed, chance)
        assert self.is_there(records)

    def _until_it_crashes(self, task: SinkTask, records: list[SinkRecord], start: int, chance: random.Random) -> int:
        """What of the records was committed when the task is left."""
        committed = position = start
        for _ in range(chance.randint(1, 30)):
            count = chance.randint(0, 8)
            task.put(records[position : position + count])
            position = min(position + count, len(records))
            if chance.random() < 0.3:
                free = task.pre_commit({(TOPIC, 0): position})[TOPIC, 0]
                committed = free if chance.random() < 0.7 else committed
        if position == len(records):
            return self.commit(task, records, patience_seconds=0.05)[TOPIC, 0]
        return committed

    def test_every_type_is_readable_json(self) -> None:
        schema = data.struct({name: schema for name, (schema, _) in EVERY_TYPE.items()})
        value = {name: value for name, (_, value) in EVERY_TYPE.items()}
        self.flow([sink_record(TOPIC, 0, value=value, value_schema=schema)])
        [row] = self.written()
        assert (row["decimal"], row["date"], row["bytes"]) == ("-12345.67", "2024-02-29", "AP8Q")
        assert row["timestamp"] == "2024-02-29T12:30:15.123000Z"


class TestText(FolderSuite):
    kind = "text"

    def read_back(self, path: Path) -> list[Value]:
        return path.read_text().replace('quoted"\nand', 'quoted" and').splitlines()

    def expected(self, record: SinkRecord) -> Value:
        return f"Struct{{id={record.value['id']},name={record.value['name']}}}"


class TestCsv(FolderSuite):
    kind = "csv"

    def read_back(self, path: Path) -> list[Value]:
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream))

    def expected(self, record: SinkRecord) -> Value:
        return {name: str(value) for name, value in record.value.items()}

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.STRING, "no columns"

    def test_other_columns_begin_another_file(self) -> None:
        records = [sink_record(TOPIC, 0, value={"a": 1}), sink_record(TOPIC, 1, value={"a": 1, "b": [1]})]
        with self.running() as (task, _):
            task.put(records)
            self.commit(task, records)
        assert [path.read_text() for path in self.files()] == ["a\n1\n", "a,b\n1,[1]\n"]


class TestParquet(FolderSuite):
    kind = "parquet"
    takes_schemaless = False

    def read_back(self, path: Path) -> list[Value]:
        rows: list[Any] = parquet.ParquetFile(path).read().to_pylist()
        return rows

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"id": data.INT64}), {"id": None}

    def test_every_type_comes_back(self) -> None:
        schema = data.struct({name: schema for name, (schema, _) in EVERY_TYPE.items()})
        value = {name: value for name, (_, value) in EVERY_TYPE.items()}
        record = sink_record(TOPIC, 0, value=value, value_schema=schema)
        with self.running(changes={"compression": "zstd"}) as (task, _):
            task.put([record])
            self.commit(task, [record])
        [row] = self.written()
        assert {**row, "map": dict(row["map"])} == value


class TestAvro(FolderSuite):
    kind = "avro"
    takes_schemaless = False

    def read_back(self, path: Path) -> list[Value]:
        with path.open("rb") as stream:
            return list(fastavro.reader(stream))

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"id": data.INT64}), {"id": "text"}

    @pytest.mark.parametrize("compression", ["none", "deflate"])
    def test_every_type_comes_back(self, compression: str) -> None:
        schema = data.struct({name: schema for name, (schema, _) in EVERY_TYPE.items()}, name="com.example.Every")
        value = {name: value for name, (_, value) in EVERY_TYPE.items()}
        records = [sink_record(TOPIC, number, value=value, value_schema=schema) for number in range(100)]
        with self.running(changes={"compression": compression, "flush.size": "1000"}) as (task, _):
            task.put(records[:50])
            task.put(records[50:])
            self.commit(task, records)
        assert self.written() == [value] * 100

    def test_another_schema_begins_another_file(self) -> None:
        records = [
            sink_record(TOPIC, number, value={"id": number}, value_schema=data.struct({"id": schema}))
            for number, schema in enumerate([data.INT64, data.INT64, data.INT32])
        ]
        with self.running() as (task, _):
            task.put(records)
            self.commit(task, records)
        assert [len(self.read_back(path)) for path in self.files()] == [2, 1]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "xml"}, "one of json, csv, parquet, avro, text"),
        ({"partitioner": "field"}, "partition.field.name"),
        ({"compression": "zstd"}, "with format=json it must be one of none"),
        ({"timezone": "Mars/Base"}, "time zone"),
        ({"partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner"}, "daily, hourly"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        DirectorySinkConfig.parse({"path": "x", **changes})


def timed(*seconds: int) -> list[SinkRecord]:
    begin = int(BEGIN.timestamp() * 1000)
    return [
        sink_record(TOPIC, number, value={"id": number}, timestamp_ms=begin + 1000 * second)
        for number, second in enumerate(seconds)
    ]
