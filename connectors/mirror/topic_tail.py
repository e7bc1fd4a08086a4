"""A small topic of one partition, read from its beginning to its end, and on from there."""

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
    """Gives what has come since it was last asked; every call may raise a ClientError."""

    def __init__(self, settings: ClientSettings, topic: str, *, patience_seconds: float) -> None:
        self._settings = settings
        self._place = (topic, 0)
        self._patience = patience_seconds
        self._reader: Reader | None = None

    def news(self) -> Iterator[IncomingRecord]:
        """What is there and was not given before; NotFound without the topic, Unreachable when it takes too long."""
        if self._reader is None:
            self._reader = self._opened(0)
        try:
            yield from self._until_end(self._reader)
        except OffsetOutOfRange:
            # The topic begins later than it did, or was made anew.
            self.close()
            self._reader = self._opened(0)
            yield from self._until_end(self._reader)

    def close(self) -> None:
        """Leave nothing open."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _opened(self, at: int) -> Reader:
        reader = Reader(self._settings)
        try:
            reader.partitions_of(self._place[0])
            first, _ = reader.bounds(*self._place)
            reader.start({self._place: max(first, at)})
        except BaseException:
            reader.close()
            raise
        return reader

    def _until_end(self, reader: Reader) -> Iterator[IncomingRecord]:
        _, end = reader.bounds(*self._place)
        deadline = time.monotonic() + self._patience
        while reader.positions[self._place] < end:
            records = reader.read(_BATCH, timeout_ms=_READ_MS)
            if records:
                deadline = time.monotonic() + self._patience
            elif time.monotonic() > deadline:
                raise Unreachable(f"topic {self._place[0]} cannot be read to its end")
            yield from records
