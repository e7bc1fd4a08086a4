"""Writes the records of a batch: with the offsets that it has read, in one transaction, so that neither happens twice.

The metadata of the offsets tell which batch it was: one that Spark repeats, since it does not know that it was written,
is not written again.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, Fatal
from core_broker.client.group_consumer import Commit
from core_broker.client.handshake import check_handshake
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import Configuration
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer
from streams.spark.commits.staged_records import read_records
from streams.spark.queries.checkpoints import StateLost
from streams.spark.queries.notes import Note
from streams.spark.queries.spec import BEGIN_ANEW, QuerySpec, cluster_of
from streams.spark.queries.staging import Staged
from streams.spark.topics.column_producer import ANY_PARTITION, ColumnProducer

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
_DEFAULTS: Final[Configuration] = {
    # The cluster decides how large a record may be, not the client.
    "message.max.bytes": 100_000_000,
    # The Java client's partitioner, so that a key goes to the same partition as with other Kafka clients.
    "partitioner": "murmur2_random",
    "delivery.report.only.error": True,
    # A batch is sent at once: there is nothing to wait for.
    "linger.ms": 0,
    "queue.buffering.max.kbytes": 65_536,
}
_NOW: Final = 0
_FIRST_MS: Final = 1
"""In librdkafka, the time 0 is the present: records of 1970 get the millisecond after it."""


class Replaced(StateLost):
    """Another run of the query has begun: this one must not write any more."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch writes."""

    batch: int
    staged: tuple[Staged, ...]
    notes: tuple[Note, ...]
    ends: dict[TopicPartition, int]


