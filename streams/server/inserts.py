"""Rows that are inserted one by one: INSERT INTO ... VALUES, and streams of rows over HTTP, through one producer."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from core_broker.client.errors import ClientError
from core_broker.client.producer import Producer
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings
from schema_registry.client.errors import ClientError as RegistryError
from streams.formats.errors import FormatError
from streams.formats.json_values import from_json
from streams.formats.registry import Schemas
from streams.formats.values import RecordCodec
from streams.model.pull import PullPlan
from streams.model.sources import ROWTIME, Source
from streams.server.engine import EngineDoor
from streams.server.errors import BadRequest, BadStatement, ServerFailed, ServiceError
from streams.server.failures import service_error

log = logging.getLogger(__name__)

OnDone = Callable[[ServiceError | None], None]
_CODECS_MAX: Final = 1000
_POLL_SECONDS: Final = 0.1


class Inserter:
    """Writes rows. Threads may share it; nothing is connected to before the first row."""

    def __init__(self, settings: ClientSettings, schemas: Schemas) -> None:
        # Rows with the same key must go where Kafka's own clients and our queries put them.
        self._settings = replace(settings, properties={"partitioner": "murmur2_random", **settings.properties})
        self._schemas = schemas
        self._codecs: dict[str, RecordCodec] = {}
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._poller: threading.Thread | None = None
        self._is_closed = threading.Event()

    def insert(self, source: Source, row: Mapping[str, object]) -> None:
        """Write a row and wait until the cluster has it; raises ServiceError."""
        done = threading.Event()
        outcome: list[ServiceError | None] = []

        def on_done(error: ServiceError | None) -> None:
            outcome.append(error)
            done.set()

        self.send(source, row, on_done)
        if not done.wait(self._settings.timeout_seconds + 5.0):
            raise ServerFailed(f"{_failed(source)} The cluster did not acknowledge the record in time.")
        if outcome[0] is not None:
            raise outcome[0]

    def send(self, source: Source, row: Mapping[str, object], on_done: OnDone) -> None:
        """Write a row; `on_done` is called on a thread of ours. Raises ServiceError if it cannot even be tried."""
        check_target(source)
        key, value = self._encode(source, row)
        rowtime = row.get(ROWTIME)
        record = OutgoingRecord(
            topic=source.topic, key=key, value=value, timestamp_ms=rowtime if isinstance(rowtime, int) else None
        )

        def on_delivery(outcome: Delivery | ClientError) -> None:
            on_done(None if isinstance(outcome, Delivery) else _error(source, outcome))

        try:
            self._running().send(record, on_delivery)
        except ClientError as error:
            raise _error(source, error) from error

    def close(self) -> None:
        """Give up the rows in flight."""
        self._is_closed.set()
        with self._lock:
            producer, poller = self._producer, self._poller
        if producer is not None and poller is not None:
            poller.join(5.0)
            producer.close()

    def _encode(self, source: Source, row: Mapping[str, object]) -> tuple[bytes | None, bytes | None]:
        codec = self._codecs.get(source.name)
        try:
            if codec is None or codec.source != source:
                if len(self._codecs) >= _CODECS_MAX:
                    self._codecs.clear()
                codec = self._codecs[source.name] = RecordCodec(source, self._schemas)
            return codec.encode(row)
        except (FormatError, RegistryError) as error:
            raise _error(source, error) from error

    def _running(self) -> Producer:
        with self._lock:
            if self._is_closed.is_set():
                raise ServerFailed("The server is shutting down")
            if self._producer is None:
                self._producer = Producer(self._settings)
                self._poller = threading.Thread(target=self._poll, args=(self._producer,), name="inserts", daemon=True)
                self._poller.start()
            return self._producer

    def _poll(self, producer: Producer) -> None:
        while not self._is_closed.is_set():
            producer.poll(_POLL_SECONDS)


def engine_values(engine: EngineDoor, plan: PullPlan) -> list[object]:
    """The values of the only row of a plan that reads nothing, as the engine computes them. Raises BadStatement."""
    (row,) = engine.select(plan, {})
    try:
        return [from_json(value, column.sql_type) for value, column in zip(row, plan.columns, strict=True)]
    except ValueError as error:  # JSON has no maps whose keys are not text
        raise BadStatement(f"A value cannot be computed here: {error}. Write it as a literal.") from error


def check_target(source: Source) -> None:
    """Raise BadStatement if rows cannot be inserted into a stream or table."""
    reason = ""
    if source.window is not None:
        reason = f"Cannot insert values into windowed {source.kind.lower()}"
    elif source.is_read_only:
        reason = f"Cannot insert values into read-only {source.kind.lower()}: {source.name}"
    elif source.headers:
        reason = "Cannot insert into HEADER columns: the stream has some"
    if reason:
        raise BadStatement(f"{_failed(source)} {reason}")


def row_of(source: Source, fields: Mapping[str, Any]) -> dict[str, object]:
    """The row of a JSON object; names of columns have no case unless they stand in quotes. Raises ServiceError."""
    given = {stored_name(name): value for name, value in fields.items()}
    row: dict[str, object] = {}
    for column in source.columns:
        try:
            row[column.name] = from_json(given.get(column.name), column.sql_type)
        except ValueError as error:
            raise BadRequest(f"Can't coerce a field of column `{column.name}` to {column.type}: {error}") from error
    if ROWTIME in given:
        try:
            row[ROWTIME] = int(given[ROWTIME])
        except (TypeError, ValueError):
            raise BadRequest("ROWTIME must be a whole number: milliseconds since 1970") from None
    missing = [column.name for column in source.key if row[column.name] is None]
    if missing and source.kind == "TABLE":
        raise BadRequest(f"Key field must be specified: {missing[0]}")
    return row


def stored_name(name: str) -> str:
    """The name of a stream, table or column as it is stored, given as in a statement."""
    for quote in '`"':
        if len(name) > 2 and name.startswith(quote) and name.endswith(quote):
            return name[1:-1].replace(quote * 2, quote)
    return name.upper()


def _failed(source: Source) -> str:
    return f"Failed to insert values into '{source.name}'."


def _error(source: Source, error: Exception) -> ServiceError:
    failure = service_error(error)
    failure.message = f"{_failed(source)} {failure.message}"
    return failure
