"""Follows a small topic of one partition from its beginning."""

import time
from collections.abc import Iterator
from typing import Final

from core_broker.client.errors import Unreachable
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings

_BATCH: Final = 5000
_READ_MS: Final = 200


class TopicTail:
    """Reads what is new in a topic; every call may raise a ClientError."""

    def __init__(self, settings: ClientSettings, topic: str, *, patience_seconds: float) -> None:
        self._settings = settings
        self._partition = (topic, 0)
        self._patience = patience_seconds
        self._reader: Reader | None = None

    def read_new(self) -> Iterator[IncomingRecord]:
        """Records since the last call; NotFound without the topic, Unreachable when reading takes too long."""
        if self._reader is None:
            self._reader = self._open()
        try:
            yield from self._read_to_end(self._reader)
        except OffsetOutOfRange:
            # Older records were deleted, or the topic was recreated.
            self.close()
            self._reader = self._open()
            yield from self._read_to_end(self._reader)

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _open(self) -> Reader:
        reader = Reader(self._settings)
        try:
            reader.partitions_of(self._partition[0])
            first, _ = reader.bounds(*self._partition)
            reader.start({self._partition: first})
        except BaseException:
            reader.close()
            raise
        return reader

    def _read_to_end(self, reader: Reader) -> Iterator[IncomingRecord]:
        _, end = reader.bounds(*self._partition)
        deadline = time.monotonic() + self._patience
        while reader.positions[self._partition] < end:
            records = reader.read(_BATCH, timeout_ms=_READ_MS)
            if records:
                deadline = time.monotonic() + self._patience
            elif time.monotonic() > deadline:
                raise Unreachable(f"topic {self._partition[0]} cannot be read to its end")
            yield from records
