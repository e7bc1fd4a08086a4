"""Tries statements on a copy of the catalog: what each would change is there for those behind it."""

from streams.catalog.state import Cleanup
from streams.server.defining import prepare_alter, prepare_insert, prepare_query, prepare_source, prepare_type
from streams.server.dropping import prepare_control, prepare_drop, prepare_drop_type
from streams.server.errors import BadStatement
from streams.server.inserts import check_target
from streams.server.preparing import Prepared, Surroundings
from streams.server.replacing import prepare_replacement
from streams.server.script import Written
from streams.sql.analysis.values import check_values
from streams.sql.language.tree.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    Describe,
    Described,
    Drop,
    DroppedKind,
    InsertSelect,
    InsertValues,
)


def prepare(written: Written, around: Surroundings) -> Prepared:
    """What a statement will do that changes the catalog."""
    match written.statement:
        case CreateSource() as statement:
            return prepare_source(statement, around)
        case CreateAsSelect() as statement:
            return _prepare_query(statement, written, around)
        case InsertSelect() as statement:
            return prepare_insert(statement, around)
        case AlterSource() as statement:
            return prepare_alter(statement, around)
        case CreateType() as statement:
            return prepare_type(statement, around)
        case Drop(DroppedKind.TYPE) as statement:
            return prepare_drop_type(statement, around)
        case Drop() as statement:
            return prepare_drop(statement, around)
        case ControlQuery() as statement:
            return prepare_control(statement, around)
        case other:
            raise BadStatement(f"A {type(other).__name__} changes nothing")


def _prepare_query(statement: CreateAsSelect, written: Written, around: Surroundings) -> Prepared:
    existing = around.state.source(statement.name.name)
    if existing is None or not statement.or_replace or statement.if_not_exists:
        return prepare_query(statement, around)
    return prepare_replacement(statement, around, existing, written.replacing)


class Rehearsal:
    """A run of statements without effects."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    def run(self, written: Written) -> None:
        """Raise what the statement would raise; statements that only tell something are not tried."""
        match written.statement:
            case Drop(DroppedKind.CONNECTOR):
                pass
            case (
                CreateSource()
                | CreateAsSelect()
                | InsertSelect()
                | AlterSource()
                | CreateType()
                | Drop()
                | ControlQuery()
            ):
                self._apply(prepare(written, self.around))
            case InsertValues() as statement:
                source = self.around.state.source(statement.target.name)
                if source is None:
                    raise BadStatement(f"Cannot insert values into an unknown stream/table: {statement.target.name}")
                check_target(source)
                check_values(statement, source, self.around.state)
            case Describe(Described.SOURCE, name) if name is not None and self.around.state.source(name.name) is None:
                raise BadStatement(f"Could not find STREAM/TABLE '{name.name}' in the Metastore.")
            case _:
                pass

    def _apply(self, prepared: Prepared) -> None:
        for change in prepared.changes:
            if isinstance(change.definition, Cleanup):
                for topic in change.definition.topics:
                    self.around.partitions.pop(topic, None)
            else:
                self.around.state.apply(change)
        for request in prepared.topics:
            self.around.partitions.setdefault(request.name, request.partitions or 1)
        self.around.number += 1
