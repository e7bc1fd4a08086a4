"""The log of definitions: a compacted topic with one partition that all servers of a service read.

Any server may write. Before it writes for the first time, and after another one has written, it takes over: it fences
the others by the transactional id that all of them use, and then reads to the end. So what it writes next follows from
everything that was written before; a server that did not see that is refused (`TakenOver`).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError, Fatal, NotFound, Retriable, Unreachable
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord, OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer
from streams.catalog.errors import LogProblem, TakenOver
from streams.catalog.records import (
    COMMAND_HEADER,
    CommandNote,
    UnknownRecord,
    read_change,
    read_note,
    write_change,
    write_note,
)
from streams.catalog.state import Change, State

log = logging.getLogger(__name__)

_BATCH: Final = 2_000
_WAIT_MS: Final = 250
_PAUSE_SECONDS: Final = 0.5
_READ_BACK_SECONDS: Final = 30.0
_CREATION_SECONDS: Final = 30.0
_ATTEMPTS: Final = 3
_CONFIGS: Final = {"cleanup.policy": "compact", "max.message.bytes": str(8 << 20)}
_READER: Final = {
    # Only an empty fetch shows that a partition ends with the marker of a transaction.
    "fetch.wait.max.ms": "100"
}
_WRITER: Final[Configuration] = {"linger.ms": "0", "message.max.bytes": 8 << 20}


class DefinitionLog:
    """Keeps a state as the log says, in a thread of its own. `on_change` is called from that thread, after each batch.

    Writing is for one thread at a time.
    """

    def __init__(
        self,
        settings: ClientSettings,
        state: State,
        *,
        topic: str,
        replicas: int,
        on_change: Callable[[Sequence[Change]], None] = lambda _: None,
        on_command: Callable[[CommandNote, int], None] = lambda _, __: None,
    ) -> None:
        self.topic = topic
        self._settings = settings
        self._state = state
        self._replicas = replicas
        self._on_change = on_change
        self._on_command = on_command
        self._place = (topic, 0)
        self._admin: Admin | None = None
        self._producer: TransactionalProducer | None = None
        self._passed = threading.Condition()
        self._position = 0
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def position(self) -> int:
        """The next offset to read: everything before it is in the state."""
        return self._position

    @property
    def problem(self) -> str | None:
        """Why the log cannot be read at the moment; None while it can."""
        return self._problem

    def start(self, timeout_seconds: float = 60.0) -> None:
        """Make the topic if it is missing, read it to its end, and follow it. Raises LogProblem."""
        with _as_problems(self.topic):
            self._admin = Admin(self._settings)
            _ensure(self._admin, self.topic, self._replicas)
            self._position = self._admin.offsets([self._place], "earliest")[self._place]
        self._stopping.clear()
        self._thread = threading.Thread(target=self._follow, name="definitions", daemon=True)
        self._thread.start()
        self.refresh(timeout_seconds)

    def close(self) -> None:
        """Stop reading and writing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)
            self._thread = None
        self._drop()

    # --- reading ---

    def refresh(self, timeout_seconds: float = _READ_BACK_SECONDS) -> None:
        """Wait until everything is in the state that was written before this call."""
        with _as_problems(self.topic):
            end = self._end(timeout_seconds)
        if not self.wait_for(end - 1, timeout_seconds):
            raise LogProblem(f"Topic {self.topic} could not be read to its end within {timeout_seconds:g} s. Try again")

    def wait_for(self, offset: int, timeout_seconds: float) -> bool:
        """Wait until the record of an offset is in the state; False if that takes too long."""
        with self._passed:
            return self._passed.wait_for(
                lambda: self._position > offset or self._stopping.is_set(), timeout=timeout_seconds
            )

    def _end(self, timeout_seconds: float) -> int:
        assert self._admin is not None, "the log is started first"
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                return self._admin.committed_ends([self._place])[self._place]
            except (Unreachable, Retriable, KeyError) as error:
                if time.monotonic() >= deadline or self._stopping.wait(_PAUSE_SECONDS):
                    raise Unreachable(str(error)) from error

    def _follow(self) -> None:
        settings = replace(self._settings, properties={**_READER, **self._settings.properties})
        while not self._stopping.is_set():
            reader: Reader | None = None
            try:
                reader = Reader(settings, isolation_level="read_committed")
                reader.start({self._place: self._position})
                self._problem = None
                while not self._stopping.is_set():
                    self._take(reader.read(_BATCH, timeout_ms=_WAIT_MS), reader.positions[self._place])
            except OffsetOutOfRange:
                log.error("the log of definitions was shortened: it is read from its beginning")
                self._rewind()
            except ClientError as error:
                self._problem = str(error)
                log.warning("the log of definitions cannot be read", extra={"topic": self.topic, "error": str(error)})
                self._stopping.wait(_PAUSE_SECONDS)
            finally:
                if reader is not None:
                    reader.close()

    def _rewind(self) -> None:
        assert self._admin is not None, "set before the thread starts"
        try:
            self._position = self._admin.offsets([self._place], "earliest")[self._place]
        except ClientError as error:
            self._problem = str(error)
            self._stopping.wait(_PAUSE_SECONDS)

    def _take(self, records: Sequence[IncomingRecord], position: int) -> None:
        changes = [change for record in records if (change := self._change(record)) is not None]
        for change in changes:
            self._state.apply(change)
        if changes:
            try:
                self._on_change(changes)
            except Exception:
                # What follows the definitions must not end the thread that reads them.
                log.exception("a change of the definitions was not followed")
        if position != self._position:
            with self._passed:
                self._position = position
                self._passed.notify_all()

    def _change(self, record: IncomingRecord) -> Change | None:
        extra = {"topic": record.topic, "offset": record.offset}
        try:
            for name, header in record.headers:
                if name == COMMAND_HEADER and header is not None:
                    self._on_command(read_note(header), record.offset)
            return read_change(record.key, record.value)
        except UnknownRecord as error:
            log.error("a definition cannot be read and is ignored", extra={**extra, "error": str(error)})
            return None

    # --- writing ---

    def take_over(self) -> None:
        """Become the only server that can write, and read what others have written; does nothing if it is already."""
        if self._producer is not None:
            return
        with _as_problems(self.topic):
            producer = TransactionalProducer(self._settings, transactional_id=self.topic, defaults=_WRITER)
            try:
                producer.init()
            except BaseException:
                producer.close()
                raise
        self._producer = producer
        try:
            self.refresh()
        except BaseException:
            self._drop()
            raise

    def append(self, changes: Sequence[Change], note: CommandNote | None = None) -> int:
        """Write changes together, and return the offset of the last one when all of them are in the state.

        Raises TakenOver if another server has written since `take_over`: nothing is written then.
        """
        producer = self._producer
        if producer is None:
            raise TakenOver("the log was not taken over")
        offset = self._send(producer, changes, note)
        if not self.wait_for(offset, _READ_BACK_SECONDS):
            raise LogProblem(f"What was written to topic {self.topic} could not be read back in time. Try again")
        return offset

    def _send(self, producer: TransactionalProducer, changes: Sequence[Change], note: CommandNote | None) -> int:
        offsets: list[int] = []
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                producer.begin()
                for number, change in enumerate(changes, start=1):
                    is_last = number == len(changes)
                    headers = [(COMMAND_HEADER, write_note(note))] if note is not None and is_last else []
                    key, value = write_change(change)
                    record = OutgoingRecord(topic=self.topic, key=key, value=value, partition=0, headers=headers)
                    producer.send(record, written_at=offsets.append)
                producer.commit()
                return max(offsets)
            except AbortNeeded as error:
                if error.is_refusal or attempt == _ATTEMPTS:
                    self._drop()
                    raise LogProblem(f"Topic {self.topic}: {error}") from error
                offsets.clear()
                producer.abort()
            except Fatal as error:
                # Fenced by another server; or the cluster has forgotten the id after a long time without use.
                self._drop()
                raise TakenOver(str(error)) from error
            except ClientError as error:
                # Whether it was written is unknown; the init of the next producer settles that.
                self._drop()
                raise LogProblem(f"Topic {self.topic}: {error}. The statement may have been carried out") from error
        raise AssertionError("the last attempt returns or raises")

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()


@contextmanager
def _as_problems(topic: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise LogProblem(f"Topic {topic}: {error}") from error


def _ensure(admin: Admin, topic: str, replicas: int) -> None:
    """Make the topic if it is missing, and wait until it can be used."""
    with suppress(AlreadyExists):
        admin.create_replicated_topic(topic, partitions=1, replicas_wanted=replicas, configs=_CONFIGS)
    deadline = time.monotonic() + _CREATION_SECONDS
    while True:
        with suppress(NotFound):
            (found,) = admin.topics([topic])
            if len(found.partitions) != 1:
                raise LogProblem(f"Topic {topic} has {len(found.partitions)} partitions, and must have one")
            if found.partitions[0].leader >= 0:
                break
        if time.monotonic() > deadline:
            raise Unreachable(f"topic {topic} has no leader")
        time.sleep(0.05)
    policy = next((config.value for config in admin.configs(topic) if config.key == "cleanup.policy"), None)
    if policy != "compact":
        raise LogProblem(f"Topic {topic} must have cleanup.policy=compact, and has {policy}: change it")
