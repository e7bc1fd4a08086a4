"""PRINT: the records of a topic as lines of text, whatever format they have."""

import logging
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Final

from typing_extensions import override

from core_broker.client.errors import ClientError, NotFound
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from streams.formats.guessing import FormatGuess
from streams.server.errors import BadStatement, ServerFailed
from streams.server.row_streams import Batch, RowStream
from streams.server.service import Service
from streams.sql.language.tree.statements import PrintTopic

log = logging.getLogger(__name__)

_BATCH_RECORDS: Final = 500
_BATCH_BYTES: Final = 1 << 20
_WAIT_MS: Final = 500
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def open_print(service: Service, statement: PrintTopic) -> "PrintedLines":
    """Begin to read a topic. Raises BadStatement if it does not exist, or ClientError."""
    topics = service.topics.partitions()
    if statement.topic not in topics:
        raise BadStatement(_unknown(statement.topic, list(topics)))
    return PrintedLines(service, statement)


def _unknown(topic: str, topics: list[str]) -> str:
    message = (
        f"Could not find topic '{topic}', or the KSQL user does not have permissions to list the topic. "
        "Topic names are case-sensitive."
    )
    others = [name for name in topics if name.lower() == topic.lower()] or get_close_matches(topic, topics, n=3)
    hints = "".join(f"\n\tprint {name};" if name.isidentifier() else f"\n\tprint '{name}';" for name in others)
    return f"{message}\nDid you mean:{hints}" if hints else message


class PrintedLines(RowStream):
    """The lines of a PRINT: what the records seem to be, and each record."""

    def __init__(self, service: Service, statement: PrintTopic) -> None:
        super().__init__(f"print_{secrets.randbits(63)}", "print")
        self._topic = statement.topic
        self._interval = max(1, statement.interval or 1)
        self._left = statement.limit
        self._seen = 0
        self._keys = _Side("Key", FormatGuess(service.schemas))
        self._values = _Side("Value", FormatGuess(service.schemas))
        self._reader = Reader(service.settings.kafka())
        try:
            bounds = {
                (self._topic, partition): self._reader.bounds(self._topic, partition)
                for partition in self._reader.partitions_of(self._topic)
            }
            self._reader.start(
                {place: low if statement.from_beginning else high for place, (low, high) in bounds.items()}
            )
        except BaseException:
            self._reader.close()
            raise

    @override
    def take(self) -> Batch | None:
        if self._left == 0 or self.is_closed():
            self.has_reached_limit = self._left == 0
            self._reader.close()
            return None
        try:
            records = self._reader.read(_BATCH_RECORDS, timeout_ms=_WAIT_MS, bytes_max=_BATCH_BYTES)
        except OffsetOutOfRange as error:
            self._skip(error)
            return Batch([])
        except ClientError as error:
            if self.is_closed():
                return None
            raise ServerFailed(str(error)) from error
        lines: list[str] = []
        for record in records:
            if self._left == 0:
                break
            self._seen += 1
            if (self._seen - 1) % self._interval == 0:
                lines += self._lines(record)
                self._left = None if self._left is None else self._left - 1
        return Batch([[line] for line in lines])

    @override
    def release(self) -> None:
        pass  # the thread that reads closes the reader: the library does not let another one do it

    def _lines(self, record: IncomingRecord) -> list[str]:
        key, value = self._keys.text(record.key), self._values.text(record.value)
        formats = [line for side in (self._keys, self._values) if (line := side.news())]
        line = f"rowtime: {_time(record.timestamp_ms)}, key: {key}, value: {value}, partition: {record.partition}"
        return [*formats, line]

    def _skip(self, error: OffsetOutOfRange) -> None:
        """Go on with the first record that is still there: the one after the last read has been deleted."""
        with suppress(NotFound):
            low, _ = self._reader.bounds(*error.place)
            self._reader.start({**self._reader.positions, error.place: low})


class _Side:
    """The keys, or the values."""

    def __init__(self, name: str, guess: FormatGuess) -> None:
        self._name = name
        self._guess = guess
        self._shown = ""

    def text(self, data: bytes | None) -> str:
        return self._guess.text(data)

    def news(self) -> str:
        """The line about the format, if it says something new."""
        line = f"{self._name} format: {self._guess.names}"
        if line == self._shown:
            return ""
        self._shown = line
        return line


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "N/A"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d} Z"
