"""Runs a source's task at least once: offsets are written when the records before them are acknowledged."""

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
    "message.timeout.ms": 0,  # never give up: the cluster comes back
    "message.max.bytes": 100_000_000,  # the cluster decides how large a record may be
    "partitioner": "murmur2_random",  # Java's partitioner
    "queue.buffering.max.messages": _IN_FLIGHT_MAX,
    "queue.buffering.max.kbytes": 131_072,
    "reconnect.backoff.max.ms": 1_000,
}
Offsets = Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]]


@dataclass(slots=True)
class _Polled:
    """The records of one poll, and their offsets."""

    batch: Batch
    sent: Sequence[OutgoingRecord]
    records: Sequence[SourceRecord]
    """The source's record for each record that was sent."""
    dropped: Sequence[SourceRecord]
    offsets: Offsets


class AtLeastOnceSource(SourceWork):
    """Sends records as they come, and writes offsets regularly."""

    def __init__(self, setup: TaskSetup) -> None:
        super().__init__(setup)
        settings = setup.services.settings
        self._interval = settings.offset_flush_interval_ms / 1000
        self._flush_seconds = settings.offset_flush_timeout_ms / 1000
        self._next_flush = time.monotonic() + self._interval
        self._in_flight: deque[_Polled] = deque()
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
        self._sender.finish([polled.batch for polled in self._in_flight], self._flush_seconds)
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
        self._in_flight.append(_Polled(batch, sent, origins, dropped, last_offsets(records)))
        self.counters.source_record_active += len(sent)

    def _collect(self, timeout_seconds: float = 0.0) -> None:
        """Handle acknowledgements, and collect the offsets that may be written."""
        self._sender.poll(timeout_seconds)
        while self._in_flight and self._in_flight[0].batch.is_complete:
            polled = self._in_flight.popleft()
            self.counters.source_record_active -= len(polled.records)
            failures = self._resend_alone(polled) if polled.batch.failures else ()
            for index, error in failures:
                self.reject(polled.records[index], error)
            self.counters.source_record_write += len(polled.records) - len(failures)
            if self.wants_offsets:
                self.task.delivered(polled.records, polled.batch.offsets)
            if self.wants_records:
                for record in (*polled.records, *polled.dropped):
                    self.task.commit_record(record)
            for partition, offset in polled.offsets:
                self._unwritten[repr(sorted(partition.items()))] = (partition, offset)

    def _resend_alone(self, polled: _Polled) -> list[tuple[int, ClientError]]:
        """Records of a batch that fail even when each one that was rejected together with others is sent alone."""
        failures = []
        for index, error in polled.batch.failures:
            if error.code in REFUSED_TOGETHER:
                self._wait_for([other.batch for other in self._in_flight])
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
        """Write offsets; if that fails, the next flush includes them."""
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
                log.warning("offsets were not written: the next flush includes them", extra=extra)
                return
            self._unwritten.clear()
            self.counters.offset_commit_completion += 1
        # Also without new records: the task may have to repeat work that failed.
        self.task.commit()
