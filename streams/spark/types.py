"""Types of the values in Spark tables: Arrow's and Spark's names for them, and lossless changes.

Tables hold bool, int8/16/32/64, float, double, decimal(p<=38, s), string, binary, date, timestamp(us, UTC), list,
map<string, …> and struct; all columns and fields may be null. A time of day is text, because Spark has no such type.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.types import PRECISION_MAX, TIME, TIMESTAMP
from streams.errors import SchemaConflict

Change = Literal["add", "widen"]
"""How a table's columns may change: columns and fields are added, types are widened without loss."""

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DDL: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    pa.null(): "void",
}
_ARROW: Final[dict[str, pa.DataType]] = {
    **{name: kind for kind, name in _DDL.items()},
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "real": pa.float32(),
    "null": pa.null(),
}
_DDL_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|[\w ]+|\S)")
_WIDENED: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def stored_type(given: pa.DataType) -> pa.DataType:
    """The type in which a table stores values of an Arrow type; TypeError if there is none."""
    if given in _DDL:
        return given
    if given in _WIDENED:
        return _WIDENED[given]
    if pa.types.is_nested(given):
        return _stored_nested(given)
    return _stored_plain(given)


@lru_cache(maxsize=1000)
def table_type(decoded: pa.DataType) -> pa.DataType:
    """The type in which a table stores decoded data: times of day are text, decimals have 38 digits."""
    if pa.types.is_time(decoded):
        return pa.string()
    if pa.types.is_decimal256(decoded):
        return pa.decimal128(PRECISION_MAX, decoded.scale)
    if pa.types.is_struct(decoded):
        fields = [(field.name, table_type(field.type)) for field in decoded]
        return pa.struct(fields)
    if pa.types.is_map(decoded):
        return pa.map_(table_type(decoded.key_type), table_type(decoded.item_type))
    return pa.list_(table_type(decoded.value_type)) if pa.types.is_list(decoded) else decoded


def table_array(decoded: pa.Array) -> pa.Array:
    """Decoded data as tables store it."""
    return _conformed_array(decoded, table_type(decoded.type))


def stored_schema(given: pa.Schema) -> pa.Schema:
    """The columns in which a table stores rows of an Arrow schema, without its metadata."""
    return pa.schema([pa.field(field.name, stored_type(field.type)) for field in given])


def ddl_type(stored: pa.DataType) -> str:
    """A stored type in Spark's SQL."""
    if stored in _DDL:
        return _DDL[stored]
    if pa.types.is_decimal(stored):
        return f"decimal({stored.precision},{stored.scale})"
    if pa.types.is_list(stored):
        return f"array<{ddl_type(stored.value_type)}>"
    if pa.types.is_map(stored):
        return f"map<{ddl_type(stored.key_type)},{ddl_type(stored.item_type)}>"
    if pa.types.is_struct(stored):
        return f"struct<{','.join(f'{quoted(field.name)}:{ddl_type(field.type)}' for field in stored)}>"
    raise TypeError(f"Arrow's type {stored} has no place in a table")


def arrow_type(ddl: str) -> pa.DataType:
    """The stored type of a type in Spark's SQL; TypeError if tables have no such type."""
    tokens = [token.strip() for token in _DDL_TOKEN.findall(ddl)]
    kind = _parse(tokens := [token for token in tokens if token])
    if tokens:
        raise TypeError(f"Spark's type {ddl} is not understood at {tokens[0]!r}")
    return kind


def ddl_columns(schema: pa.Schema) -> str:
    """Columns as in CREATE TABLE."""
    return ", ".join(f"{quoted(field.name)} {ddl_type(field.type)}" for field in schema)


