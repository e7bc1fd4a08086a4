"""The copies of tables on this machine: which are kept, and what is asked of them."""

import fcntl
import hashlib
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from core_broker.client.settings import ClientSettings
from core_broker.service.clock import Clock, SystemClock
from streams.formats.registry import Schemas
from streams.materialized.errors import CopyDamaged, CopyMissing, CopyUnavailable
from streams.materialized.follower import Follower
from streams.materialized.lookup import Answer
from streams.materialized.snapshots import Snapshots
from streams.materialized.store import Store
from streams.model.pull import Lookup
from streams.model.sources import Source

T = TypeVar("T")

_TIMEOUT_MS: Final = 5000
_NAME_MAX: Final = 120
_FILE: Final = "rows.db"
_SNAPSHOTS: Final = "snapshots"
_PEEKED: Final = 100
"""So many rows are read before the first is given out: a damaged file is found when another try is still possible."""


class _Copy:
    """A copy and its folder."""

    def __init__(self, folder: Path, follower: Follower, clock: Clock) -> None:
        self.folder = folder
        self.follower = follower
        self.snapshots = Snapshots(folder / _SNAPSHOTS, follower.source, follower.form, clock)
        self.snapshots.delete()
        self.counted: tuple[Store, int, int] | None = None


class Copies:
    """The copies of tables in a folder, which no other process may use. Safe for many threads."""

    def __init__(
        self,
        folder: Path,
        cluster: Mapping[str, str],
        schemas: Schemas,
        *,
        wait_seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        """`cluster` has properties of librdkafka; a reader waits `wait_seconds` for a copy to be complete."""
        others = {key: value for key, value in cluster.items() if key != "bootstrap.servers"}
        self._cluster = ClientSettings(
            bootstrap_servers=cluster["bootstrap.servers"],
            client_id="caudal-streams",
            timeout_ms=_TIMEOUT_MS,
            properties={"log_level": "0", **others},
        )
        self._folder = folder
        self._schemas = schemas
        self._wait_seconds = wait_seconds
        self._clock = clock or SystemClock()
        self._changing = threading.Lock()
        self._copies: dict[str, _Copy] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._claim = (folder / ".lock").open("w")
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._claim.close()
            raise CopyUnavailable(
                f"Another server keeps its tables in {folder}: choose another folder (ksql.streams.state.dir)"
            ) from error

    def follow(self, source: Source) -> None:
        """Keep a copy of a table, from now on; if its columns are others than before, it is built anew."""
        with self._changing:
            known = self._copies.get(source.name)
            if known is not None:
                if known.follower.is_of(source):
                    return
                known.follower.stop()
            folder = self._folder / _folder_name(source.name)
            follower = Follower(source, folder / _FILE, cluster=self._cluster, schemas=self._schemas, clock=self._clock)
            self._copies[source.name] = _Copy(folder, follower, self._clock)
            follower.start()

    def forget(self, name: str) -> None:
        """Remove the copy of a table, if there is one."""
        with self._changing:
            copy = self._copies.pop(name, None)
            if copy is not None:
                copy.follower.stop()
            shutil.rmtree(self._folder / _folder_name(name), ignore_errors=True)

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the copies of all other tables, also those that were left by an earlier process."""
        wanted = {_folder_name(name) for name in names}
        for name in [name for name in self._copies if _folder_name(name) not in wanted]:
            self.forget(name)
        for folder in self._folder.glob("*.table"):
            if folder.name not in wanted:
                shutil.rmtree(folder, ignore_errors=True)

    def lookup(self, plan: Lookup) -> Iterator[tuple[object, ...]]:
        """The rows that a pull query asks for: the values of its outputs. Raises CopyMissing, CopyUnavailable.

        Rows are read as they are asked for, so those of a long scan are not all of the same moment.
        """
        copy = self._copy(plan.source)
        answer = Answer(plan, copy.follower.source, copy.follower.form)

        def begin(store: Store) -> Iterator[tuple[object, ...]]:
            rows = answer.rows(store)
            first = list(islice(rows, _PEEKED))
            return iter(first) if len(first) < _PEEKED else chain(first, _reporting_damage(rows, copy, store))

        return self._use(copy, begin)

    def snapshot(self, name: str) -> Path:
        """A file of Arrow with the rows as they are now: the table's columns, ROWTIME, and WINDOWSTART and WINDOWEND if
        the table is windowed. It is the file given before if no row has changed, and is there for some time.
        """
        copy = self._copy(name)
        return self._use(copy, copy.snapshots.of)

    def lag(self, name: str) -> int:
        """How many records of the topic are not in the copy yet; -1 if that is unknown, or no copy is kept."""
        copy = self._copies.get(name)
        return -1 if copy is None else copy.follower.progress.lag

    def problem(self, name: str) -> str | None:
        """Why the topic of a table cannot be followed at the moment."""
        return self._copy(name).follower.progress.problem

    def skipped(self, name: str) -> int:
        """How many records of the topic were skipped since the start, as they have no key or cannot be decoded."""
        return self._copy(name).follower.progress.skipped

    def rows(self, name: str) -> int:
        """How many rows the copy has at the moment, complete or not; 0 if no copy is kept."""
        copy = self._copies.get(name)
        store = None if copy is None else copy.follower.progress.store
        if copy is None or store is None:
            return 0
        version = store.version
        if copy.counted is None or copy.counted[:2] != (store, version):
            try:
                copy.counted = (store, version, store.count())
            except (CopyDamaged, sqlite3.Error):
                return 0
        return copy.counted[2]

    def wait_until(self, name: str, offsets: Mapping[int, int], timeout_seconds: float) -> bool:
        """Wait until everything before these offsets of the partitions is in the copy; False if it is not in time."""
        return self._copy(name).follower.progress.wait_until(offsets, timeout_seconds)

    def close(self) -> None:
        """Stop following; the files stay."""
        with self._changing:
            for copy in self._copies.values():
                copy.follower.progress.stop()
            for copy in self._copies.values():
                copy.follower.stop()
            self._copies.clear()
            self._claim.close()

    def _copy(self, name: str) -> _Copy:
        copy = self._copies.get(name)
        if copy is None:
            raise CopyMissing(name)
        return copy

    def _use(self, copy: _Copy, use: Callable[[Store], T]) -> T:
        """Call with the file of a copy, and once more when the file was damaged and has been made anew."""
        progress = copy.follower.progress
        store = progress.readable(self._wait_seconds)
        try:
            return use(store)
        except CopyDamaged:
            progress.report_damage(store)
        except sqlite3.Error as error:
            raise _unreadable(copy, error) from error
        try:
            return use(progress.readable(self._wait_seconds))
        except (CopyDamaged, sqlite3.Error) as error:
            raise _unreadable(copy, error) from error


def _reporting_damage(rows: Iterator[tuple[object, ...]], copy: _Copy, store: Store) -> Iterator[tuple[object, ...]]:
    try:
        yield from rows
    except (CopyDamaged, sqlite3.Error) as error:
        if isinstance(error, CopyDamaged):
            copy.follower.progress.report_damage(store)
        raise _unreadable(copy, error) from error


def _unreadable(copy: _Copy, error: Exception) -> CopyUnavailable:
    return CopyUnavailable(f"The copy of {copy.follower.source.name} cannot be read: {error}; try again later")


def _folder_name(table: str) -> str:
    """A name of a folder for any name of a table."""
    name = quote(table, safe="")
    if len(name) > _NAME_MAX:
        name = f"{name[:_NAME_MAX]}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"
    return f"{name}.table"
