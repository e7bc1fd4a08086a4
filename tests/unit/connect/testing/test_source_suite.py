"""The source's suite passes a source that is right and catches those that are not."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from connect.api import data
from connect.api.config import INT, STRING, Config, at_least, option
from connect.api.errors import ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceTask
from connect.testing.source_suite import SourceSuite

SHELF: list[str] = []
IS_BROKEN: list[bool] = []


class ShelfConfig(Config):
    """Options of a source that reads a list."""

    topic: str = option(STRING)
    """Where records go."""
    batch_size: int = option(INT, default=100, check=at_least(1))
    """Most records of a poll."""


class ShelfTask(SourceTask):
    position = 0

    def start(self) -> None:
        offset = self.context.offset({"shelf": "a"})
        self.position = 0 if offset is None else offset["position"]

    def poll(self) -> Sequence[SourceRecord]:
        if IS_BROKEN:
            raise RetriableError("the shelf is away")
        assert isinstance(self.config, ShelfConfig)
        found = SHELF[self.position : self.position + self.config.batch_size]
        if not found:
            self.context.wait(0.5)
        records = [self.record(text, self.position + number + 1) for number, text in enumerate(found)]
        self.position += len(found)
        return records

    def record(self, text: str, position: int) -> SourceRecord:
        topic = self.config.given["topic"]
        offset = {"position": position}
        return SourceRecord(
            topic=topic,
            value=text,
            value_schema=data.STRING,
            source_partition={"shelf": "a"},
            source_offset=offset,
        )


class ShelfSource(SourceConnector):
    config_class = ShelfConfig
    task_class: ClassVar[type[SourceTask]] = ShelfTask
    is_exactly_once = True


class TestShelfSource(SourceSuite):
    connector_class = ShelfSource
    batch_option = "batch.size"
    can_break = True

    @pytest.fixture(autouse=True)
    def other_side(self) -> None:
        SHELF.clear()
        IS_BROKEN.clear()

    def config(self) -> Mapping[str, str]:
        return {"topic": "shelf"}

    def produce(self, first: int, count: int) -> None:
        SHELF.extend(f"book {number}" for number in range(first, first + count))

    def break_other_side(self) -> None:
        IS_BROKEN.append(True)

    def mend_other_side(self) -> None:
        IS_BROKEN.clear()


class ForgetfulTask(ShelfTask):
    def start(self) -> None:
        self.position = 0


class HastyTask(ShelfTask):
    def start(self) -> None:
        super().start()
        self.position += 1 if self.position else 0


class GreedyTask(ShelfTask):
    def poll(self) -> Sequence[SourceRecord]:
        found = [self.record(text, number + 1) for number, text in enumerate(SHELF) if number >= self.position]
        self.position = len(SHELF)
        return found


class SlowTask(ShelfTask):
    def poll(self) -> Sequence[SourceRecord]:
        self.context.wait(60)
        return super().poll()


class LyingTask(ShelfTask):
    def record(self, text: str, position: int) -> SourceRecord:
        return SourceRecord(
            topic="t",
            value=position,
            value_schema=data.STRING,
            source_partition={"shelf": "a"},
            source_offset={"position": [position]},
        )


class ClumsyTask(ShelfTask):
    def poll(self) -> Sequence[SourceRecord]:
        if IS_BROKEN:
            raise ConnectError("the shelf is away")
        return super().poll()


def suite_of(task: type[SourceTask]) -> TestShelfSource:
    class Broken(ShelfSource):
        task_class: ClassVar[type[SourceTask]] = task

    class Suite(TestShelfSource):
        connector_class = Broken

    SHELF.clear()
    IS_BROKEN.clear()
    return Suite()


def test_a_source_that_forgets_its_offsets_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(ForgetfulTask).test_after_a_crash_it_goes_on_from_what_was_committed(7)


def test_a_source_that_skips_a_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect.testing.source_suite.PATIENCE_SECONDS", 0.2)
    with pytest.raises(AssertionError):
        suite_of(HastyTask).test_after_a_crash_it_goes_on_from_what_was_committed(7)


def test_a_source_whose_polls_are_not_bounded_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(GreedyTask).test_a_poll_returns_no_more_than_allowed()


def test_a_source_that_waits_too_long_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(SlowTask).test_a_poll_without_news_returns_soon_and_empty()


def test_a_source_whose_values_are_not_what_it_says_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(LyingTask).test_values_are_what_their_schemas_say()


def test_a_source_whose_offsets_are_not_flat_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(LyingTask).test_partitions_and_offsets_are_flat_and_survive_json()


def test_a_source_that_dies_of_an_outage_is_caught() -> None:
    with pytest.raises(ConnectError):
        suite_of(ClumsyTask).test_an_outage_is_retriable_and_loses_nothing()