def quoted(name: str) -> str:
    """A name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def merged_type(has: pa.DataType, given: pa.DataType) -> pa.DataType | None:
    """The narrowest stored type that holds every value of both without loss; None if there is none."""
    if has == given or pa.types.is_null(given):
        return has
    if pa.types.is_null(has):
        return given
    if _is_number(has) and _is_number(given):
        return _merged_numbers(has, given)
    if pa.types.is_decimal(has) and pa.types.is_decimal(given):
        scale = max(has.scale, given.scale)
        digits = max(has.precision - has.scale, given.precision - given.scale) + scale
        return pa.decimal128(digits, scale) if digits <= PRECISION_MAX else None
    return _merged_nested(has, given)


def merged_schema(table: str, has: pa.Schema, given: pa.Schema) -> pa.Schema:
    """Columns that hold the rows of both, those of `has` first; SchemaConflict if there are none."""
    check_names(table, given)
    known = {field.name.lower(): field for field in has}
    types = {field.name: field.type for field in has}
    for field in given:
        before = known.get(field.name.lower(), field)
        if before.name != field.name:
            raise SchemaConflict(table, before.name, has=before.name, given=field.name)
        both = merged_type(types.get(field.name, pa.null()), field.type)
        if both is None:
            raise SchemaConflict(table, field.name, has=ddl_type(before.type), given=ddl_type(field.type))
        types[field.name] = both
    return pa.schema([pa.field(name, kind) for name, kind in types.items()])


def changes(has: pa.Schema, then: pa.Schema) -> frozenset[Change]:
    """How a table changes that gets the columns of `merged_schema`."""
    return frozenset(_changes(pa.struct(list(has)), pa.struct(list(then))))


def check_names(table: str, schema: pa.Schema) -> None:
    """SchemaConflict if the names of two columns or two fields of a struct differ only in case."""
    _check_names(table, "", schema)


def without_nulls(schema: pa.Schema) -> pa.Schema:
    """The columns and fields whose type is known."""
    kept = [(field.name, _known(field.type)) for field in schema]
    return pa.schema([pa.field(name, kind) for name, kind in kept if kind is not None])


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in exactly these columns: values are widened, missing columns null, other columns left out."""
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
        else:
            chunks = [_conformed_array(chunk, field.type) for chunk in rows.column(index).chunks]
            columns.append(pa.chunked_array(chunks, field.type))
    return pa.table(columns, schema=schema) if columns else rows.select([])


def _parse(tokens: list[str]) -> pa.DataType:
    if not tokens:
        raise TypeError("A type is missing")
    name = tokens.pop(0).lower()
    match name:
        case "array":
            (element,) = _parse_between(tokens, 1)
            return list_of(element)
        case "map":
            key, value = _parse_between(tokens, 2)
            return stored_type(pa.map_(key, value))
        case "struct":
            return pa.struct(list(_parse_fields(tokens)))
        case "decimal" | "dec" | "numeric":
            return _parse_decimal(tokens)
        case _ if name in _ARROW:
            return _ARROW[name]
        case _:
            raise TypeError(f"Tables have no type {name}")


def _parse_between(tokens: list[str], count: int) -> list[pa.DataType]:
    _expect(tokens, "<")
    kinds = []
    for index in range(count):
        if index:
            _expect(tokens, ",")
        kinds.append(_parse(tokens))
    _expect(tokens, ">")
    return kinds


def _parse_fields(tokens: list[str]) -> Iterator[pa.Field]:
    _expect(tokens, "<")
    while tokens and tokens[0] != ">":
        name = tokens.pop(0)
        _expect(tokens, ":")
        yield pa.field(name[1:-1].replace("``", "`") if name.startswith("`") else name, _parse(tokens))
        if tokens and tokens[0] == ",":
            tokens.pop(0)
    _expect(tokens, ">")


def _parse_decimal(tokens: list[str]) -> pa.DataType:
    if not tokens or tokens[0] != "(":
        return pa.decimal128(10, 0)
    _expect(tokens, "(")
    numbers = [int(tokens.pop(0))]
    if tokens and tokens[0] == ",":
        tokens.pop(0)
        numbers.append(int(tokens.pop(0)))
    _expect(tokens, ")")
    return pa.decimal128(*numbers)


def _expect(tokens: list[str], wanted: str) -> None:
    if not tokens or tokens.pop(0) != wanted:
        raise TypeError(f"A type lacks {wanted!r}")


def _changes(has: pa.DataType, then: pa.DataType) -> Iterator[Change]:
    if has == then:
        return
    if pa.types.is_struct(then):
        known = {field.name: field.type for field in has}
        for field in then:
            if field.name in known:
                yield from _changes(known[field.name], field.type)
            else:
                yield "add"
    elif pa.types.is_list(then):
        yield from _changes(has.value_type, then.value_type)
    elif pa.types.is_map(then):
        yield from _changes(has.item_type, then.item_type)
    else:
        yield "widen"


