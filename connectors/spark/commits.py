"""The driver's half of a batch: decide what it is, then let it become true.

Everything here may be interrupted at any moment and done again: moving files that were moved, a table's transaction
that was committed, letters whose offsets the group has.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from connectors.spark.entries import Counted, Entry, WrittenLetters, WrittenRange, WrittenRows
from connectors.spark.letter_box import LetterBox
from connectors.spark.manifest import Decided, Manifest, ManifestStore, Reload, Replaced, TopicPartition, settled
from connectors.spark.metadata import PLACE, column_name
from connectors.spark.refusals import Refusal, Refusals
from connectors.spark.rows import DELETED
from connectors.spark.spec import SinkFolders, SinkSpec
from streams.errors import SchemaConflict, StreamsError, WrongOption
from streams.spark.files import Files
from streams.spark.tables import Tables
from streams.spark.types import Change

log = logging.getLogger(__name__)

ALL_CHANGES: Final[tuple[Change, ...]] = ("add", "widen")
_ROUNDS_MAX: Final = 20
Written = Callable[[], Sequence[Entry]]
"""Lets executors write a batch, and tells what they wrote."""


class Commits:
    """Batches of one run, in order; for one thread at a time."""

    def __init__(self, spec: SinkSpec, folders: SinkFolders, *, files: Files, tables: Tables, box: LetterBox) -> None:
        self._spec = spec
        self._folders = folders
        self._files = files
        self._tables = tables
        self._box = box
        self._allowed = frozenset(change for change in ALL_CHANGES if change in spec.config.schema_evolution)
        self._store = ManifestStore(files, folders, connector=spec.connector)
        self._refusals = Refusals(files, folders)
        self._is_reloading = False
        self.manifest: Manifest | None = None
        self.counts: dict[str, float] = {}

    def recover(self) -> Manifest | None:
        """Finish what an earlier run has decided; what it was, or None."""
        manifest = self._store.read()
        if manifest is not None and not manifest.is_settled:
            self._apply(manifest)
            if manifest.letters:
                self._box.send(manifest)
            manifest = settled(manifest)
            self._store.write(manifest)
        self._is_reloading = False
        self.manifest = manifest
        return manifest

    def begin(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin a run where the last one ended, with nothing left of it that nobody needs."""
        self.manifest = self._store.begin(positions, self._box.topic_ids({topic for topic, _ in positions}))
        self._refusals.clear()
        self._files.delete(self._folders.staging)

    def commit(self, batch: int, written: Written) -> None:
        """A batch of the query: decided once, and then done."""
        manifest = self._known()
        if batch > manifest.batch:
            decided = self._decide(written)
            unknown = {topic for topic, _ in decided.ends} - manifest.ids.keys()
            ids = self._box.topic_ids(unknown) if unknown else {}
            before, manifest = manifest, decided.after(manifest, batch, ids=ids)
            self._store.write(manifest)
            self.manifest = manifest
            self._forget(before)
        self._apply(manifest)
        self._box.send(manifest)
        if manifest.letters:
            # The group's offsets tell whether letters were sent, until somebody changes them by hand.
            self.manifest = settled(manifest)
            self._store.write(self.manifest)
            self._forget(manifest)

    def _forget(self, manifest: Manifest) -> None:
        """Delete what nobody needs any more: a merge copies its rows, and letters were sent."""
        for letters in manifest.letters:
            self._files.delete(letters.path)
        if self._spec.config.write_mode == "upsert":
            for member in manifest.rows:
                self._files.delete(member.file.path)

    def reload(self, again: Reload, written: Written) -> int:
        """Replace the rows of a range by what is written now; how many those are."""
        manifest = self._known()
        decided = self._decide(written)
        tables = {again.tables[0], *(member.table for member in decided.rows)}
        for table in tables:
            self._check_places(table)
        self._store.write(chosen := decided.replacing(manifest, replace(again, tables=tuple(sorted(tables)))))
        self._is_reloading = True
        self.recover()
        self._forget(chosen)
        return sum(member.file.rows for member in decided.rows)

    def _known(self) -> Manifest:
        """What this run has decided last. A reload that failed half way has removed rows: first they come back."""
        manifest = self.manifest
        assert manifest is not None, "begin comes first"
        if not self._is_reloading:
            return manifest
        found = self._store.read()
        if found is None or found.run != manifest.run:
            raise Replaced(self._spec.connector)
        return self.recover() or manifest

    def _check_places(self, table: str) -> None:
        """WrongOption when nobody could tell which rows of a table go. What is decided must be possible."""
        schema = self._tables.schema(table)
        missing = [] if schema is None else [name for name in map(column_name, PLACE) if name not in schema.names]
        if missing:
            raise WrongOption("table", table, f"must have the columns {', '.join(missing)} to be loaded again")

    def _decide(self, written: Written) -> Decided:
        """What is in a batch, once no row of it is refused by its table any more."""
        for _ in range(_ROUNDS_MAX):
            entries = written()
            rows = tuple(entry for entry in entries if isinstance(entry, WrittenRows))
            refused = list(self._conflicts(rows))
            if not refused:
                self._count(entries)
                return Decided(
                    rows=rows,
                    letters=tuple(entry for entry in entries if isinstance(entry, WrittenLetters)),
                    ends={(e.topic, e.partition): e.end for e in _ranges(entries)},
                )
            # The same batch once more: executors now make dead letters of these rows, or fail, as errors.* say.
            self._refusals.add(refused)
            log.warning(
                "rows do not fit into a table", extra={"sink": self._spec.connector, "reason": refused[0].reason}
            )
        raise StreamsError(f"Rows of sink {self._spec.connector} still do not fit into its tables")

    def _conflicts(self, rows: Sequence[WrittenRows]) -> Iterable[Refusal]:
        for table, members in _by_table(rows).items():
            shapes = {member.fingerprint: member for member in members}
            stored = [_stored(member) for member in shapes.values()]
            plans = self._tables.plan(self._spec.table(table), stored, allowed=self._allowed)
            for member, conflict in zip(shapes.values(), plans, strict=True):
                if conflict := conflict or _other_key(table, member, members[0]):
                    yield Refusal(table=table, fingerprint=member.fingerprint, reason=str(conflict))

    def _apply(self, manifest: Manifest) -> None:
        config = self._spec.config
        if manifest.reload is not None:
            self._remove(manifest, manifest.reload)
        for name, members in _by_table(manifest.rows).items():
            table = self._spec.table(name)
            self._tables.evolve(table, [_stored(member) for member in members])
            files = [member.file for member in members]
            if config.write_mode == "upsert":
                self._tables.merge(
                    table,
                    files,
                    keys=members[0].keys,
                    deleted=DELETED,
                    order=("_offset",),
                    writer=self._spec.connector,
                    batch=manifest.number,
                )
            else:
                self._tables.append(table, files, writer=self._spec.connector, batch=manifest.number)

    def _remove(self, manifest: Manifest, again: Reload) -> None:
        """Remove the rows of a range. Written down when it is done: rows that came since must stay."""
        for table in again.tables:
            if self._tables.schema(table) is not None:
                self._tables.remove_range(
                    table, again.topic, partition=again.partition, first=again.start, last=again.end - 1
                )
        self._store.write(replace(manifest, reload=None))

    def _count(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Counted):
                for name, count in entry.counts.items():
                    self.counts[name] = self.counts.get(name, 0) + count


def _stored(member: WrittenRows) -> pa.Schema:
    """The shape of rows as the table keeps them."""
    schema = member.schema
    return schema.remove(schema.get_field_index(DELETED)) if DELETED in schema.names else schema


def _other_key(table: str, member: WrittenRows, first: WrittenRows) -> SchemaConflict | None:
    """Rows of one table must have the same columns as their key, or nobody knows which rows they replace."""
    if member.keys == first.keys:
        return None
    return SchemaConflict(table, ",".join(first.keys), has="the key", given=f"the key {','.join(member.keys)}")


def _by_table(rows: Sequence[WrittenRows]) -> dict[str, list[WrittenRows]]:
    tables: dict[str, list[WrittenRows]] = {}
    for member in rows:
        tables.setdefault(member.table, []).append(member)
    return tables


def _ranges(entries: Iterable[Entry]) -> list[WrittenRange]:
    """In order, as a partition's range may have been shared by several tasks."""
    return sorted((e for e in entries if isinstance(e, WrittenRange)), key=lambda e: (e.topic, e.partition, e.end))
