"""Runs the task of a source, at least once: offsets are written when the records before them are safe."""

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from connect.api.data import Value
from connect.api.errors import ConnectError
from connect.api.record import SourceRecord
from connect.runtime.batch_producer import Batch, BatchProducer
from connect.runtime.configuration.client_overrides import producer_properties
from connect.runtime.tasks.setup import TaskSetup
from connect.runtime.tasks.source_work import SourceWork, last_offsets
from core_broker.client.errors import REFUSED_TOGETHER, ClientError
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import Configuration

log = logging.getLogger(__name__)

_IN_FLIGHT_MAX: Final = 100_000
_DEFAULTS: Final[Configuration] = {
    "message.timeout.ms": 0,  # a cluster that is away comes back: nothing is given up meanwhile
    "message.max.bytes": 100_000_000,  # the cluster decides how large a record may be
    "partitioner": "murmur2_random",  # a key comes to the partition that Java's producers would choose
    "queue.buffering.max.messages": _IN_FLIGHT_MAX,
    "queue.buffering.max.kbytes": 131_072,
    "reconnect.backoff.max.ms": 1_000,
}
Offsets = Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]]


@dataclass(slots=True)
class _Polled:
    """What came with one poll, and how far that goes."""

    batch: Batch
    sent: Sequence[OutgoingRecord]
    records: Sequence[SourceRecord]
    """What was sent comes from, one for each."""
    dropped: Sequence[SourceRecord]
    offsets: Offsets


class AtLeastOnceSource(SourceWork):
    """Sends as records come, and writes offsets now and then."""

    def __init__(self, setup: TaskSetup) -> None:
        super().__init__(setup)
        settings = setup.services.settings
        self._interval = settings.offset_flush_interval_ms / 1000
        self._flush_seconds = settings.offset_flush_timeout_ms / 1000
        self._next_flush = time.monotonic() + self._interval
        self._under_way: deque[_Polled] = deque()
        self._unwritten: dict[str, tuple[Mapping[str, Value], Mapping[str, Value]]] = {}
        properties = producer_properties(settings, self.config.given)
        self._sender = BatchProducer(setup.kafka(properties, role="producer"), defaults=_DEFAULTS)

    @override
    def turn(self) -> None:
        records = self.poll()
        if records:
            self._send(records)
        self._collect()
        while self.counters.source_record_active >= _IN_FLIGHT_MAX and not self.stopping.is_asked:
            self._collect(0.1)
        if time.monotonic() >= self._next_flush:
            self._flush()

    @override
    def rest(self) -> None:
        self._collect()
        if time.monotonic() >= self._next_flush:
            self._flush()
        self.stopping.wait(0.1)

    @override
    def finish(self) -> None:
        self._sender.finish([polled.batch for polled in self._under_way], self._flush_seconds)
        self._collect()
        self._flush()

    @override
    def close(self) -> None:
        self._sender.close()
        super().close()

    def _send(self, records: Sequence[SourceRecord]) -> None:
        sent, origins = self.prepare(records)
        self.stopping.check()
        batch = self._sender.send(sent, give_up=lambda: self.stopping.is_cancelled, keeps_offsets=self.wants_offsets)
        dropped: Sequence[SourceRecord] = ()
        if self.wants_records and len(origins) < len(records):
            kept = set(map(id, origins))
            dropped = [record for record in records if id(record) not in kept]
        self._under_way.append(_Polled(batch, sent, origins, dropped, last_offsets(records)))
        self.counters.source_record_active += len(sent)

    def _collect(self, timeout_seconds: float = 0.0) -> None:
        """Learn what has arrived, and how far the offsets may go for it."""
        self._sender.poll(timeout_seconds)
        while self._under_way and self._under_way[0].batch.is_complete:
            polled = self._under_way.popleft()
            self.counters.source_record_active -= len(polled.records)
            failures = self._not_even_alone(polled) if polled.batch.failures else ()
            for index, error in failures:
                self.not_written(polled.records[index], error)
            self.counters.source_record_write += len(polled.records) - len(failures)
            if self.wants_offsets:
                self.task.delivered(polled.records, polled.batch.offsets)
            if self.wants_records:
                for record in (*polled.records, *polled.dropped):
                    self.task.commit_record(record)
            for partition, offset in polled.offsets:
                self._unwritten[repr(sorted(partition.items()))] = (partition, offset)

    def _not_even_alone(self, polled: _Polled) -> list[tuple[int, ClientError]]:
        """What of a batch cannot be written even when each record that was refused with others is sent by itself."""
        failures = []
        for index, error in polled.batch.failures:
            if error.code in REFUSED_TOGETHER:
                self._wait_for([other.batch for other in self._under_way])
                alone = self._sender.send([polled.sent[index]], give_up=lambda: self.stopping.is_cancelled)
                self._wait_for([alone])
                failures += [(index, refusal) for _, refusal in alone.failures]
            else:
                failures.append((index, error))
        return failures

    def _wait_for(self, batches: Sequence[Batch]) -> None:
        while not self._sender.finish(batches, self._flush_seconds):
            self.stopping.wait_or_raise(0)

    def _flush(self) -> None:
        """Write how far the source is; what fails is written with the next."""
        self._next_flush = time.monotonic() + self._interval
        self.settle_letters()
        if self.stopping.is_cancelled:
            return
        if self._unwritten:
            try:
                self.offsets.put_all(self.setup.plan.id.connector, list(self._unwritten.values()))
            except ConnectError as error:
                self.counters.offset_commit_failures += 1
                extra = {"task": str(self.setup.plan.id), "reason": str(error)}
                log.warning("offsets were not written: they are with the next ones", extra=extra)
                return
            self._unwritten.clear()
            self.counters.offset_commit_completion += 1
        # Also when nothing is new: a task may have something left that it could not do the last time.
        self.task.commit()
