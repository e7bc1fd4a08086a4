"""The sink's suite passes a sink that is right and catches those that are not."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from connect.api import data
from connect.api.config import STRING, Config, option
from connect.api.data import Schema, Value
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkTask, TopicPartition
from connect.testing.sink_suite import SinkSuite

SHELF: dict[int, Value] = {}
IS_BROKEN: list[bool] = []


class ShelfConfig(Config):
    """Options of a sink that fills a dict."""

    shelf: str = option(STRING)
    """Which shelf."""


class ShelfTask(SinkTask):
    """Writes by offset: what comes twice is there once."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        if IS_BROKEN and records:
            raise RetriableError("the shelf is away")
        for record in records:
            if isinstance(record.value, dict) and record.value.get("name") == "bad":
                raise DataError("a bad book")
        for record in records:
            if record.value is not None:
                self.write(record)

    def write(self, record: SinkRecord) -> None:
        SHELF[record.offset] = record.value


class ShelfSink(SinkConnector):
    config_class = ShelfConfig
    task_class: ClassVar[type[SinkTask]] = ShelfTask


class TestShelfSink(SinkSuite):
    connector_class = ShelfSink
    is_idempotent = True
    can_break = True

    @pytest.fixture(autouse=True)
    def other_side(self) -> None:
        SHELF.clear()
        IS_BROKEN.clear()

    def config(self) -> Mapping[str, str]:
        return {"shelf": "a"}

    def written(self) -> list[Value]:
        return list(SHELF.values())

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"name": data.STRING}), {"name": "bad"}

    def break_other_side(self) -> None:
        IS_BROKEN.append(True)

    def mend_other_side(self) -> None:
        IS_BROKEN.clear()


class DoublingTask(ShelfTask):
    def write(self, record: SinkRecord) -> None:
        SHELF[len(SHELF)] = record.value


class HoardingTask(ShelfTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        pass


class BoastfulTask(ShelfTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {place: offset + 5 for place, offset in offsets.items()}


class FussyTask(ShelfTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if any(isinstance(item, bytes) for item in record.value.values()):
                raise TypeError("bytes")
        super().put(records)


class ClumsyTask(ShelfTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        if IS_BROKEN:
            raise ConnectError("the shelf is away")
        super().put(records)


def suite_of(task: type[SinkTask]) -> TestShelfSink:
    class Broken(ShelfSink):
        task_class: ClassVar[type[SinkTask]] = task

    class Suite(TestShelfSink):
        connector_class = Broken

    SHELF.clear()
    IS_BROKEN.clear()
    return Suite()


def test_a_sink_that_writes_twice_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(DoublingTask).test_records_that_come_again_because_their_offsets_were_not_committed_are_not_lost()


def test_a_sink_that_commits_what_it_has_not_written_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(HoardingTask).test_offsets_are_given_free_only_when_their_records_are_there()


def test_a_sink_that_frees_offsets_it_never_saw_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(BoastfulTask).test_what_was_put_and_committed_is_there()


def test_a_sink_that_dies_of_a_type_is_caught() -> None:
    with pytest.raises(TypeError):
        suite_of(FussyTask).test_each_type_is_written_or_refused_as_bad_data("bytes")


def test_a_sink_that_dies_of_an_outage_is_caught() -> None:
    with pytest.raises(ConnectError):
        suite_of(ClumsyTask).test_an_outage_is_retriable_and_ends()