class Sender:
    """Writes the batches of one run of a query; for one thread at a time."""

    def __init__(self, spec: QuerySpec) -> None:
        assert spec.plan.sink is not None, "rows for a client are not sent"
        self._spec = spec
        self._sink = spec.plan.sink
        self._settings = cluster_of(spec.cluster).settings(timeout_ms=60_000)
        self._admin = Admin(self._settings)
        self._producer: TransactionalProducer | None = None
        self._columns: ColumnProducer | None = None
        self._sent = -1
        self._committed: dict[TopicPartition, int] = {}

    def begin(self, topics: Iterable[str]) -> dict[TopicPartition, int] | None:
        """Take over from an earlier run; what it has committed for these topics, None if it has committed nothing."""
        # A login that is refused fails at once, with the reason; the library would go on trying.
        check_handshake(self._settings)
        if self._spec.transactional:
            # Before the offsets are read: then no transaction of an earlier run can be open any more.
            self._initialized()
        wanted, commits = set(topics), self._admin.group_commits(self._spec.group)
        batches = {
            place: self._spec.batch_of(commit.metadata) for place, commit in commits.items() if place[0] in wanted
        }
        self._sent = max((batch for batch in batches.values() if batch is not None), default=-1)
        self._committed = {place: commits[place].offset for place, batch in batches.items() if batch is not None}
        return self._committed or None

    @property
    def sent(self) -> int:
        """The last batch that was written; -1 for none."""
        return self._sent

    def begin_at(self, places: Mapping[TopicPartition, int]) -> None:
        """Commit where the query begins."""
        marker = self._spec.marker(-1)
        if not places:
            return
        if not self._spec.transactional:
            self._admin.set_group_commits(self._spec.group, {place: Commit(at, marker) for place, at in places.items()})
            return
        producer = self._initialized()
        producer.begin()
        producer.send_offsets(self._spec.group, places, metadata=marker)
        producer.commit()
        self._sent, self._committed = -1, dict(places)

    def sink_partitions(self) -> int:
        """How many partitions the sink's topic has."""
        (topic,) = self._admin.topics([self._sink.topic])
        return len(topic.partitions)

    def send(self, output: Output) -> int:
        """Write a batch, unless that was done before; returns how many records it was."""
        if output.batch <= self._sent:
            self._check_repeated(output)
            return 0
        send = self._send_in_transaction if self._spec.transactional else self._send_plainly
        count = send(output)
        self._sent, self._committed = output.batch, {**self._committed, **output.ends}
        return count

    def delete_needless(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete records of repartition topics that were processed; what cannot be deleted now will be later."""
        try:
            self._admin.delete_records({place: offset for place, offset in before.items() if offset > 0})
        except ClientError as error:
            extra = {"query": self._spec.plan.name, "reason": str(error)}
            log.warning("processed records were not deleted", extra=extra)

    def close(self) -> None:
        """Close the producer; what was not committed is discarded."""
        producer, columns = self._producer, self._columns
        self._producer = self._columns = None
        if producer is not None:
            producer.close()
        if columns is not None:
            columns.close()

    def _check_repeated(self, output: Output) -> None:
        """Spark repeats at most its last batch, and reads the same then. Anything else was not what we have sent."""
        if output.batch < self._sent or any(self._committed.get(at) != end for at, end in output.ends.items()):
            reason = f"has written batch {self._sent}, but its checkpoint is older, perhaps a copy"
            raise StateLost(f"Query {self._spec.plan.name} {reason}: {BEGIN_ANEW}")
        log.info("a batch was written before", extra={"query": self._spec.plan.name, "batch": output.batch})

    def _send_in_transaction(self, output: Output) -> int:
        for attempt in range(_ATTEMPTS):
            producer = self._initialized()
            try:
                producer.begin()
                count = self._queue(producer, output)
                if output.ends:
                    marker = self._spec.marker(output.batch)
                    producer.send_offsets(self._spec.group, output.ends, metadata=marker)
                producer.commit()
                return count
            except AbortNeeded as error:
                if error.is_refusal or attempt == _ATTEMPTS - 1:
                    raise
                producer.abort()
            except Fatal as error:
                raise Replaced(f"Another run of query {self._spec.plan.name} has begun") from error
            except ClientError:
                # It is unknown whether the transaction was committed: the next run asks.
                self.close()
                raise
        raise AssertionError("the last attempt returns or raises")

    def _queue(self, producer: TransactionalProducer, output: Output) -> int:
        count = 0
        for staged in output.staged:
            for batch in staged.batches():
                keys, values, times, partitions = _columns(batch)
                producer.send_columns(self._sink.topic, keys, values, timestamps_ms=times, partitions=partitions)
            count += staged.count
        for letter in _letters(output.notes):
            producer.send(letter)
        return count

    def _send_plainly(self, output: Output) -> int:
        if self._columns is None:
            self._columns = ColumnProducer(self._settings)
        count = 0
        for staged in output.staged:
            for batch in staged.batches():
                keys, values, times, partitions = _columns(batch)
                self._columns.send(self._sink.topic, values, keys=keys, partitions=partitions, timestamps_ms=times)
            count += staged.count
        for letter in _letters(output.notes):
            self._columns.send(letter.topic, [letter.value], keys=[letter.key], headers=[letter.headers])
        self._columns.flush()
        marker = self._spec.marker(output.batch)
        commits = {place: Commit(end, marker) for place, end in output.ends.items()}
        if commits:
            self._admin.set_group_commits(self._spec.group, commits)
        return count

    def _initialized(self) -> TransactionalProducer:
        if self._producer is None:
            producer = TransactionalProducer(
                self._settings, transactional_id=self._spec.transactional_id, defaults=_DEFAULTS
            )
            producer.init()
            self._producer = producer
        return self._producer


def _columns(batch: pa.RecordBatch) -> tuple[list[bytes | None], list[bytes | None], list[int], list[int]]:
    times = pc.max_element_wise(batch.column("timestamp"), pa.scalar(_FIRST_MS, pa.int64()), skip_nulls=False)
    return (
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        times.fill_null(_NOW).to_pylist(),
        batch.column("partition").fill_null(ANY_PARTITION).to_pylist(),
    )


def _letters(notes: Iterable[Note]) -> Iterable[OutgoingRecord]:
    return (letter for note in notes for file in note.letters for letter in read_records(file.path))
