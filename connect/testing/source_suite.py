"""The checks of every source: it reads everything, reports its position, and continues from there after any crash."""

import json
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

import pytest

from connect.api.errors import RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceOffset, SourcePartition, SourceTask
from connect.testing.connector_suite import ConnectorSuite
from connect.testing.contexts import FakeSourceContext
from connect.testing.samples import mismatches

PATIENCE_SECONDS: Final = 30.0
LONGEST_POLL_SECONDS: Final = 2.0
"""A poll may wait about a second."""

Offsets = list[tuple[SourcePartition, SourceOffset]]


class SourceSuite(ConnectorSuite):
    """Inherit, set `connector_class`, write `config` and `produce`; each test gets a new instance and a fresh other
    system, which your own fixture sets up."""

    connector_class: ClassVar[type[SourceConnector]]
    batch_option: ClassVar[str | None] = None
    """Hook: the key for the most records of a poll; None when there is none."""
    batch_limit: ClassVar[int] = 10_000
    """Hook: the most records of a poll with the minimal configuration."""
    can_break: ClassVar[bool] = False
    """Hook: whether `break_other_side` and `mend_other_side` are implemented."""
    settling_polls: ClassVar[int] = 3
    """Hook: after how many polls without records everything is read."""

    def produce(self, first: int, count: int) -> None:
        """Hook: put records number `first` to `first + count - 1` into the other system."""
        raise NotImplementedError("produce() of the suite: put records into the other system")

    def identity(self, record: SourceRecord) -> Hashable:
        """Hook: what distinguishes records; topic, key and value unless overridden."""
        return repr((record.topic, record.key, record.value))

    def break_other_side(self) -> None:
        """Hook: make the other system fail, as in an outage."""

    def mend_other_side(self) -> None:
        """Hook: end the outage."""

    # --- reading ---

    def test_everything_is_read_and_nothing_twice(self) -> None:
        self.produce(0, 20)
        with self.running() as (task, _):
            records = self.read(task, 20)
            records += self.rest(task)
        assert len(records) == 20
        assert len({self.identity(record) for record in records}) == 20

    def test_what_comes_later_is_read_too(self) -> None:
        self.produce(0, 5)
        with self.running() as (task, _):
            first = self.read(task, 5)
            self.commit(task, first)
            self.produce(5, 5)
            second = self.read(task, 5)
        assert len({self.identity(record) for record in [*first, *second]}) == 10

    def test_a_poll_returns_no_more_than_allowed(self) -> None:
        limit = 10 if self.batch_option else self.batch_limit
        changes = {self.batch_option: str(limit)} if self.batch_option else {}
        self.produce(0, 45)
        with self.running(changes=changes) as (task, _):
            batches = list(self._batches(task, 45))
        assert max(map(len, batches)) <= limit
        assert sum(map(len, batches)) == 45

    def test_a_poll_without_news_returns_soon_and_empty(self) -> None:
        with self.running() as (task, context):
            self.rest(task)
            context.waited_seconds = 0
            started = time.monotonic()
            records = task.poll()
            spent = time.monotonic() - started
        assert not records
        assert context.waited_seconds <= LONGEST_POLL_SECONDS
        assert spent <= LONGEST_POLL_SECONDS * 5

    def test_values_are_what_their_schemas_say(self) -> None:
        self.produce(0, 5)
        with self.running() as (task, _):
            records = self.read(task, 5)
        for record in records:
            assert list(mismatches(record.value_schema, record.value)) == []
            assert list(mismatches(record.key_schema, record.key, path="key")) == []
            assert record.topic

    # --- offsets ---

    def test_partitions_and_offsets_are_flat_and_survive_json(self) -> None:
        self.produce(0, 5)
        with self.running() as (task, _):
            records = self.read(task, 5)
        for record in records:
            for mapping in (record.source_partition, record.source_offset):
                assert all(isinstance(key, str) for key in mapping)
                assert all(item is None or isinstance(item, str | int | float | bool) for item in mapping.values())
                assert json.loads(json.dumps(dict(mapping))) == dict(mapping)

    @pytest.mark.parametrize("committed", [0, 1, 7, 19, 20])
    def test_after_a_crash_it_goes_on_from_what_was_committed(self, committed: int) -> None:
        self.produce(0, 20)
        with self.running() as (task, _):
            before = self.read(task, 20)
            self.commit(task, before[:committed])
        with self.running(offsets_of(before[:committed])) as (task, _):
            after = self.read(task, 20 - committed)
            after += self.rest(task)
        wanted = {self.identity(record) for record in before[committed:]}
        found = [self.identity(record) for record in after]
        assert wanted <= set(found)
        if self.connector_class.is_exactly_once:
            assert sorted(map(repr, found)) == sorted(map(repr, wanted))

    def test_records_that_came_while_it_was_down_are_read(self) -> None:
        self.produce(0, 5)
        with self.running() as (task, _):
            before = self.read(task, 5)
            self.commit(task, before)
        self.produce(5, 5)
        with self.running(offsets_of(before)) as (task, _):
            after = self.read(task, 5)
        assert len({self.identity(record) for record in [*before, *after]}) == 10

    # --- beginning and end ---

    def test_a_task_that_was_not_started_is_stopped(self) -> None:
        self._task(FakeSourceContext()).stop()

    def test_a_task_is_stopped_twice_and_another_one_started(self) -> None:
        self.produce(0, 3)
        for _ in range(2):
            with self.running() as (task, _):
                self.read(task, 3)
                task.stop()

    def test_a_commit_without_records_does_nothing(self) -> None:
        with self.running() as (task, _):
            task.commit()

    def test_an_outage_is_retriable_and_loses_nothing(self) -> None:
        if not self.can_break:
            pytest.skip("the suite does not implement break_other_side")
        self.produce(0, 5)
        with self.running() as (task, _):
            records = self.read(task, 5)
            self.commit(task, records)
            self.break_other_side()
            for _ in range(3):
                try:
                    records += task.poll()
                except RetriableError:
                    pass
            self.mend_other_side()
            self.produce(5, 5)
            records += self.read(task, 10 - len(records))
        assert len({self.identity(record) for record in records}) == 10

    # --- for tests of your own ---

    @contextmanager
    def running(
        self, offsets: Iterable[tuple[SourcePartition, SourceOffset]] = (), *, changes: Mapping[str, str] | None = None
    ) -> Iterator[tuple[SourceTask, FakeSourceContext]]:
        """A started task that continues from these offsets, and its context; stopped at the end."""
        context = FakeSourceContext(offsets)
        task = self._task(context, changes)
        try:
            task.start()
            yield task, context
        finally:
            context.stop()
            task.stop()

    def read(self, task: SourceTask, count: int) -> list[SourceRecord]:
        """Poll until there are at least `count` records; fails on a timeout."""
        return [record for batch in self._batches(task, count) for record in batch]

    def rest(self, task: SourceTask) -> list[SourceRecord]:
        """Poll until there are no more records."""
        records: list[SourceRecord] = []
        idle = 0
        while idle < self.settling_polls:
            batch = task.poll()
            idle = 0 if batch else idle + 1
            records.extend(batch)
        return records

    def commit(self, task: SourceTask, records: Iterable[SourceRecord]) -> None:
        """Acknowledge these records and their offsets, as a worker does."""
        for record in records:
            task.commit_record(record)
        task.commit()

    def _batches(self, task: SourceTask, count: int) -> Iterator[Sequence[SourceRecord]]:
        """The results of polls until there are `count` records; pauses after RetriableError."""
        until = time.monotonic() + PATIENCE_SECONDS
        while count > 0:
            assert time.monotonic() < until, f"{count} more records were expected"
            try:
                batch = task.poll()
            except RetriableError:
                time.sleep(0.05)
                continue
            count -= len(batch)
            yield batch

    def _task(self, context: FakeSourceContext, changes: Mapping[str, str] | None = None) -> SourceTask:
        return self.connector_class.task_class(self._plan_task(changes), context)


def offsets_of(records: Iterable[SourceRecord]) -> Offsets:
    """The offsets that a worker commits after these records: the last one of each source partition."""
    latest = {json.dumps(dict(record.source_partition), sort_keys=True): record for record in records}
    return [(record.source_partition, record.source_offset) for record in latest.values()]
