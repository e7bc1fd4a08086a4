"""The checks of every sink: it writes everything, reports offsets only of written records, and survives duplicates."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

import pytest

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkTask, TopicPartition
from connect.testing.connector_suite import ConnectorSuite
from connect.testing.contexts import FakeSinkContext
from connect.testing.samples import EVERY_TYPE, sink_record

PATIENCE_SECONDS: Final = 30.0
TOPIC: Final = "suite"
DEFAULT_SCHEMA: Final = data.struct({"id": data.INT64, "name": data.OPTIONAL_STRING}, name="Suite")


class SinkSuite(ConnectorSuite):
    """Inherit, set `connector_class`, write `config` and `written`; each test gets a new instance and a fresh other
    system, which your own fixture sets up."""

    connector_class: ClassVar[type[SinkConnector]]
    is_idempotent: ClassVar[bool] = False
    """Hook: whether a record that is put twice is written once."""
    can_break: ClassVar[bool] = False
    """Hook: whether `break_other_side` and `mend_other_side` are implemented."""
    takes_schemaless: ClassVar[bool] = True
    """Hook: whether dicts without a schema can be written; else they must raise DataError."""

    def written(self) -> list[Value]:
        """Hook: the records in the other system now, in any order, in the format of `expected`."""
        raise NotImplementedError("written() of the suite: read back what arrived in the other system")

    def expected(self, record: SinkRecord) -> Value:
        """Hook: a record in the format of `written`; its value unless overridden."""
        return record.value

    def record(self, number: int) -> SinkRecord:
        """Hook: a good record; its number is its offset, too."""
        key, value = f"key-{number}", {"id": number, "name": f"name-{number}"}
        return sink_record(
            TOPIC, number, key=key, key_schema=data.STRING, value=value, value_schema=self.schema(DEFAULT_SCHEMA)
        )

    def schema(self, schema: Schema) -> Schema | None:
        """Hook: the schema that records of the suite carry; None for sinks that are tested without."""
        return schema

    def bad_value(self) -> tuple[Schema | None, Value] | None:
        """Hook: a value that the other system rejects, with its schema; None when it accepts everything."""
        return None

    def break_other_side(self) -> None:
        """Hook: make the other system fail, as in an outage."""

    def mend_other_side(self) -> None:
        """Hook: end the outage."""

    # --- writing ---

    def test_what_was_put_and_committed_is_there(self) -> None:
        records = self.records(0, 20)
        with self.running() as (task, _):
            task.put(records)
            self.commit(task, records)
        assert self.is_there(records)

    def test_records_of_several_puts_are_there(self) -> None:
        records = self.records(0, 30)
        with self.running() as (task, _):
            for start in range(0, 30, 7):
                task.put(records[start : start + 7])
            self.commit(task, records)
        assert self.is_there(records)

    def test_a_put_of_nothing_does_nothing(self) -> None:
        with self.running() as (task, _):
            task.put([])
            self.commit(task, [])
        assert self.written() == []

    def test_offsets_are_given_free_only_when_their_records_are_there(self) -> None:
        records = self.records(0, 20)
        with self.running() as (task, _):
            task.put(records)
            free = self.commit(task, records, patience_seconds=0).get((TOPIC, 0), 0)
            assert free <= 20
            assert self.contains(records[:free])

    # --- duplicates ---

    def test_records_that_come_again_after_a_crash_before_the_flush_are_not_lost(self) -> None:
        records = self.records(0, 20)
        with self.abandoned() as (crashed, _):
            crashed.put(records)
            with self.running() as (task, _):
                task.put(records)
                self.commit(task, records)
            assert self.is_there(records, at_least_once=True)

    def test_records_that_come_again_because_their_offsets_were_not_committed_are_not_lost(self) -> None:
        records = self.records(0, 20)
        with self.abandoned() as (crashed, _):
            crashed.put(records)
            self.commit(crashed, records)
            with self.running() as (task, _):
                task.put(records)
                self.commit(task, records)
            assert self.is_there(records, at_least_once=True)

    def test_after_a_clean_end_it_goes_on_behind_what_was_committed(self) -> None:
        records = self.records(0, 20)
        with self.running() as (task, _):
            task.put(records[:12])
            free = self.commit(task, records[:12]).get((TOPIC, 0), 0)
        with self.running() as (task, _):
            task.put(records[free:])
            self.commit(task, records)
        assert self.is_there(records)

    # --- kinds of records ---

    @pytest.mark.parametrize("kind", EVERY_TYPE)
    def test_each_type_is_written_or_refused_as_bad_data(self, kind: str) -> None:
        schema, value = EVERY_TYPE[kind]
        whole = data.struct({"id": data.INT64, "field": schema}, name="EveryType")
        both = {"id": 0, "field": value}
        record = sink_record(TOPIC, 0, key="key-0", key_schema=data.STRING, value=both, value_schema=whole)
        with self.running() as (task, context):
            refused = self.deliver(task, context, [record])
            if not refused:
                self.commit(task, [record])
        assert refused or len(self.written()) == 1

    def test_dicts_without_a_schema_are_written_or_refused_as_bad_data(self) -> None:
        value = {"id": 0, "name": "name-0"}
        record = sink_record(TOPIC, 0, key="key-0", value=value)
        with self.running() as (task, context):
            refused = self.deliver(task, context, [record])
            if not refused:
                self.commit(task, [record])
        assert bool(refused) != self.takes_schemaless
        assert len(self.written()) == (1 if self.takes_schemaless else 0)

    def test_a_tombstone_does_no_harm_to_others(self) -> None:
        first, last = self.record(0), self.record(2)
        tombstone = sink_record(TOPIC, 1, key="key-1", key_schema=data.STRING, value=None)
        with self.running() as (task, context):
            self.deliver(task, context, [first, tombstone, last])
            self.commit(task, [first, tombstone, last])
        assert self.contains([first, last])

    def test_a_bad_record_is_refused_alone(self) -> None:
        schema_and_value = self.bad_value()
        if schema_and_value is None:
            pytest.skip("the other system accepts everything")
        schema, value = schema_and_value
        bad = sink_record(TOPIC, 1, key="key-1", key_schema=data.STRING, value=value, value_schema=schema)
        good = [self.record(0), self.record(2)]
        with self.running() as (task, context):
            refused = self.deliver(task, context, [good[0], bad, good[1]])
            self.commit(task, [good[0], bad, good[1]])
        assert [record.offset for record in refused] == [1]
        assert self.is_there(good, at_least_once=not self.is_idempotent)

    # --- beginning and end ---

    def test_an_outage_is_retriable_and_ends(self) -> None:
        if not self.can_break:
            pytest.skip("the suite does not implement break_other_side")
        records = self.records(0, 10)
        with self.running() as (task, _):
            task.put(records[:5])
            free = self.commit(task, records[:5]).get((TOPIC, 0), 0)
            self.break_other_side()
            with pytest.raises(RetriableError):
                self._put_and_flush(task, records[free:])
            self.mend_other_side()
            self._put_patiently(task, records[free:])
            self.commit(task, records)
        assert self.is_there(records, at_least_once=True)

    def test_a_task_that_was_not_started_is_stopped(self) -> None:
        self._task(FakeSinkContext()).stop()

    def test_a_task_is_stopped_twice_and_another_one_started(self) -> None:
        for _ in range(2):
            with self.running() as (task, _):
                task.stop()

    def test_partitions_come_and_go(self) -> None:
        records = self.records(0, 4)
        with self.running() as (task, _):
            task.put(records[:2])
            free = self.commit(task, records[:2]).get((TOPIC, 0), 0)
            task.close([(TOPIC, 0)])
            task.open([(TOPIC, 0), (TOPIC, 1)])
            task.put(records[free:])
            self.commit(task, records)
        assert self.is_there(records)

    # --- for tests of your own ---

    @contextmanager
    def running(self, *, changes: Mapping[str, str] | None = None) -> Iterator[tuple[SinkTask, FakeSinkContext]]:
        """A started task with partition 0 of the suite's topic, and its context; closed and stopped at the end."""
        with self.abandoned(changes=changes) as (task, context):
            yield task, context
            task.close(context.assignment)

    @contextmanager
    def abandoned(self, *, changes: Mapping[str, str] | None = None) -> Iterator[tuple[SinkTask, FakeSinkContext]]:
        """The same, but never closed: inside of this block it is as after a crash."""
        context = FakeSinkContext([(TOPIC, 0)])
        task = self._task(context, changes)
        try:
            task.start()
            task.open(context.assignment)
            yield task, context
        finally:
            context.stop()
            task.stop()

    def records(self, first: int, count: int) -> list[SinkRecord]:
        """A number of good records."""
        return [self.record(number) for number in range(first, first + count)]

    def commit(
        self, task: SinkTask, records: Sequence[SinkRecord], *, patience_seconds: float = PATIENCE_SECONDS
    ) -> Mapping[TopicPartition, int]:
        """Ask which offsets may be committed, as a worker does, until all of these or a timeout; meanwhile, put no
        records now and then."""
        wanted = {(record.original_topic, record.original_partition): record.original_offset + 1 for record in records}
        until = time.monotonic() + patience_seconds
        while True:
            free = task.pre_commit(wanted)
            assert all(place in wanted and offset <= wanted[place] for place, offset in free.items())
            if free == wanted or time.monotonic() >= until:
                return free
            task.put([])
            time.sleep(0.01)

    def deliver(self, task: SinkTask, context: FakeSinkContext, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """Put records, and split a batch that fails until the bad ones are found, as a worker does; returns those."""
        try:
            task.put(records)
            task.flush({record.place: record.original_offset + 1 for record in records})
        except DataError:
            if len(records) == 1:
                return list(records)
            return [bad for record in records for bad in self.deliver(task, context, [record])]
        return [record for record, _ in context.reported if record in records]

    def contains(self, records: Sequence[SinkRecord]) -> bool:
        """Whether all of these are in the other system."""
        found = {repr(value) for value in self.written()}
        return all(repr(self.expected(record)) in found for record in records)

    def is_there(self, records: Sequence[SinkRecord], *, at_least_once: bool = False) -> bool:
        """Whether exactly these are in the other system; with `at_least_once` duplicates are allowed, unless the sink
        is idempotent."""
        found = sorted(repr(value) for value in self.written())
        wanted = sorted(repr(self.expected(record)) for record in records)
        if at_least_once and not self.is_idempotent:
            return set(found) == set(wanted)
        return found == wanted

    def _put_and_flush(self, task: SinkTask, records: Sequence[SinkRecord]) -> None:
        task.put(records)
        task.pre_commit({record.place: record.original_offset + 1 for record in records})

    def _put_patiently(self, task: SinkTask, records: Sequence[SinkRecord]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                task.put(records)
                return
            except RetriableError as error:
                if time.monotonic() >= until:
                    raise ConnectError("the other system is back, but the sink does not recover") from error
                time.sleep(0.05)

    def _task(self, context: FakeSinkContext, changes: Mapping[str, str] | None = None) -> SinkTask:
        return self.connector_class.task_class(self._plan_task(changes), context)
