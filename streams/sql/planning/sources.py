"""CREATE STREAM and CREATE TABLE over a topic, and ALTER."""

from dataclasses import replace

import msgspec

from streams.model.plan import RESERVED, TopicRequest
from streams.model.sources import REGISTRY_FORMATS, Column, Format, HeaderColumn, Kind, Source, TimestampColumn
from streams.model.types import BIGINT, STRING, TIMESTAMP
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.facts import Facts, Inferred, Options
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.types import column, resolved_type
from streams.sql.language.formatting.statements import format_statement
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.statements import AlterSource, ColumnRole, CreateAsSelect, CreateSource, SourceKind
from streams.sql.language.words import closest
from streams.sql.planning.columns import check_format
from streams.sql.planning.properties import Properties
from streams.sql.planning.replacing import source_changes
from streams.sql.planning.statements import with_properties, written_columns
from streams.sql.planning.topics import declared_topic

_KEYS = (ColumnRole.KEY, ColumnRole.PRIMARY_KEY)


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """The halves of a topic's records whose columns must come from the registry."""

    topic: str
    key: Format | None = None
    value: Format | None = None


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A stream or table to be added to the catalog, and its topic."""

    source: Source
    topic: TopicRequest
    replaces: bool = False
    warnings: tuple[str, ...] = ()
    exists: bool = False
    """IF NOT EXISTS, and there is one of this name: nothing is to be done."""


def needs_inference(statement: CreateSource, options: Options) -> Inference | None:
    """Which columns must be inferred before the statement can be planned."""
    given = Properties(statement.properties, options)
    roles = {one.role for one in statement.columns}
    key = given.format("KEY", statement=statement.name)
    value = given.format("VALUE", statement=statement.name)
    wanted = Inference(
        topic=given.text("KAFKA_TOPIC") or "",
        key=key if key.name in REGISTRY_FORMATS and not roles.intersection(_KEYS) else None,
        value=value if value.name in REGISTRY_FORMATS and ColumnRole.VALUE not in roles else None,
    )
    return None if wanted.key is None and wanted.value is None else wanted


def declare(statement: CreateSource, catalog: Catalog, facts: Facts, options: Options) -> Declared:
    """The stream or table that a statement declares."""
    given = Properties(statement.properties, options)
    existing = catalog.source(statement.name.name)
    if existing is not None and statement.if_not_exists:
        topic = TopicRequest(name=existing.topic)
        return Declared(source=existing, topic=topic, exists=True, warnings=(taken(statement, existing),))
    check_name(statement, existing)
    source = _source(statement, catalog, facts, given)
    if statement.is_source and source.topic not in facts.partitions:
        raise mistake(given.node("KAFKA_TOPIC", statement.name), f"Topic '{source.topic}' does not exist.")
    topic = declared_topic(source.kind, given, facts, statement.name)
    source = msgspec.structs.replace(
        source,
        partitions=facts.partitions.get(source.topic, topic.partitions),
        statement=_statement(statement, source, facts.inferred or Inferred()),
    )
    if existing is not None:
        changes = source_changes(existing, source)
        if changes:
            raise mistake(statement.name, "Cannot upgrade data source: " + "\nAND ".join(changes))
    return Declared(source=source, topic=topic, replaces=existing is not None)


def taken(statement: CreateSource | CreateAsSelect, existing: Source) -> str:
    """That the name of a statement is another's already."""
    kind, has = statement.kind.value.lower(), existing.kind.lower()
    return f"Cannot add {kind} '{statement.name.name}': A {has} with the same name already exists."


def check_name(statement: CreateSource | CreateAsSelect, existing: Source | None) -> None:
    """Refuse a name that is taken, unless what has it may be replaced."""
    if existing is None:
        return
    if not statement.or_replace or existing.kind != statement.kind.value:
        hint = " Choose another name, DROP it first, or write CREATE OR REPLACE." if not statement.or_replace else ""
        raise mistake(statement.name, taken(statement, existing) + hint)
    if existing.is_read_only:
        message = f"Cannot add {existing.kind.lower()} '{existing.name}': CREATE OR REPLACE is not for SOURCE objects."
        raise mistake(statement.name, message)


def _source(statement: CreateSource, catalog: Catalog, facts: Facts, given: Properties) -> Source:
    inferred = facts.inferred or Inferred()
    key = _columns(statement, catalog, _KEYS) or inferred.key
    value = _columns(statement, catalog, (ColumnRole.VALUE,)) or inferred.value
    key_format = given.format("KEY", statement=statement.name)
    value_format = given.format("VALUE", statement=statement.name)
    kind: Kind = "TABLE" if statement.kind is SourceKind.TABLE else "STREAM"
    headers = tuple(
        HeaderColumn(one.name.name, one.header)
        for one in statement.columns
        if one.role in {ColumnRole.HEADERS, ColumnRole.HEADER}
    )
    if kind == "TABLE" and not key:
        message = (
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY: write PRIMARY KEY behind a column's type."
        )
        raise mistake(statement.name, message)
    if not value and not headers:
        raise mistake(statement.name, "The statement does not define any value columns. Write at least one.")
    _check_names(statement, (*key, *value))
    check_format(key_format, key, "KEY", statement.name)
    check_format(value_format, value, "VALUE", statement.name)
    wraps = given.wraps_single(value_format, len(value), statement.name)
    return Source(
        name=statement.name.name,
        kind=kind,
        topic=given.text("KAFKA_TOPIC") or "",
        key_format=key_format,
        value_format=msgspec.structs.replace(value_format, wraps_single=wraps),
        key=key,
        value=value,
        headers=headers,
        window=given.window(),
        timestamp=timestamp_of(given, (*key, *value), statement.name),
        is_read_only=statement.is_source,
        is_materialized=statement.is_source and kind == "TABLE",
    )


