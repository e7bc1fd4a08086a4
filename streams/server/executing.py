"""The statements of one request, one after the other; if there are several, all are tried on a copy first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from streams.catalog.log import DefinitionLog
from streams.server.catalog import Catalog
from streams.server.changing import Changer
from streams.server.engine import EngineDoor
from streams.server.entities import JSON
from streams.server.errors import NotReady, ServiceError, WrongEndpoint
from streams.server.failures import mapped
from streams.server.inserts import Inserter, check_target, engine_values
from streams.server.preparing import Surroundings
from streams.server.properties import check_name, ignored, resolve
from streams.server.read_only import ReadOnlyStatements
from streams.server.rehearsing import Rehearsal, prepare
from streams.server.script import Written, read_statements
from streams.server.transient import OpenQueries
from streams.settings import StreamsSettings
from streams.sql.analysis.values import insert_values
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DefineVariable,
    Drop,
    DroppedKind,
    InsertSelect,
    InsertValues,
    PrintTopic,
    QueryAction,
    SetProperty,
    UndefineVariable,
    UnsetProperty,
)
from streams.sql.language.variables import Variables

_SEQUENCE_SECONDS: Final = 30.0
_SUBSTITUTION: Final = "ksql.variable.substitution.enable"
_CHANGING: Final = (CreateSource, CreateAsSelect, InsertSelect, AlterSource, CreateType, Drop, ControlQuery)
Surround: TypeAlias = Callable[[Catalog, dict[str, str]], Surroundings]


@dataclass(slots=True)
class Session:
    """What SET and DEFINE have changed so far, within one request."""

    overridden: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)


class Executor:
    """Carries out all statements but SELECT and PRINT."""

    def __init__(
        self,
        *,
        settings: StreamsSettings,
        surround: Surround,
        catalog: Catalog,
        definitions: DefinitionLog,
        engine: EngineDoor,
        changer: Changer,
        inserter: Inserter,
        open_queries: OpenQueries,
        read_only: ReadOnlyStatements,
    ) -> None:
        self._settings = settings
        self._surround = surround
        self._catalog = catalog
        self._definitions = definitions
        self._compute = partial(engine_values, engine)
        self._changer = changer
        self._inserter = inserter
        self._open_queries = open_queries
        self._read_only = read_only

    def execute(
        self, text: str, *, properties: dict[str, str], variables: dict[str, str], sequence: int | None
    ) -> list[JSON]:
        """The entities of the statements; `properties` are resolved."""
        if sequence is not None and sequence >= 0 and not self._definitions.wait_for(sequence, _SEQUENCE_SECONDS):
            raise NotReady(
                f"Timed out while waiting for command {sequence} (commandSequenceNumber): another server wrote it, and "
                "this one has not read it yet. Try again",
                code=50301,
            )
        substitutes = {**self._settings.defaults(), **properties}.get(_SUBSTITUTION, "true").lower() == "true"
        defined = Variables(variables if substitutes else None)
        statements = list(read_statements(text, defined, self._catalog))
        if len(statements) > 1:
            self._rehearse(statements, Session(dict(properties), dict(variables)))
        else:
            refuse_rows(statements[0])
        return self._run(statements, Session(dict(properties), dict(variables)))

    def _rehearse(self, statements: Sequence[Written], session: Session) -> None:
        """Try all statements on a copy of the catalog: if one fails, none is carried out."""
        rehearsal = Rehearsal(self._surround(self._catalog.copy(), session.overridden))
        for written in statements:
            with mapped(written):
                refuse_rows(written)
                if not self._set(written, session):
                    rehearsal.around.use(session.overridden)
                    rehearsal.run(written)

    def _run(self, statements: Sequence[Written], session: Session) -> list[JSON]:
        entities: list[JSON] = []
        for written in statements:
            try:
                with mapped(written):
                    entity = None if self._set(written, session) else self._answer(written, session)
            except ServiceError as error:
                raise error.of_statement(written.text, entities) from error
            if entity is not None:
                entities.append(entity)
        return entities

    def _set(self, written: Written, session: Session) -> bool:
        """Whether the statement only changes the session, which it then has."""
        match written.statement:
            case SetProperty(key, value):
                name, text = resolve(key, value, self._settings)
                session.overridden[name] = text
            case UnsetProperty(key):
                session.overridden.pop(check_name(key, self._settings), None)
            case DefineVariable(name, value):
                session.variables[name] = value
            case UndefineVariable(name):
                session.variables.pop(name, None)
            case _:
                return False
        return True

    def _answer(self, written: Written, session: Session) -> JSON | None:
        statement = written.statement
        match statement:
            case ControlQuery(QueryAction.TERMINATE, query_id) if query_id is not None and self._is_open(query_id.name):
                return self._read_only.terminated(query_id.name, written.text)
            case Drop(DroppedKind.CONNECTOR):
                return self._tell(written, session)
            case InsertValues():
                self._insert(statement)
                return None
            case _ if isinstance(statement, _CHANGING):
                return self._change(written, session)
            case _:
                return self._tell(written, session)

    def _tell(self, written: Written, session: Session) -> JSON:
        return self._read_only.tell(written, self._surround(self._catalog, session.overridden), session.variables)

    def _is_open(self, query_id: str) -> bool:
        """Whether it is a query of a client, which ends with that."""
        return any(query.id == query_id for query in self._open_queries.all())

    def _change(self, written: Written, session: Session) -> JSON:
        without_effect = (
            ignored(session.overridden) if isinstance(written.statement, CreateAsSelect | InsertSelect) else []
        )
        warnings = [f"The property {name} has no effect here." for name in without_effect]
        return self._changer.carry_out(
            lambda: prepare(written, self._surround(self._catalog, session.overridden)), written.text, warnings
        )

    def _insert(self, statement: InsertValues) -> None:
        source = self._read_only.source_named(statement.target.name)
        check_target(source)
        self._surround(self._catalog, {}).check_writable(source.topic)
        self._inserter.insert(source, insert_values(statement, source, self._catalog, self._compute))


def refuse_rows(written: Written) -> None:
    """Raise WrongEndpoint for what gives rows."""
    if isinstance(written.statement, Query | PrintTopic):
        raise WrongEndpoint(
            "The following statement types should be issued to the websocket endpoint '/query' (or /query-stream):"
            "\n\t* PRINT\n\t* SELECT",
            written.text,
        )
