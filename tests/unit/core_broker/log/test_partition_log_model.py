"""The log against a list: whatever is done to it, it holds what the list holds."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.leader_epochs import EpochStart
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import Record, build_batch, end_transaction_marker, parse_batches, read_records
from core_broker.service.clock import ManualClock
from core_broker.settings.topic import TopicSettings

SETTINGS = TopicSettings(segment_bytes=1500, index_interval_bytes=150, segment_index_bytes=96, segment_ms=100_000)
MAX_BYTES = 1 << 20


class LogAgainstList(RuleBasedStateMachine):
    """Batches of one to four records; `model` has (last offset, records) of each, `None` for a marker."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock(1_000_000)
        self.model: list[tuple[int, int, list[Record]]] = []
        self.start = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.log = self.open(clean=True)

    def open(self, *, clean: bool, recovery_point: int = 0) -> PartitionLog:
        return PartitionLog.open(
            self.directory / "t-0",
            topic="t",
            partition=0,
            settings=SETTINGS,
            clock=self.clock,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=self.start,
        )

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @property
    def end(self) -> int:
        return self.model[-1][1] + 1 if self.model else self.floor

    floor = 0

    def put(self, records: list[Record], first: int) -> None:
        stored = [
            Record(first + index, record.timestamp, record.key, record.value) for index, record in enumerate(records)
        ]
        self.model.append((first, first + len(records) - 1, stored))

    # -- what is done to the log -------------------------------------------------------------------------------------

    @rule(
        values=st.lists(st.binary(max_size=120), min_size=1, max_size=4),
        codec=st.sampled_from(list(Codec)),
        step_ms=st.integers(0, 30_000),
    )
    def append(self, values: list[bytes], codec: Codec, step_ms: int) -> None:
        self.clock.advance(step_ms)
        records = [Record(timestamp=self.clock.now_ms() - index * 7, value=value) for index, value in enumerate(values)]
        result = self.log.append(build_batch(records, codec=codec), leader_epoch=self.epoch)
        assert (result.first_offset, result.duplicate) == (self.end, False)
        self.put(records, self.end)

    @rule(producer_id=st.integers(1, 3), transactional=st.booleans(), retry=st.booleans())
    def append_idempotent(self, producer_id: int, transactional: bool, retry: bool) -> None:
        is_open = self.log.producers.has_ongoing_transaction(producer_id)
        records = [Record(timestamp=self.clock.now_ms(), key=b"k", value=b"v" * producer_id)]
        sequence = self.sequences.get(producer_id, 0)

        def batch() -> bytearray:
            return build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=transactional or is_open,
            )

        first = self.log.append(batch(), leader_epoch=self.epoch)
        assert first.first_offset == self.end
        if retry:
            second = self.log.append(batch(), leader_epoch=self.epoch)
            assert (second.first_offset, second.duplicate) == (first.first_offset, True)
        self.put(records, self.end)
        self.sequences[producer_id] = sequence + 1

    @rule(producer_id=st.integers(1, 3), commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        assume(self.log.producers.has_ongoing_transaction(producer_id))
        marker = end_transaction_marker(
            producer_id, 0, commit=commit, coordinator_epoch=1, timestamp_ms=self.clock.now_ms()
        )
        [header] = parse_batches(marker)
        [record] = read_records(marker, header)
        self.log.append(marker, leader_epoch=self.epoch, origin=Origin.COORDINATOR)
        self.put([record], self.end)

    @rule()
    def become_leader(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.log.end_offset

    @rule()
    def reopen_clean(self) -> None:
        before = sorted(self.log.producers.active_producers(), key=lambda producer: producer.producer_id)
        epochs = self.epochs_with_records()
        self.log.close()
        self.log = self.open(clean=True)
        after = sorted(self.log.producers.active_producers(), key=lambda producer: producer.producer_id)
        assert before == after
        assert epochs == self.epochs_with_records()

    def epochs_with_records(self) -> list[EpochStart]:
        """As in Kafka, an epoch that begins at the end of the log is forgotten when it is opened."""
        return [entry for entry in self.log.epochs.entries if entry.start_offset < self.log.end_offset]

    @rule(from_recovery_point=st.booleans())
    def reopen_after_kill(self, from_recovery_point: bool) -> None:
        before = sorted(self.log.producers.active_producers(), key=lambda producer: producer.producer_id)
        epochs = self.epochs_with_records()
        self.log = self.open(clean=False, recovery_point=self.log.recovery_point if from_recovery_point else 0)
        after = sorted(self.log.producers.active_producers(), key=lambda producer: producer.producer_id)
        assert before == after
        assert epochs == self.epochs_with_records()

    @precondition(lambda self: self.log.active_segment.size > 0)
    @rule(data=st.data())
    def cut_the_tail_and_reopen(self, data: st.DataObject) -> None:
        segment = self.log.active_segment
        size = data.draw(st.integers(0, segment.size - 1))
        with segment.path.open("r+b") as file:
            file.truncate(size)
        kept = self.batches_of(segment.path, size)
        self.log = self.open(clean=False, recovery_point=self.log.recovery_point)
        last = segment.base_offset + sum(kept)
        self.forget_from(last)

    @precondition(lambda self: self.log.active_segment.size > 0)
    @rule(data=st.data())
    def flip_a_byte_and_reopen(self, data: st.DataObject) -> None:
        """In the part of a batch that its checksum covers; everything from that batch on is lost."""
        segment = self.log.active_segment
        content = bytearray(segment.path.read_bytes()[: segment.size])
        header = data.draw(st.sampled_from(parse_batches(content)))
        position = data.draw(st.integers(header.position + 17, header.position + header.size - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        segment.path.write_bytes(content)
        self.log = self.open(clean=False, recovery_point=self.log.recovery_point)
        self.forget_from(header.base_offset)

    def batches_of(self, path: Path, size: int) -> list[int]:
        """Record counts of the whole batches in the first `size` bytes."""
        content = path.read_bytes()[:size]
        counts = []
        position = 0
        while position + 12 <= len(content):
            length = int.from_bytes(content[position + 8 : position + 12], "big") + 12
            if position + length > len(content):
                break
            counts.append(int.from_bytes(content[position + 23 : position + 27], "big") + 1)
            position += length
        return counts

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset)
        self.forget_from(offset)
        assert self.log.end_offset <= offset

    def forget_from(self, offset: int) -> None:
        """Whole batches go: what holds `offset` is dropped, and the log ends where the one before it does."""
        self.model = [batch for batch in self.model if batch[1] < offset and self.log.size_bytes]
        self.floor = self.start
        # The log is the authority on where the next offset is; that it agrees with the model is checked below.
        self.sequences = {
            producer.producer_id: producer.last_sequence + 1 for producer in self.log.producers.active_producers()
        }

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.delete_records_before(self.start)
        self.log.delete_old_segments(high_watermark=self.end)
        self.log.remove_deleted_files(at_once=True)
        base = self.log.segments[0].base_offset
        self.model = [batch for batch in self.model if batch[1] >= base]
        if not self.model:
            self.floor = self.log.end_offset

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def offsets_are_right(self) -> None:
        assert self.log.end_offset == self.end
        assert self.log.start_offset == self.start

    @invariant()
    def all_batches_are_there(self) -> None:
        found = []
        for header, view in self.log.read_batches(0, self.end):
            found.append((header.base_offset, header.last_offset, read_records(view, header)))
        assert found == self.model

    @invariant()
    def reading_from_any_offset_finds_its_batch(self) -> None:
        for first, last, _ in self.model[-5:]:
            for offset in range(max(first, self.start), last + 1):
                found = self.log.read(offset, 1, upper_offset=self.end)
                assert found is not None
                [header] = parse_batches(found.file.read(found.position, found.length))
                assert (header.base_offset, header.last_offset) == (first, last)
                assert found.next_offset == last + 1

    @invariant()
    def reading_on_and_on_reaches_the_end(self) -> None:
        offset = self.start
        seen = 0
        while (found := self.log.read(offset, 400, upper_offset=self.end)) is not None:
            headers = parse_batches(found.file.read(found.position, found.length))
            assert headers[0].last_offset >= offset
            assert found.next_offset == headers[-1].last_offset + 1
            assert found.length <= 400 or len(headers) == 1
            seen += len(headers)
            offset = found.next_offset
        assert offset == self.end
        assert seen == len([batch for batch in self.model if batch[1] >= self.start])

    @invariant()
    def what_does_not_fit_is_left_out_and_never_skipped(self) -> None:
        for first, last, _ in [batch for batch in self.model if batch[1] >= self.start]:
            for bytes_max in (100, 200, 400):
                found = self.log.read(max(first, self.start), bytes_max, upper_offset=self.end, at_least_one=False)
                if found is not None:
                    headers = parse_batches(found.file.read(found.position, found.length))
                    assert (headers[0].base_offset, headers[0].last_offset) == (first, last)

    @invariant()
    def nothing_above_the_upper_offset_is_read(self) -> None:
        for first, last, _ in self.model[-3:]:
            if first > self.start:
                found = self.log.read(self.start, MAX_BYTES, upper_offset=last)
                if found is not None:
                    assert found.next_offset <= first

    @invariant()
    def outside_is_out_of_range(self) -> None:
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(BrokerError) as caught:
                self.log.read(offset, MAX_BYTES, upper_offset=self.end)
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def first_record_at_a_time_is_found(self) -> None:
        records = [record for batch in self.model for record in batch[2] if record.offset >= self.start]
        for wanted in {record.timestamp for record in records[-6:]} | {0}:
            expected = next((record for record in records if record.timestamp >= wanted), None)
            found = self.log.offset_for_timestamp(wanted, upper_offset=self.end)
            assert (found and found[:2]) == (expected and (expected.timestamp, expected.offset))
        assert self.log.offset_for_timestamp(self.clock.now_ms() + 1, upper_offset=self.end) is None

    @invariant()
    def indexes_agree_with_the_log(self) -> None:
        for segment in self.log.segments:
            batches = {position: fields for position, fields, _ in segment.scan()}
            for slot in range(segment.offsets.count):
                offset, position = segment.offsets._entry(slot)
                assert batches[position][0] + batches[position][6] == offset
            for slot in range(segment.times.count):
                timestamp, offset = segment.times._entry(slot)
                assert any(f[8] == timestamp and f[0] + f[6] == offset for f in batches.values())
                assert all(f[8] <= timestamp for f in batches.values() if f[0] + f[6] <= offset)
            segment.transactions.check(segment.base_offset)


LogAgainstList.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
test_log_holds_what_the_list_holds = LogAgainstList.TestCase
