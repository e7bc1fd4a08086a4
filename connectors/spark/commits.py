"""The driver's half of a batch: decide what is in it, then carry that out.

Every step may be interrupted at any moment and repeated: moving files that were moved, a table's transaction that was
committed, dead letters whose offsets the group has committed.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from connectors.spark.metadata import PLACE, column_name
from connectors.spark.refusals import Refusal, Refusals
from connectors.spark.rows import DELETED
from connectors.spark.spec import SinkFolders, SinkSpec
from core_broker.client.consumer import TopicPartition
from streams.errors import SchemaConflict, StreamsError, WrongOption
from streams.spark.commits.entries import Counted, Entry, WrittenRange, WrittenRecords, WrittenRows
from streams.spark.commits.manifest import Decision, Manifest, ManifestStore, Reload, Replaced
from streams.spark.commits.outbox import Outbox
from streams.spark.files import Files
from streams.spark.tables import Tables
from streams.spark.types import Change

log = logging.getLogger(__name__)

ALL_CHANGES: Final[tuple[Change, ...]] = ("add", "widen")
_ROUNDS_MAX: Final = 20
WriteBatch = Callable[[], Sequence[Entry]]
"""Lets executors write a batch, and returns what they wrote."""


class Commits:
    """The batches of one run, in order; for one thread at a time."""

    def __init__(self, spec: SinkSpec, folders: SinkFolders, *, files: Files, tables: Tables, outbox: Outbox) -> None:
        self._spec = spec
        self._folders = folders
        self._files = files
        self._tables = tables
        self._outbox = outbox
        self._allowed = frozenset(change for change in ALL_CHANGES if change in spec.config.schema_evolution)
        self._store = ManifestStore(files, folders.manifest, query=f"sink {spec.connector}")
        self._refusals = Refusals(files, folders)
        self._is_reloading = False
        self.manifest: Manifest | None = None
        self.counts: dict[str, float] = {}

    def recover(self) -> Manifest | None:
        """Finish what an earlier run has decided, and return it; None if there was no earlier run."""
        manifest = self._store.read()
        if manifest is not None and not manifest.is_settled:
            self._apply(manifest)
            if manifest.records:
                self._outbox.send(manifest)
            manifest = manifest.settled()
            self._store.write(manifest)
        self._is_reloading = False
        self.manifest = manifest
        return manifest

    def begin(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin a run at these positions, and delete the leftovers of the last one."""
        self.manifest = self._store.begin(positions, self._outbox.topic_ids({topic for topic, _ in positions}))
        self._refusals.clear()
        self._files.delete(self._folders.staging)

    def commit(self, batch: int, write: WriteBatch) -> None:
        """Commit a batch of the query: decide it once, then carry it out."""
        manifest = self._last_manifest()
        if batch > manifest.batch:
            decision = self._decide(write)
            unknown = {topic for topic, _ in decision.ends} - manifest.ids.keys()
            ids = self._outbox.topic_ids(unknown) if unknown else {}
            before, manifest = manifest, decision.next_batch(manifest, batch, ids=ids)
            self._store.write(manifest)
            self.manifest = manifest
            self._delete_staged(before)
        self._apply(manifest)
        self._outbox.send(manifest)
        if manifest.records:
            # The group's offsets show whether dead letters were sent, but only until an operator changes them.
            self.manifest = manifest.settled()
            self._store.write(self.manifest)
            self._delete_staged(manifest)

    def reload(self, reload: Reload, write: WriteBatch) -> int:
        """Replace the rows of a range by what is written now; returns how many rows those are."""
        manifest = self._last_manifest()
        decision = self._decide(write)
        tables = {reload.tables[0], *(member.table for member in decision.rows)}
        for table in tables:
            # Checked before the decision, since what was decided must be possible.
            schema = self._tables.schema(table)
            missing = [] if schema is None else [name for name in map(column_name, PLACE) if name not in schema.names]
            if missing:
                raise WrongOption("table", table, f"must have the columns {', '.join(missing)} to be reloaded")
        chosen = decision.next_reload(manifest, replace(reload, tables=tuple(sorted(tables))))
        self._store.write(chosen)
        self._is_reloading = True
        self.recover()
        self._delete_staged(chosen)
        return sum(member.file.rows for member in decision.rows)

    def _last_manifest(self) -> Manifest:
        """The last decision of this run. A reload that failed half way has removed rows: finish it first."""
        manifest = self.manifest
        assert manifest is not None, "begin comes first"
        if not self._is_reloading:
            return manifest
        found = self._store.read()
        if found is None or found.run != manifest.run:
            raise Replaced(f"sink {self._spec.connector}")
        return self.recover() or manifest

    def _delete_staged(self, manifest: Manifest) -> None:
        """Delete files that are not needed any more: dead letters that were sent, and rows that a merge has copied."""
        for dead_letters in manifest.records:
            self._files.delete(dead_letters.path)
        if self._spec.config.write_mode == "upsert":
            for member in manifest.rows:
                self._files.delete(member.file.path)

    def _decide(self, write: WriteBatch) -> Decision:
        """Have a batch written until none of its rows is refused by a table."""
        for _ in range(_ROUNDS_MAX):
            entries = write()
            rows = tuple(entry for entry in entries if isinstance(entry, WrittenRows))
            refused = list(self._find_conflicts(rows))
            if not refused:
                self._count(entries)
                # Several tasks may have shared the range of a partition: the last end counts.
                ranges = [entry for entry in entries if isinstance(entry, WrittenRange)]
                return Decision(
                    rows=rows,
                    records=tuple(entry for entry in entries if isinstance(entry, WrittenRecords)),
                    ends={(e.topic, e.partition): e.end for e in sorted(ranges, key=lambda e: e.end)},
                )
            # The same batch again: now executors turn these rows into dead letters, or fail, as errors.* say.
            self._refusals.add(refused)
            extra = {"sink": self._spec.connector, "reason": refused[0].reason}
            log.warning("rows do not fit their table", extra=extra)
        raise StreamsError(f"Rows of sink {self._spec.connector} still do not fit its tables")

    def _find_conflicts(self, rows: Sequence[WrittenRows]) -> Iterable[Refusal]:
        for table, members in _by_table(rows).items():
            schemas = {member.fingerprint: member for member in members}
            stored = [_stored_schema(member) for member in schemas.values()]
            conflicts = self._tables.plan(self._spec.table(table), stored, allowed=self._allowed)
            keys = members[0].keys
            for member, found in zip(schemas.values(), conflicts, strict=True):
                conflict = found
                if conflict is None and member.keys != keys:
                    # With different key columns it would be unknown which rows are replaced.
                    other = f"the key {','.join(member.keys)}"
                    conflict = SchemaConflict(table, ",".join(keys), has="the key", given=other)
                if conflict is not None:
                    yield Refusal(table=table, fingerprint=member.fingerprint, reason=str(conflict))

    def _apply(self, manifest: Manifest) -> None:
        """Change the tables as a manifest says."""
        reload, writer = manifest.reload, self._spec.connector
        if reload is not None:
            for name in reload.tables:
                if self._tables.schema(name) is not None:
                    self._tables.remove_range(
                        name, reload.topic, partition=reload.partition, first=reload.start, last=reload.end - 1
                    )
            # Written down at once, so that rows which are added next are not removed when this is repeated.
            self._store.write(replace(manifest, reload=None))
        for name, members in _by_table(manifest.rows).items():
            table = self._spec.table(name)
            self._tables.evolve(table, [_stored_schema(member) for member in members])
            files = [member.file for member in members]
            if self._spec.config.write_mode == "upsert":
                self._tables.merge(
                    table,
                    files,
                    keys=members[0].keys,
                    deleted=DELETED,
                    order=("_offset",),
                    writer=writer,
                    batch=manifest.number,
                )
            else:
                self._tables.append(table, files, writer=writer, batch=manifest.number)

    def _count(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Counted):
                for name, count in entry.counts.items():
                    self.counts[name] = self.counts.get(name, 0) + count


def _stored_schema(member: WrittenRows) -> pa.Schema:
    """The schema of rows as the table stores them."""
    schema = member.schema
    return schema.remove(schema.get_field_index(DELETED)) if DELETED in schema.names else schema


def _by_table(rows: Sequence[WrittenRows]) -> dict[str, list[WrittenRows]]:
    tables: dict[str, list[WrittenRows]] = {}
    for member in rows:
        tables.setdefault(member.table, []).append(member)
    return tables