def _columns(statement: CreateSource, catalog: Catalog, roles: tuple[ColumnRole, ...]) -> tuple[Column, ...]:
    return tuple(
        column(one.name.name, resolved_type(one.type, catalog)) for one in statement.columns if one.role in roles
    )


def _check_names(statement: CreateSource, columns: tuple[Column, ...]) -> None:
    nodes = {one.name.name: one.name for one in statement.columns}
    seen: set[str] = set()
    for one in columns:
        node: Node = nodes.get(one.name, statement.name)
        if one.name in RESERVED:
            raise mistake(node, f"'{one.name}' is a reserved column name. Choose another name.")
        if one.name in seen:
            raise mistake(node, f"Duplicate column names: {one.name}. Rename the key column or the value column.")
        seen.add(one.name)


def timestamp_of(given: Properties, columns: tuple[Column, ...], statement: Node) -> TimestampColumn | None:
    """The column that ROWTIME is taken from."""
    name = given.text("TIMESTAMP")
    if name is None:
        return None
    node = given.node("TIMESTAMP", statement)
    stored = name.strip('`"') if name.startswith(("`", '"')) else name.upper()
    found = next((one for one in columns if one.name == stored), None)
    if found is None:
        meant = closest(stored, [one.name for one in columns])
        hint = f" Did you mean {meant}?" if meant else ""
        message = f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{stored}'.{hint}"
        raise mistake(node, message)
    pattern = given.text("TIMESTAMP_FORMAT")
    allowed = (STRING,) if pattern is not None else (BIGINT, TIMESTAMP)
    if found.sql_type not in allowed:
        message = (
            f"Timestamp column, `{stored}`, should be LONG(INT64), TIMESTAMP, or a String with a TIMESTAMP_FORMAT "
            f"specified; it is {found.type}."
        )
        raise mistake(node, message)
    return TimestampColumn(column=stored, pattern=pattern)


def _statement(statement: CreateSource, source: Source, inferred: Inferred) -> str:
    """The text with the columns of the registry, the formats and the partitions."""
    roles = {one.role for one in statement.columns}
    key_role = ColumnRole.PRIMARY_KEY if source.kind == "TABLE" else ColumnRole.KEY
    key = () if roles.intersection(_KEYS) else written_columns(inferred.key, key_role)
    value = () if ColumnRole.VALUE in roles else written_columns(inferred.value, ColumnRole.VALUE)
    properties = with_properties(
        statement.properties,
        {
            "KEY_FORMAT": source.key_format.name,
            "VALUE_FORMAT": source.value_format.name,
            "KEY_SCHEMA_ID": inferred.key_schema_id if key else None,
            "VALUE_SCHEMA_ID": inferred.value_schema_id if value else None,
        },
    )
    return format_statement(replace(statement, columns=(*key, *statement.columns, *value), properties=properties))


def alter(statement: AlterSource, catalog: Catalog) -> Source:
    """The stream or table with its new columns."""
    found = catalog.source(statement.name.name)
    if found is None:
        raise mistake(statement.name, f"Source {statement.name.name} does not exist.")
    if found.kind != statement.kind.value:
        message = f"Incompatible data source type is {found.kind}, but statement was ALTER {statement.kind.value}."
        raise mistake(statement.name, message)
    if found.query_id is not None:
        message = f"ALTER command is not supported for CREATE ... AS statements. Write CREATE OR REPLACE {found.kind}."
        raise mistake(statement.name, message)
    if found.is_read_only:
        raise mistake(
            statement.name, f"Cannot alter {found.kind.lower()} '{found.name}': ALTER is not for SOURCE objects."
        )
    names = {one.name for one in found.columns} | {header.name for header in found.headers}
    added = []
    for one in statement.columns:
        if one.name.name in names or one.name.name in RESERVED:
            raise mistake(
                one.name, f"Cannot add column `{one.name.name}` to schema. A column with the same name exists."
            )
        added.append(column(one.name.name, resolved_type(one.type, catalog)))
    check_format(found.value_format, added, "VALUE", statement.name)
    if found.value_format.wraps_single is False or found.value_format.name == "KAFKA":
        raise mistake(statement.name, "The value is a single column without a name, to which no other can be added.")
    return msgspec.structs.replace(found, value=(*found.value, *added), statement=_altered(found, statement))


def _altered(found: Source, statement: AlterSource) -> str:
    return f"{found.statement}\n{format_statement(statement)}" if found.statement else ""
