"""WITH clauses: unknown names, wrong values, and properties that exclude or need each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from streams.sql.language.checks.columns import KEYS
from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.checks.property_values import FORMATS, INFERRING, RULES, Where, text_of
from streams.sql.language.source import Place
from streams.sql.language.tree.statements import Column, ColumnRole, CreateSource, Property, SourceKind
from streams.sql.language.tree.types import (
    ArrayType,
    CustomType,
    DecimalType,
    MapType,
    Primitive,
    PrimitiveType,
    StructType,
)
from streams.sql.language.words import closest, listed

_EXCLUDED: Final = (
    ("FORMAT", "KEY_FORMAT", "FORMAT is for key and value. Write KEY_FORMAT and VALUE_FORMAT, or FORMAT alone."),
    ("FORMAT", "VALUE_FORMAT", "FORMAT is for key and value. Write KEY_FORMAT and VALUE_FORMAT, or FORMAT alone."),
    (
        "VALUE_SCHEMA_FULL_NAME",
        "VALUE_AVRO_SCHEMA_FULL_NAME",
        "VALUE_AVRO_SCHEMA_FULL_NAME is an older name of VALUE_SCHEMA_FULL_NAME. Write only the latter.",
    ),
    ("SOURCE_CONNECTOR", "SOURCED_BY_CONNECTOR", "Write only one of SOURCE_CONNECTOR and SOURCED_BY_CONNECTOR."),
)
_KAFKA_TYPES: Final = frozenset(
    {Primitive.INTEGER, Primitive.BIGINT, Primitive.DOUBLE, Primitive.STRING, Primitive.BYTES}
)


def check_properties(properties: Sequence[Property], where: Where) -> Iterator[Problem]:
    """Names, values and conflicts of a WITH clause, as far as they do not depend on the columns."""
    yield from _names(properties, where)
    given = by_name(properties)
    for item in given.values():
        rule = RULES.get(item.name)
        if rule is not None and where in rule.where and not rule.accepts(item.value):
            yield at(item.value, f"The value of {item.name} is {rule.allowed}.")
    for first, second, message in _EXCLUDED:
        if first in given and second in given:
            yield at(given[second], message)
    yield from _window(given)
    for side in ("KEY", "VALUE"):
        yield from _formats_own(given, side)
    if "TIMESTAMP_FORMAT" in given and "TIMESTAMP" not in given:
        yield at(
            given["TIMESTAMP_FORMAT"],
            "TIMESTAMP_FORMAT needs TIMESTAMP = 'column', the column that it is the format of.",
        )


def by_name(properties: Sequence[Property]) -> dict[str, Property]:
    """Properties by their names; of two with one name, the first."""
    return {item.name: item for item in reversed(properties)}


def format_of(given: Mapping[str, Property], side: str) -> str | None:
    """The format of keys or values, if the clause says it."""
    item = given.get(f"{side}_FORMAT") or given.get("FORMAT")
    text = None if item is None else text_of(item.value)
    return text.upper() if text is not None and text.upper() in FORMATS else None


def _names(properties: Sequence[Property], where: Where) -> Iterator[Problem]:
    unknown = [item for item in properties if item.name not in RULES and item.name != "CLEANUP_POLICY"]
    if unknown:
        allowed = [name for name, rule in RULES.items() if where in rule.where]
        shown = [f"{item.name}{_meant(item.name, allowed)}" for item in unknown[:20]]
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        one = "property" if len(unknown) == 1 else "properties"
        yield at(unknown[0], f"Unknown {one} in the WITH clause: {', '.join(shown)}{more}.")
    seen: set[str] = set()
    for item in properties:
        if item.name in seen:
            yield at(item, f"{item.name} is set twice. Remove one of the two.")
        elif item.name == "CLEANUP_POLICY":
            message = (
                "CLEANUP_POLICY cannot be set: topics of streams are kept by time, topics of tables are compacted. "
                "Remove it."
            )
            yield at(item, message)
        elif item.name in RULES and where not in RULES[item.name].where:
            yield at(item, f"{item.name} cannot be set here, only in {_statements(RULES[item.name].where)}.")
        seen.add(item.name)


def _meant(name: str, allowed: Sequence[str]) -> str:
    meant = closest(name, allowed)
    return f" (did you mean {meant}?)" if meant else ""


def _statements(where: Where) -> str:
    names = {
        Where.CREATE: "CREATE STREAM or TABLE without AS",
        Where.AS_SELECT: "CREATE ... AS SELECT",
        Where.INSERT: "INSERT INTO ... SELECT",
        Where.ASSERT_TOPIC: "ASSERT TOPIC",
    }
    return listed(text for flag, text in names.items() if flag in where)


def _window(given: Mapping[str, Property]) -> Iterator[Problem]:
    kind, size = given.get("WINDOW_TYPE"), given.get("WINDOW_SIZE")
    type_ = None if kind is None else (text_of(kind.value) or "").upper()
    if size is not None and type_ == "SESSION":
        yield at(size, "The windows of a SESSION have no size. Remove WINDOW_SIZE.")
    elif size is not None and kind is None:
        yield at(size, "WINDOW_SIZE needs WINDOW_TYPE = 'TUMBLING' or 'HOPPING'.")
    elif kind is not None and type_ in {"TUMBLING", "HOPPING"} and size is None:
        yield at(kind, f"WINDOW_TYPE = '{type_}' needs WINDOW_SIZE, such as '30 SECONDS'.")


def _formats_own(given: Mapping[str, Property], side: str) -> Iterator[Problem]:
    """Properties that belong to one format."""
    format_ = format_of(given, side)
    delimiter = given.get(f"{side}_DELIMITER")
    if delimiter is not None and format_ not in {None, "DELIMITED"}:
        yield at(delimiter, f"{side}_DELIMITER is for the format DELIMITED, not for {format_}. Remove it.")
    nullable = given.get(f"{side}_PROTOBUF_NULLABLE_REPRESENTATION")
    if nullable is not None and format_ not in {None, "PROTOBUF", "PROTOBUF_NOSR"}:
        yield at(nullable, f"{nullable.name} is for PROTOBUF, not for {format_}. Remove it.")
    schema = given.get(f"{side}_SCHEMA_ID")
    if schema is not None and format_ is not None and format_ not in INFERRING:
        yield at(schema, f"{side}_SCHEMA_ID is for {listed(sorted(INFERRING))}, not for {format_}.")
    if side == "VALUE" and format_ == "NONE":
        yield at(
            given.get("VALUE_FORMAT") or given["FORMAT"], "NONE is a format of keys only. Choose another for values."
        )


def check_source_properties(statement: CreateSource) -> Iterator[Problem]:
    """What depends on the declared columns."""
    given = by_name(statement.properties)
    head = Place(statement.place.start, statement.name.place.end)
    if "KAFKA_TOPIC" not in given and not any(name not in RULES for name in given):
        yield Problem("The topic is missing: write WITH (KAFKA_TOPIC = 'name', VALUE_FORMAT = 'JSON').", head)
    keys = [column for column in statement.columns if column.role in KEYS]
    values = [column for column in statement.columns if column.role is ColumnRole.VALUE]
    yield from _missing_columns(statement, given, head, keys)
    yield from _declared_twice(given, "KEY", keys)
    yield from _declared_twice(given, "VALUE", values)
    yield from _types_of_format(format_of(given, "KEY"), keys, "key")
    yield from _types_of_format(format_of(given, "VALUE"), values, "value")
    yield from _timestamp(statement, given)
    wrap = given.get("WRAP_SINGLE_VALUE")
    if wrap is not None and len(values) > 1:
        yield at(wrap, f"WRAP_SINGLE_VALUE is for values of one column; here there are {len(values)}. Remove it.")


def _missing_columns(
    statement: CreateSource, given: Mapping[str, Property], head: Place, keys: Sequence[Column]
) -> Iterator[Problem]:
    key, value = format_of(given, "KEY"), format_of(given, "VALUE")
    is_inferred = "VALUE_SCHEMA_ID" in given or value is None or value in INFERRING
    if not statement.columns and not is_inferred:
        message = (
            f"The columns of {value} are not in a registry: write them after the name, as in "
            f"{statement.name.name} (ID STRING, ...)."
        )
        yield Problem(message, head)
    elif statement.kind is SourceKind.TABLE and not keys and "KEY_SCHEMA_ID" not in given and key not in INFERRING:
        yield Problem("Tables require a PRIMARY KEY: add PRIMARY KEY after the type of a column.", head)


def _declared_twice(given: Mapping[str, Property], side: str, columns: Sequence[Column]) -> Iterator[Problem]:
    schema = given.get(f"{side}_SCHEMA_ID")
    if schema is not None and columns:
        message = (
            f"With {side}_SCHEMA_ID, the {side.lower()} columns come from the schema. Remove them, or {side}_SCHEMA_ID."
        )
        yield at(schema, message)


def _types_of_format(format_: str | None, columns: Sequence[Column], part: str) -> Iterator[Problem]:
    if format_ == "NONE" and columns:
        yield at(columns[0], "With KEY_FORMAT = 'NONE' there are no key columns. Remove KEY, or choose another format.")
    if format_ == "KAFKA" and len(columns) > 1:
        yield at(
            columns[1], f"The format KAFKA holds one {part} column. Choose another format, such as JSON, for several."
        )
    for column in columns:
        type_ = column.type
        if isinstance(type_, CustomType):
            continue
        is_nested = isinstance(type_, ArrayType | MapType | StructType)
        if format_ == "DELIMITED" and is_nested:
            yield at(type_, f"The format DELIMITED cannot hold an {_word(type_)}. Choose another format, such as JSON.")
        elif format_ == "KAFKA" and not (isinstance(type_, PrimitiveType) and type_.name in _KAFKA_TYPES):
            yield at(
                type_,
                "The format KAFKA holds INTEGER, BIGINT, DOUBLE, STRING or BYTES. Choose another format, such as JSON.",
            )


def _word(type_: object) -> str:
    return {ArrayType: "ARRAY", MapType: "MAP", StructType: "STRUCT", DecimalType: "DECIMAL"}[type(type_)]


def _timestamp(statement: CreateSource, given: Mapping[str, Property]) -> Iterator[Problem]:
    item = given.get("TIMESTAMP")
    name = None if item is None else text_of(item.value)
    if item is None or name is None or not statement.columns:
        return
    stored = name.strip('`"') if name.startswith(("`", '"')) else name.upper()
    column = next((column for column in statement.columns if column.name.name == stored), None)
    if column is None:
        is_complete = format_of(given, "KEY") not in INFERRING and format_of(given, "VALUE") not in INFERRING
        if is_complete:
            names = [column.name.name for column in statement.columns]
            meant = closest(stored, names)
            hint = f" Did you mean {meant}?" if meant else f" The columns are {listed(names[:20], last='and')}."
            yield at(item.value, f"There is no column {stored} to take the time from.{hint}")
        return
    type_ = column.type
    if not isinstance(type_, PrimitiveType):
        return
    if "TIMESTAMP_FORMAT" in given and type_.name is not Primitive.STRING:
        yield at(
            given["TIMESTAMP_FORMAT"], f"TIMESTAMP_FORMAT is for text, and {stored} is {type_.name.value}. Remove it."
        )
    elif "TIMESTAMP_FORMAT" not in given and type_.name not in {Primitive.BIGINT, Primitive.TIMESTAMP}:
        hint = "Add TIMESTAMP_FORMAT" if type_.name is Primitive.STRING else "Choose another column"
        yield at(item.value, f"{stored} is {type_.name.value}; a time is BIGINT (milliseconds) or TIMESTAMP. {hint}.")
