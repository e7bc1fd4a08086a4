"""Turns the records of one put into changes to tables: first the columns that tables need, then the rows."""

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
from connectors.sql.row_plan import RowPlan, Source, key_sources, value_sources
from connectors.sql.structure import Structure

_SHAPES_MAX: Final = 1000


class Shape:
    """The columns of records with the same schemas, or with the same field names if they have no schema."""

    def __init__(self, keys: Sequence[Source], values: Sequence[Source]) -> None:
        self.keys = keys
        self.values = values
        self.plan: RowPlan | None = None

    @property
    def sources(self) -> list[Source]:
        """All columns that such records need, the key's first."""
        return [*self.keys, *self.values]


class TableBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to one table."""

    table: Table
    keys: tuple[str, ...]
    steps: list[Step]


class Batcher:
    """Turns records into changes, and remembers their shapes."""

    def __init__(self, structure: Structure, config: SqlSinkConfig, *, family: str, zone: tzinfo) -> None:
        self._structure = structure
        self._config = config
        self._family = family
        self._zone = zone
        self._shapes: dict[Hashable, Shape] = {}

    def forget(self) -> None:
        """Forget shapes, since tables may have changed."""
        self._shapes.clear()

    def batches(self, records: Sequence[SinkRecord], tables: dict[str, Table]) -> Iterator[TableBatch]:
        """The changes that these records make, table by table; `tables` has the table of each topic."""
        by_table: dict[Table, list[SinkRecord]] = {}
        for record in records:
            by_table.setdefault(tables[record.topic], []).append(record)
        for table, some in by_table.items():
            yield from self._batches(table, some)

    def _batches(self, table: Table, records: Sequence[SinkRecord]) -> Iterator[TableBatch]:
        shaped = self._find_shapes(table, records)
        changed = [(shape, record) for shape, record in shaped if record.value is not None]
        if not changed and self._structure.definition(table) is None:
            return  # Deletes from a table that does not exist.
        self._plan(table, shaped)
        mode = self._config.insert_mode
        # Records without a schema may have different keys, each of which makes a batch.
        for keys, some in itertools.groupby(shaped, key=_keys_of):
            changes = PlainChanges() if mode == "insert" else KeyedChanges(only_existing=mode == "update")
            for shape, record in some:
                plan = shape.plan
                assert plan is not None
                row = plan.row(record)
                if record.value is None:
                    changes.delete(row)
                else:
                    changes.write(plan.columns, row, key_count=len(keys))
            yield TableBatch(table=table, keys=keys, steps=list(changes.steps(keys)))

    # --- shapes ---

    def _find_shapes(self, table: Table, records: Sequence[SinkRecord]) -> list[tuple[Shape, SinkRecord]]:
        shapes = self._shapes
        if len(shapes) > _SHAPES_MAX:
            shapes.clear()
        shaped = []
        for record in records:
            identity = (table, *_identity(record.key_schema, record.key), *_identity(record.value_schema, record.value))
            shape = shapes.get(identity)
            if shape is None:
                shape = shapes[identity] = self._new_shape(record)
            shaped.append((shape, record))
        return shaped

    def _new_shape(self, record: SinkRecord) -> Shape:
        schema, value = record.value_schema, record.value
        if value is None:
            if not self._config.delete_enabled:
                raise DataError("the record has no value, and delete.enabled is false")
        else:
            is_struct = schema.type is Type.STRUCT if schema is not None else isinstance(value, dict)
            is_text = isinstance(value, str) and bool(self._config.string_output_value_column_name)
            if not is_struct and not is_text:
                found = type(value).__name__ if schema is None else schema.type.name
                raise DataError(f"Value schema must be of type Struct, it is of type {found}")
        keys = key_sources(record, self._config)
        values = [] if value is None else value_sources(record, self._config, keys=keys)
        if not keys and not values:
            raise DataError("the record has no field that could be written")
        return Shape(keys, values)

    # --- columns that tables need ---

    def _plan(self, table: Table, shaped: Sequence[tuple[Shape, SinkRecord]]) -> None:
        """Add the columns that are missing, and give every shape a plan for the table."""
        definition = self._structure.definition(table)
        shapes = {id(shape): shape for shape, _ in shaped}.values()
        if all(self._is_planned(shape, definition) for shape in shapes):
            return
        wanted = {
            source.column: NewColumn(name=source.column, schema=source.schema, is_key=source.is_key)
            for shape in shapes
            for source in shape.sources
            if source.schema is not None
        }
        if definition is None or self._config.evolves:
            wanted.update(self._inferred_columns(shaped))
        ordered = sorted(wanted.values(), key=lambda column: not column.is_key)
        definition = self._structure.ensure(table, ordered)
        for shape in shapes:
            shape.plan = RowPlan(shape.sources, definition, config=self._config, family=self._family, zone=self._zone)

    def _is_planned(self, shape: Shape, definition: TableDefinition | None) -> bool:
        if shape.plan is None or shape.plan.definition is not definition:
            return False
        # A field without a column was null in all records so far.
        return not (self._config.evolves and shape.plan.has_unknown)

    def _inferred_columns(self, shaped: Sequence[tuple[Shape, SinkRecord]]) -> dict[str, NewColumn]:
        """Columns for values without a schema, from all such values of a batch."""
        found: dict[str, tuple[Schema | None, bool]] = {}
        for shape, record in shaped:
            for source in shape.sources:
                if source.schema is None:
                    seen, is_key = found.get(source.column, (None, False))
                    schema = inference.common_schema(seen, inference.schema_of(_value_of(source, record)))
                    found[source.column] = schema, is_key or source.is_key
        return {
            name: NewColumn(name=name, schema=known, is_key=is_key)
            for name, (known, is_key) in found.items()
            if known is not None
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


def _identity(schema: Schema | None, value: object) -> tuple[Hashable, ...]:
    """What identifies the shape of a record's key or value."""
    if schema is not None:
        return (schema, value is None)
    return (None, *value) if isinstance(value, dict) else (None, type(value).__name__)
