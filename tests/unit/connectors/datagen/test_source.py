"""DatagenConnector: its suite, seeds and pace."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from connect.api.errors import ConfigError, ConnectError
from connect.api.record import SourceRecord
from connect.testing.contexts import FakeConnectorContext, FakeSourceContext
from connect.testing.source_suite import SourceSuite, offsets_of
from connectors.datagen.config import DatagenConfig
from connectors.datagen.source import DatagenConnector, DatagenTask

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'


class TestDatagen(SourceSuite):
    connector_class = DatagenConnector
    batch_option = "batch.size"
    iterations = 0

    def config(self) -> Mapping[str, str]:
        rest = {"iterations": str(self.iterations)} if self.iterations else {"iterations": "1"}
        return {"kafka.topic": "orders", "quickstart": "orders", "max.interval": "0", "random.seed": "1", **rest}

    def produce(self, first: int, count: int) -> None:
        self.iterations = first + count

    def test_what_comes_later_is_read_too(self) -> None:
        """There is no other side that could grow: without `iterations` there is no end."""
        with self.running(changes={"iterations": "-1"}) as (task, _):
            assert len(self.read(task, 5_000)) >= 5_000

    def test_a_task_goes_on_with_the_records_it_would_have_made(self) -> None:
        whole = made({"random.seed": "1"}, count=350)
        for committed in (1, 99, 100, 101, 250):
            offsets = offsets_of(whole[:committed])
            with self.running(offsets, changes={"iterations": "350"}) as (task, _):
                again = self.read(task, 350 - committed)
            assert [record.value for record in again] == [record.value for record in whole[committed:]]

    def test_without_a_seed_the_drawn_one_is_kept_in_the_offsets(self) -> None:
        whole = made({}, count=20)
        with self.running(offsets_of(whole[:10]), changes={"iterations": "20"}) as (task, _):
            again = self.read(task, 10)
        assert [record.value for record in again] == [record.value for record in whole[10:]]


def made(changes: Mapping[str, str], *, count: int, task: int = 0) -> list[SourceRecord]:
    config = {"kafka.topic": "t", "quickstart": "orders", "max.interval": "0", "iterations": str(count), **changes}
    running = DatagenTask(DatagenConfig.parse(config), FakeSourceContext(task=task))
    running.start()
    records: list[SourceRecord] = []
    while len(records) < count:
        records += running.poll()
    return records


def test_the_same_seed_makes_the_same_records_and_other_ones_in_each_task() -> None:
    first, again, other = (made({"random.seed": "5"}, count=30, task=task) for task in (0, 0, 1))
    assert [record.value for record in first] == [record.value for record in again]
    assert [record.value for record in first] != [record.value for record in other]


def test_the_key_is_that_of_the_quickstart_unless_told() -> None:
    [record] = made({}, count=1)
    assert (record.key, record.value["orderid"]) == (0, 0)
    [record] = made({"schema.keyfield": "itemid"}, count=1)
    assert record.key == record.value["itemid"]


def test_a_quickstart_has_other_names_too() -> None:
    [record] = made({"quickstart": "users_"}, count=1)
    assert record.key == record.value["userid"]


def test_headers_and_offsets_tell_which_record_it_is() -> None:
    record = made({"random.seed": "9"}, count=3)[2]
    assert [(header.key, header.value) for header in record.headers] == [
        ("task.generation", 0),
        ("task.id", 0),
        ("current.iteration", 2),
    ]
    assert record.source_partition == {"task.id": 0}
    assert record.source_offset == {"task.generation": 1, "current.iteration": 3, "random.seed": 9}


def test_a_pause_is_kept_and_never_longer_than_a_second_at_once() -> None:
    config = {"kafka.topic": "t", "quickstart": "users", "max.interval": "86400000", "random.seed": "1"}
    context = FakeSourceContext()
    task = DatagenTask(DatagenConfig.parse(config), context)
    task.start()
    assert len(task.poll()) == 1
    assert task.poll() == []
    assert 0 < context.waited_seconds <= 1


def test_schemas_come_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.avsc"
    file.write_text(SCHEMA)
    for changes in ({"schema.string": SCHEMA}, {"schema.filename": str(file)}):
        [record] = made({"quickstart": "", **changes}, count=1)
        assert list(record.value) == ["n"]
        assert record.key is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "exactly one of"),
        ({"quickstart": "users", "schema.string": SCHEMA}, "exactly one of"),
        ({"quickstart": "nothing"}, "must be one of clickstream, "),
        ({"schema.string": "{"}, "must be an Avro schema"),
        ({"schema.string": '"int"'}, "of a record"),
        ({"schema.filename": "/does/not/exist.avsc"}, "No such file"),
        ({"quickstart": "users", "schema.keyfield": "x"}, "schema.keyfield"),
        ({"schema.string": SCHEMA.replace("long", "wrong")}, "unknown"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        DatagenConfig.parse({"kafka.topic": "t", **changes})


def test_offsets_that_are_no_numbers_are_refused() -> None:
    config = DatagenConfig.parse({"kafka.topic": "t", "quickstart": "users"})
    connector = DatagenConnector(config, FakeConnectorContext())
    assert connector.alter_offsets([({"task.id": 0}, {"current.iteration": 5}), ({"x": 1}, None)])
    with pytest.raises(ConnectError, match="current.iteration"):
        connector.alter_offsets([({"task.id": 0}, {"current.iteration": "5"})])
