"""An unfinished file of DirectorySink."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from connect.api.record import SinkRecord
from connect.api.sink import TopicPartition
from connectors.file.spool import Spool
from connectors.file.writers import Format


class OpenFile:
    """Takes records of one shape until it is full or old."""

    def __init__(
        self, place: TopicPartition, folder: str, first: SinkRecord, form: Format, *, temporaries: Path
    ) -> None:
        self.place = place
        self.folder = folder
        self.first = first
        self.format = form
        self.shape = form.shape(first)
        self.spool = Spool(temporaries / f"{uuid.uuid4().hex}.tmp")
        self.next = first.original_offset
        """The offset behind the last record."""
        self.opened_at = self.changed_at = time.monotonic()
        self._config = form.config
        self._count = 0
        self._is_ended = False
        self._body = form.body(self.shape, self.spool)

    def takes(self, record: SinkRecord, planned: int) -> bool:
        """Whether a record can be added after those that are planned."""
        if self._count + planned >= self._config.flush_size or self._body.size >= self._config.file_max_bytes:
            return False
        return not self._is_too_late(record) and self.format.shape(record) == self.shape

    def run(self, records: Sequence[SinkRecord], planned: int) -> int:
        """How many of these records, of which the first fits, can be added together."""
        most = min(len(records), self._config.flush_size - self._count - planned)
        must_check_each = self.shape is not None or self._config.rotate_interval_ms >= 0
        for index in range(1, most) if must_check_each else ():
            if self._is_too_late(records[index]) or self.format.shape(records[index]) != self.shape:
                return index
        return most

    def add(self, records: Sequence[SinkRecord], encoded: Any) -> None:
        """Add encoded records."""
        self._body.add(encoded)
        self._count += len(records)
        self.next = records[-1].original_offset + 1
        self.changed_at = time.monotonic()

    @property
    def in_memory(self) -> int:
        """How many bytes are not on the disk."""
        return self._body.pending + self.spool.in_memory

    def is_due(self, now: float) -> bool:
        """Whether it is full, or has been open long enough."""
        longest = self._config.rotate_schedule_interval_ms
        is_old = longest >= 0 and (now - self.opened_at) * 1000 >= longest
        is_full = self._count >= self._config.flush_size or self._body.size >= self._config.file_max_bytes
        return is_old or is_full

    def end(self) -> None:
        """Finish the content and make it durable. May be called again after an error."""
        if not self._is_ended:
            self._body.end()
            self._is_ended = True
        self.spool.sync()

    def _is_too_late(self, record: SinkRecord) -> bool:
        longest, begin = self._config.rotate_interval_ms, self.first.timestamp_ms
        if longest < 0 or begin is None or record.timestamp_ms is None:
            return False
        return record.timestamp_ms - begin >= longest
