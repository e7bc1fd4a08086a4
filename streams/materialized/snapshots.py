"""Files of Arrow with all rows of a table, which Spark reads."""

import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from core_broker.service.clock import Clock
from streams.materialized.row_format import RowFormat
from streams.materialized.store import Store
from streams.model.sources import ROWTIME, WINDOW_COLUMNS, Source
from streams.model.types import BIGINT

_CHUNK_ROWS: Final = 10_000
_KEPT_SECONDS: Final = 120.0
"""How long a file that has been replaced is kept for those who were given its path."""
_KEPT_BYTES: Final = 512 << 20
"""How much space such files take together at most."""


class Snapshots:
    """The snapshots of one table, in a folder of its own. Safe for many threads."""

    def __init__(
        self, folder: Path, source: Source, form: RowFormat, clock: Clock, *, replaced_bytes: int = _KEPT_BYTES
    ) -> None:
        self._folder = folder
        self._source = source
        self._form = form
        self._clock = clock
        self._replaced_bytes = replaced_bytes
        self._lock = threading.Lock()
        self._number = 0
        self._current: tuple[Path, Store, int] | None = None
        self._replaced: list[tuple[float, Path]] = []
        """When, and what, the oldest first."""

    def of(self, store: Store) -> Path:
        """A file with the rows as they are now; the same one as before if they have not changed."""
        with self._lock:
            version = store.version
            if self._current is not None:
                path, of_store, of_version = self._current
                if (of_store, of_version) == (store, version) and path.exists():
                    self._remove_old()
                    return path
                self._replaced.append((self._clock.monotonic(), path))
            self._number += 1
            path = self._folder / f"{self._number}.arrow"
            self._write(store, path)
            self._current = path, store, version
            self._remove_old()
            return path

    def delete(self) -> None:
        """Remove all of them."""
        with self._lock:
            self._current = None
            self._replaced.clear()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, store: Store, path: Path) -> None:
        # Imported late: only queries that need Spark need Arrow.
        import pyarrow as pa

        from streams.formats.arrays import array_of, arrow_type

        columns = [(column.name, column.sql_type) for column in self._source.columns]
        columns += [(name, BIGINT) for name in (ROWTIME, *(WINDOW_COLUMNS if self._source.window else ()))]
        kinds = [kind for _, kind in columns]
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns])
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        try:
            with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                for rows in store.all_rows(_CHUNK_ROWS):
                    values = zip(*(self._form.row_of(row) for row in rows), strict=True)
                    arrays = [array_of(kind, column) for kind, column in zip(kinds, values, strict=False)]
                    writer.write_batch(pa.record_batch(arrays, schema=schema))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _remove_old(self) -> None:
        """Remove files that were replaced long ago, and the oldest ones if they take too much space."""
        size = sum(path.stat().st_size for _, path in self._replaced if path.exists())
        now = self._clock.monotonic()
        while self._replaced and (now - self._replaced[0][0] > _KEPT_SECONDS or size > self._replaced_bytes):
            _, path = self._replaced.pop(0)
            with suppress(FileNotFoundError):
                size -= path.stat().st_size
                path.unlink()
