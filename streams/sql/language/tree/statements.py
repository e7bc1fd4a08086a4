"""Statements."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from streams.sql.language.tree.expressions import Expression, Literal
from streams.sql.language.tree.node import Identifier, Node
from streams.sql.language.tree.queries import Duration, Query
from streams.sql.language.tree.types import Type


class SourceKind(StrEnum):
    """What a topic is declared to be."""

    STREAM = "STREAM"
    TABLE = "TABLE"


class ColumnRole(StrEnum):
    """Which part of a record a column is."""

    VALUE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A declared column; `header` is the key of a HEADER('key')."""

    name: Identifier
    type: Type
    role: ColumnRole = ColumnRole.VALUE
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Property(Node):
    """One of the properties of a WITH clause: in upper case, except those of connectors."""

    name: str
    value: Literal


@dataclass(frozen=True, slots=True)
class CreateSource(Node):
    """CREATE STREAM or TABLE over a topic; without columns they are those of the schema in the registry."""

    kind: SourceKind
    name: Identifier
    columns: tuple[Column, ...] = ()
    properties: tuple[Property, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class CreateAsSelect(Node):
    """CREATE STREAM or TABLE ... AS SELECT."""

    kind: SourceKind
    name: Identifier
    query: Query
    properties: tuple[Property, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


class ConnectorKind(StrEnum):
    """Which way a connector moves records."""

    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True, slots=True)
class CreateConnector(Node):
    """CREATE SOURCE or SINK CONNECTOR."""

    kind: ConnectorKind
    name: Identifier
    properties: tuple[Property, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateType(Node):
    """CREATE TYPE name AS type."""

    name: Identifier
    type: Type
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertSelect(Node):
    """INSERT INTO stream SELECT."""

    target: Identifier
    query: Query
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertValues(Node):
    """INSERT INTO name [(columns)] VALUES (...)."""

    target: Identifier
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]


class DroppedKind(StrEnum):
    """What can be dropped."""

    STREAM = "STREAM"
    TABLE = "TABLE"
    CONNECTOR = "CONNECTOR"
    TYPE = "TYPE"


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """DROP ...; of streams and tables also with their topic."""

    kind: DroppedKind
    name: Identifier
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Node):
    """ALTER STREAM or TABLE name ADD COLUMN ..."""

    kind: SourceKind
    name: Identifier
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class AlterSystem(Node):
    """ALTER SYSTEM 'key' = 'value'."""

    key: str
    value: str


class QueryAction(StrEnum):
    """What can be done to a running query."""

    TERMINATE = "TERMINATE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True, slots=True)
class ControlQuery(Node):
    """TERMINATE, PAUSE or RESUME a query by its id, or all of them (None)."""

    action: QueryAction
    query_id: Identifier | None


@dataclass(frozen=True, slots=True)
class SetProperty(Node):
    """SET 'key' = 'value'."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Node):
    """UNSET 'key'."""

    key: str


@dataclass(frozen=True, slots=True)
class DefineVariable(Node):
    """DEFINE name = 'value'."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UndefineVariable(Node):
    """UNDEFINE name."""

    name: str


class Shown(StrEnum):
    """What can be listed."""

    PROPERTIES = "PROPERTIES"
    TOPICS = "TOPICS"
    ALL_TOPICS = "ALL TOPICS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    FUNCTIONS = "FUNCTIONS"
    QUERIES = "QUERIES"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    CONNECTORS = "CONNECTORS"
    SOURCE_CONNECTORS = "SOURCE CONNECTORS"
    SINK_CONNECTORS = "SINK CONNECTORS"
    CONNECTOR_PLUGINS = "CONNECTOR PLUGINS"


@dataclass(frozen=True, slots=True)
class Show(Node):
    """SHOW or LIST."""

    what: Shown
    is_extended: bool = False


class Described(StrEnum):
    """What can be described: a stream or table has no word of its own."""

    SOURCE = ""
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    FUNCTION = "FUNCTION"
    CONNECTOR = "CONNECTOR"


@dataclass(frozen=True, slots=True)
class Describe(Node):
    """DESCRIBE; all streams or all tables have no name."""

    what: Described
    name: Identifier | None = None
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class Explain(Node):
    """EXPLAIN a statement, or a running query by its id."""

    subject: "Statement | Identifier"


@dataclass(frozen=True, slots=True)
class PrintTopic(Node):
    """PRINT topic; every n-th record, at most so many."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AssertTopic(Node):
    """ASSERT [NOT EXISTS] TOPIC."""

    topic: str
    properties: tuple[Property, ...] = ()
    timeout: Duration | None = None
    must_exist: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Node):
    """ASSERT [NOT EXISTS] SCHEMA."""

    subject: str | None = None
    schema_id: int | None = None
    timeout: Duration | None = None
    must_exist: bool = True


@dataclass(frozen=True, slots=True)
class AssertValues(Node):
    """ASSERT VALUES: the next record of a stream or table, in tests."""

    source: Identifier
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AssertTombstone(Node):
    """ASSERT NULL VALUES: the next record of a table deletes this key, in tests."""

    source: Identifier
    columns: tuple[Identifier, ...]
    key: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AssertSource(Node):
    """ASSERT STREAM or TABLE: it has been declared like this, in tests."""

    kind: SourceKind
    name: Identifier
    columns: tuple[Column, ...] = ()
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class RunScript(Node):
    """RUN SCRIPT 'file'."""

    file: str


@dataclass(frozen=True, slots=True)
class SparkStatement(Node):
    """A statement of Spark's own SQL, unchanged, and what says that it is one."""

    text: str
    sign: str


Statement: TypeAlias = (
    Query
    | CreateSource
    | CreateAsSelect
    | CreateConnector
    | CreateType
    | InsertSelect
    | InsertValues
    | Drop
    | AlterSource
    | AlterSystem
    | ControlQuery
    | SetProperty
    | UnsetProperty
    | DefineVariable
    | UndefineVariable
    | Show
    | Describe
    | Explain
    | PrintTopic
    | AssertTopic
    | AssertSchema
    | AssertValues
    | AssertTombstone
    | AssertSource
    | RunScript
    | SparkStatement
)