def _stored_plain(given: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(given):
        return TIMESTAMP
    if types.is_time(given):
        return pa.string()
    if types.is_fixed_size_binary(given):
        return pa.binary()
    if types.is_dictionary(given):
        return stored_type(given.value_type)
    if types.is_decimal(given) and given.precision <= PRECISION_MAX and 0 <= given.scale <= given.precision:
        return pa.decimal128(given.precision, given.scale)
    if isinstance(given, pa.BaseExtensionType):
        return pa.string() if isinstance(given, pa.UuidType) else stored_type(given.storage_type)
    raise TypeError(f"Arrow's type {given} has no place in a table")


def _stored_nested(given: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(given):
        return pa.struct([pa.field(field.name, stored_type(field.type)) for field in given])
    if pa.types.is_map(given):
        if stored_type(given.key_type) != pa.string():
            raise TypeError(f"Keys of a map are text in a table, not {given.key_type}")
        return map_of(stored_type(given.item_type))
    if hasattr(given, "value_type"):
        return list_of(stored_type(given.value_type))
    raise TypeError(f"Arrow's type {given} has no place in a table")


def list_of(element: pa.DataType) -> pa.DataType:
    """A list as in tables; the element has Parquet's name."""
    return pa.list_(pa.field("element", element))


def map_of(value: pa.DataType) -> pa.DataType:
    """A map with text keys as in tables."""
    return pa.map_(pa.string(), pa.field("value", value))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _merged_numbers(has: pa.DataType, given: pa.DataType) -> pa.DataType | None:
    integers = [kind for kind in (has, given) if pa.types.is_integer(kind)]
    if len(integers) == 2:
        return max(integers, key=_INTEGERS.index)
    # A float is exact up to 2**24 and a double up to 2**53, so that no int64 becomes one.
    if pa.int64() in integers:
        return None
    if pa.float64() in (has, given) or pa.int32() in integers:
        return pa.float64()
    return pa.float32()


def _merged_nested(has: pa.DataType, given: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_list(has) and types.is_list(given):
        element = merged_type(has.value_type, given.value_type)
        return None if element is None else list_of(element)
    if types.is_map(has) and types.is_map(given) and has.key_type == given.key_type:
        value = merged_type(has.item_type, given.item_type)
        return None if value is None else map_of(value)
    if types.is_struct(has) and types.is_struct(given):
        return _merged_structs(has, given)
    return None


def _merged_structs(has: pa.DataType, given: pa.DataType) -> pa.DataType | None:
    fields: dict[str, pa.Field] = {field.name.lower(): field for field in has}
    for field in given:
        before = fields.get(field.name.lower(), pa.field(field.name, pa.null()))
        both = merged_type(before.type, field.type) if before.name == field.name else None
        if both is None:
            return None
        fields[field.name.lower()] = pa.field(field.name, both)
    return pa.struct(list(fields.values()))


def _check_names(table: str, path: str, fields: Iterable[pa.Field]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        before = seen.get(field.name.lower())
        if before is not None:
            raise SchemaConflict(table, path + before, has=path + before, given=path + field.name)
        seen[field.name.lower()] = field.name
        _check_type_names(table, f"{path}{field.name}.", field.type)


def _check_type_names(table: str, path: str, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind):
        _check_names(table, path, kind)
    elif pa.types.is_list(kind):
        _check_type_names(table, f"{path}element.", kind.value_type)
    elif pa.types.is_map(kind):
        _check_type_names(table, f"{path}value.", kind.item_type)


def _known(kind: pa.DataType) -> pa.DataType | None:
    """A type without its null parts; None if nothing is left."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_list(kind):
        element = _known(kind.value_type)
        return None if element is None else list_of(element)
    if pa.types.is_map(kind):
        value = _known(kind.item_type)
        return None if value is None else map_of(value)
    if pa.types.is_struct(kind):
        kept = [(field.name, _known(field.type)) for field in kind]
        fields = [pa.field(name, inner) for name, inner in kept if inner is not None]
        return pa.struct(fields) if fields else None
    return kind


def _conformed_array(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if values.type == TIME and pa.types.is_string(kind):
        return _time_texts(values)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind):
        return _conformed_struct(values, kind)
    if pa.types.is_list(kind):
        element = _conformed_array(values.values, kind.value_type)
        return _same_shape(values, kind, element)
    if pa.types.is_map(kind):
        items = _conformed_array(values.items, kind.item_type)
        fields = [kind.key_field, kind.item_field]
        return _same_shape(values, kind, pa.StructArray.from_arrays([values.keys, items], fields=fields))
    return values.cast(kind)


def _time_texts(values: pa.Array) -> pa.Array:
    """Times of day as written by Python's `isoformat`."""
    milliseconds = values.view(pa.int32())
    seconds, fractions = _time_tables()
    whole = pc.divide(milliseconds, 1000)
    rest = pc.subtract(milliseconds, pc.multiply(whole, 1000))
    return pc.binary_join_element_wise(seconds.take(whole), fractions.take(rest), "")


@cache
def _time_tables() -> tuple[pa.Array, pa.Array]:
    """The texts of all seconds of a day, and of all milliseconds of a second."""
    seconds = [f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}" for number in range(86_400)]
    return pa.array(seconds), pa.array([f".{number:03}000" if number else "" for number in range(1000)])


def _conformed_struct(values: pa.Array, kind: pa.DataType) -> pa.Array:
    children = []
    for field in kind:
        index = values.type.get_field_index(field.name)
        known = values.field(index) if index >= 0 else pa.nulls(len(values), pa.null())
        children.append(_conformed_array(known, field.type))
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def _same_shape(values: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map with other elements, but the same nulls and offsets, slices included."""
    return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], offset=values.offset, children=[child])


def names(fields: Iterable[pa.Field]) -> Sequence[str]:
    """Their names, in their order."""
    return [field.name for field in fields]
