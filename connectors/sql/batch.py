"""Records of one put as changes to tables: first what the tables need for them, then the rows."""

import itertools
from collections.abc import Hashable, Iterator, Sequence
from datetime import tzinfo
from typing import Final

import msgspec

from connect.api.data import Schema, Type
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connectors.sql import inference
from connectors.sql.changes import KeyedChanges, PlainChanges, Step
from connectors.sql.config import SqlSinkConfig
from connectors.sql.database import TableDefinition
from connectors.sql.dialect import NewColumn, Table
from connectors.sql.row_plan import RowPlan, Source, key_sources, new_columns, value_sources
from connectors.sql.structure import Structure

_SHAPES_MAX: Final = 1000


class Shape:
    """What records with the same schemas (or the same names, without a schema) have in common."""

    def __init__(self, keys: Sequence[Source], values: Sequence[Source]) -> None:
        self.keys = keys
        self.values = values
        self.plan: RowPlan | None = None

    @property
    def sources(self) -> list[Source]:
        """All columns that such records need; those of the key first."""
        return [*self.keys, *self.values]


class TableBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done to one table."""

    table: Table
    keys: tuple[str, ...]
    steps: list[Step]


class Batcher:
    """Turns records into changes; knows the shapes it has seen."""

    def __init__(self, structure: Structure, config: SqlSinkConfig, *, family: str, zone: tzinfo) -> None:
        self._structure = structure
        self._config = config
        self._family = family
        self._zone = zone
        self._shapes: dict[Hashable, Shape] = {}

    def forget(self) -> None:
        """Tables may have changed."""
        self._shapes.clear()

    def batches(self, records: Sequence[SinkRecord], tables: dict[str, Table]) -> Iterator[TableBatch]:
        """The changes that these records make, table by table; `tables` tells the table of a topic."""
        by_table: dict[Table, list[SinkRecord]] = {}
        for record in records:
            by_table.setdefault(tables[record.topic], []).append(record)
        for table, some in by_table.items():
            yield from self._batches(table, some)

    def _batches(self, table: Table, records: Sequence[SinkRecord]) -> Iterator[TableBatch]:
        shaped = self._shaped(table, records)
        changed = [(shape, record) for shape, record in shaped if record.value is not None]
        if not changed and self._structure.definition(table) is None:
            return  # rows that are to be deleted from a table that is not there
        self._plan(table, shaped)
        # Records without a schema may have different keys: those of each are a batch.
        for keys, some in itertools.groupby(shaped, key=_keys_of):
            changes = self._new_changes()
            for shape, record in some:
                plan = shape.plan
                assert plan is not None
                row = plan.row(record)
                if record.value is None:
                    changes.delete(row)
                else:
                    changes.write(plan.columns, row, key_count=len(keys))
            yield TableBatch(table=table, keys=keys, steps=list(changes.steps(keys)))

    def _new_changes(self) -> KeyedChanges | PlainChanges:
        if self._config.insert_mode == "insert":
            return PlainChanges()
        return KeyedChanges(only_existing=self._config.insert_mode == "update")

    # --- shapes ---

    def _shaped(self, table: Table, records: Sequence[SinkRecord]) -> list[tuple[Shape, SinkRecord]]:
        shapes = self._shapes
        if len(shapes) > _SHAPES_MAX:
            shapes.clear()
        shaped = []
        for record in records:
            mark = (table, *_mark(record.key_schema, record.key), *_mark(record.value_schema, record.value))
            shape = shapes.get(mark)
            if shape is None:
                shape = shapes[mark] = self._shape(record)
            shaped.append((shape, record))
        return shaped

    def _shape(self, record: SinkRecord) -> Shape:
        self._check(record)
        keys = key_sources(record, self._config)
        values = [] if record.value is None else value_sources(record, self._config, keys=keys)
        if not keys and not values:
            raise DataError("the record has no field that could be written")
        return Shape(keys, values)

    def _check(self, record: SinkRecord) -> None:
        if record.value is None:
            if not self._config.delete_enabled:
                raise DataError("the record has no value, and delete.enabled is false")
            return
        schema = record.value_schema
        is_struct = schema.type is Type.STRUCT if schema is not None else isinstance(record.value, dict)
        is_text = isinstance(record.value, str) and bool(self._config.string_output_value_column_name)
        if not is_struct and not is_text:
            found = type(record.value).__name__ if schema is None else schema.type.name
            raise DataError(f"Value schema must be of type Struct, it is of type {found}")

    # --- what tables need ---

    def _plan(self, table: Table, shaped: Sequence[tuple[Shape, SinkRecord]]) -> None:
        """Give every shape a plan for the table as it is, after the table was given what they need."""
        definition = self._structure.definition(table)
        shapes = {id(shape): shape for shape, _ in shaped}.values()
        if all(self._is_planned(shape, definition) for shape in shapes):
            return
        wanted: dict[str, NewColumn] = {}
        for shape in shapes:
            wanted.update({column.name: column for column in new_columns(shape.sources)})
        if definition is None or self._config.evolves:
            wanted.update(self._inferred(shaped))
        ordered = sorted(wanted.values(), key=lambda column: not column.is_key)
        definition = self._structure.ensure(table, ordered)
        for shape in shapes:
            shape.plan = RowPlan(shape.sources, definition, config=self._config, family=self._family, zone=self._zone)

    def _is_planned(self, shape: Shape, definition: TableDefinition | None) -> bool:
        if shape.plan is None or shape.plan.definition is not definition:
            return False
        # A field that was null in all records so far has no column yet.
        return not (self._config.evolves and shape.plan.has_unknown)

    def _inferred(self, shaped: Sequence[tuple[Shape, SinkRecord]]) -> dict[str, NewColumn]:
        """Columns for values without a schema, from all such values of a batch."""
        found: dict[str, tuple[Schema | None, bool]] = {}
        for shape, record in shaped:
            for source in shape.sources:
                if source.schema is None:
                    seen, is_key = found.get(source.column, (None, False))
                    value = _value_of(source, record)
                    found[source.column] = inference.both(seen, inference.schema_of(value)), is_key or source.is_key
        return {
            name: NewColumn(name=name, schema=schema, is_key=is_key)
            for name, (schema, is_key) in found.items()
            if schema is not None
        }


def _keys_of(shaped: tuple[Shape, SinkRecord]) -> tuple[str, ...]:
    plan = shaped[0].plan
    assert plan is not None
    return plan.keys


def _value_of(source: Source, record: SinkRecord) -> object:
    match source.part:
        case "key":
            return record.key
        case "value":
            return record.value
        case "key.":
            return record.key.get(source.field)
        case _:
            return None if record.value is None else record.value.get(source.field)


def _mark(schema: Schema | None, value: object) -> tuple[Hashable, ...]:
    """What tells the shape of one side of a record."""
    if schema is not None:
        return (schema, value is None)
    return (None, *value) if isinstance(value, dict) else (None, type(value).__name__)
