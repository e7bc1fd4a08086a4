"""Records of a topic as changes of the rows of its table."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from core_broker.client.records import IncomingRecord
from streams.formats.errors import DecodeError
from streams.formats.values import RecordCodec
from streams.materialized.row_format import RowFormat
from streams.materialized.store import Place, StoredRow
from streams.model.sources import WINDOWEND, WINDOWSTART, Source

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


class Changes(NamedTuple):
    """What some records change: the last state of each row."""

    rows: Sequence[StoredRow]
    deleted: Sequence[Place]
    skipped: int
    """How many records have no key or cannot be decoded."""


class RecordReader:
    """Understands the records of a table's topic."""

    def __init__(self, codec: RecordCodec, source: Source, form: RowFormat) -> None:
        self._decode = codec.decode
        self._is_null = codec.is_null
        self._form = form
        self._is_windowed = source.window is not None
        self._size_ms = None if source.window is None else source.window.size_ms
        self._timestamp = None if source.timestamp is None else source.timestamp.column

    def changes_of(self, records: Sequence[IncomingRecord]) -> Changes:
        """The changes that records make one after the other.

        Of the records with the same key only the last one that can be decoded matters. The others are not decoded,
        which makes reading a topic of updates several times faster.
        """
        by_key: dict[bytes, list[IncomingRecord]] = {}
        skipped = 0
        for record in records:
            if record.key is None:
                skipped += 1
                continue
            # Each key stands where its last record does: other bytes may be the same key.
            earlier = by_key.pop(record.key, None)
            if earlier is None:
                by_key[record.key] = [record]
            else:
                earlier.append(record)
                by_key[record.key] = earlier
        states: dict[Place, StoredRow | None] = {}
        for same_key in by_key.values():
            for record in reversed(same_key):
                try:
                    place, row = self._state_of(record)
                except DecodeError:
                    skipped += 1
                else:
                    states[place] = row
                    break
        rows = [row for row in states.values() if row is not None]
        return Changes(rows, [place for place, row in states.items() if row is None], skipped)

    def _state_of(self, record: IncomingRecord) -> tuple[Place, StoredRow | None]:
        columns = self._decode(record.key, record.value, record.headers)
        start, end = self._window(columns) if self._is_windowed else (0, 0)
        key = self._form.key_of(columns)
        if self._is_null(record.value):
            return (key, start, end), None
        row = StoredRow(key, start, end, self._rowtime(record, columns), self._form.data(columns))
        return (key, start, end), row

    def _window(self, columns: dict[str, object]) -> tuple[int, int]:
        start, end = columns[WINDOWSTART], columns.get(WINDOWEND)
        assert isinstance(start, int), "a windowed key has a start"
        if isinstance(end, int):
            return start, end
        return start, start + (self._size_ms or 0)

    def _rowtime(self, record: IncomingRecord, columns: dict[str, object]) -> int:
        value = columns.get(self._timestamp) if self._timestamp is not None else None
        match value:
            case int():
                return value
            case datetime():
                return (value - _EPOCH) // _MS
            case _:
                return record.timestamp_ms
