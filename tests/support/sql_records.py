"""Sources of all formats with rows that fit them, for Hypothesis."""

import datetime as dt
from decimal import Context
from decimal import Decimal as PythonDecimal
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

from streams.model.sources import Column, Format, FormatName, Source, WindowInfo
from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Name,
    Primitive,
    SqlType,
    Struct,
)

PLAIN: list[SqlType] = [BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, TIME, DATE, TIMESTAMP]
KAFKA: list[SqlType] = [INTEGER, BIGINT, DOUBLE, STRING, BYTES]
IS_PROTOBUF = frozenset({"PROTOBUF", "PROTOBUF_NOSR"})
_UNWRAPPING = frozenset({"JSON", "JSON_SR", "AVRO"})

decimals = st.integers(1, 38).flatmap(lambda digits: st.integers(0, digits).map(lambda scale: Decimal(digits, scale)))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_names = st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True)
_any_names = _names | texts.filter(bool)


def names_of(format_: str) -> st.SearchStrategy[str]:
    """Names of columns; schemas take only some."""
    return _any_names if format_ in ("JSON", "JSON_SR", "DELIMITED", "KAFKA") else _names


def _told_apart(name: str) -> str:
    """Names that differ only in case are one; so are those that differ in underscores, for Protobuf's JSON."""
    return name.upper().replace("_", "") or name


def _fields(kinds: st.SearchStrategy[SqlType], names: st.SearchStrategy[str]) -> st.SearchStrategy[SqlType]:
    pairs = st.lists(st.tuples(names, kinds), min_size=1, max_size=3, unique_by=lambda pair: _told_apart(pair[0]))
    return pairs.map(lambda found: Struct(tuple(Field(*pair) for pair in found)))


def kinds_of(format_: str, *, is_key: bool = False) -> st.SearchStrategy[SqlType]:
    """Types that a format holds."""
    if format_ == "KAFKA":
        return st.sampled_from(KAFKA)
    plain = st.sampled_from(PLAIN) | decimals
    if format_ == "DELIMITED":
        return plain
    if format_ in IS_PROTOBUF:
        single = plain | _fields(st.sampled_from(PLAIN), _names)
        # Nothing says how many digits the decimals of a map have.
        maps = (st.sampled_from(PLAIN) | _fields(st.sampled_from(PLAIN), _names)).map(lambda kind: Map(STRING, kind))
        return single | single.map(Array) | (single if is_key else maps)

    def nested(inner: st.SearchStrategy[SqlType]) -> st.SearchStrategy[SqlType]:
        lists = inner.map(Array) | _fields(inner, names_of(format_))
        return lists if is_key else lists | inner.map(lambda kind: Map(STRING, kind))

    return st.recursive(plain, nested, max_leaves=4)


def values_of(kind: SqlType, format_: str) -> st.SearchStrategy[Any]:
    """Values of a type, None among them where the format holds it."""
    present = _present(kind, format_)
    if format_ in IS_PROTOBUF and isinstance(kind, Array | Map):
        return present
    return st.none() | present


def _present(kind: SqlType, format_: str) -> st.SearchStrategy[Any]:
    match kind:
        case Array(element):
            return st.lists(_item(element, format_), max_size=3)
        case Map(_, value):
            return st.dictionaries(texts, _item(value, format_), max_size=3)
        case Struct(fields):
            return st.fixed_dictionaries({field.name: values_of(field.type, format_) for field in fields})
        case Decimal(precision, scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda number: PythonDecimal(number).scaleb(-scale, _CONTEXT))
        case Primitive(name):
            if format_ == "DELIMITED" and name in (Name.STRING, Name.BYTES):
                return _PLAIN[name].filter(bool)  # Nothing is null there.
            return _PLAIN[name]


def _item(kind: SqlType, format_: str) -> st.SearchStrategy[Any]:
    return _present(kind, format_) if format_ in IS_PROTOBUF else values_of(kind, format_)


_CONTEXT = Context(prec=100)
_PLAIN: dict[Name, st.SearchStrategy[Any]] = {
    Name.BOOLEAN: st.booleans(),
    Name.INTEGER: st.integers(-(1 << 31), (1 << 31) - 1),
    Name.BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    Name.DOUBLE: st.floats(),
    Name.STRING: texts,
    Name.BYTES: st.binary(max_size=8),
    Name.TIME: st.integers(0, 86_399_999).map(
        lambda ms: (dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)).time()
    ),
    Name.DATE: st.dates(),
    Name.TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)).map(
        lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000, fold=0)
    ),
}


@st.composite
def sources(draw: st.DrawFn, format_: FormatName, *, topic: str = "t") -> Source:
    """A source whose keys and values are in a format."""
    most = 1 if format_ == "KAFKA" else 3
    sizes = draw(st.integers(1, most)), draw(st.integers(1, most))
    names = draw(st.lists(names_of(format_), min_size=sum(sizes), max_size=sum(sizes), unique_by=_told_apart))
    key = tuple(Column(name, str(draw(kinds_of(format_, is_key=True)))) for name in names[: sizes[0]])
    value = tuple(Column(name, str(draw(kinds_of(format_)))) for name in names[sizes[0] :])
    can_unwrap = format_ in _UNWRAPPING and len(value) == 1
    wraps = draw(st.sampled_from([None, True, False])) if can_unwrap else None
    nullable: Literal["OPTIONAL"] | None = "OPTIONAL" if format_ in IS_PROTOBUF else None
    delimiter = draw(st.sampled_from([",", "|", "\t", " ", "$"])) if format_ == "DELIMITED" else ","
    windows = [None, WindowInfo(kind="TUMBLING", size_ms=1000), WindowInfo(kind="SESSION")]
    return Source(
        name="S",
        kind="STREAM",
        topic=topic,
        key_format=Format(name=format_, delimiter=delimiter, nullable_as=nullable),
        value_format=Format(name=format_, delimiter=delimiter, nullable_as=nullable, wraps_single=wraps),
        key=key,
        value=value,
        window=draw(st.sampled_from(windows)),
    )


@st.composite
def other_types(draw: st.DrawFn, source: Source) -> Source:
    """The same source as someone else declares it: other types, names in another case."""
    format_ = source.value_format.name
    pick = st.sampled_from(source.value)
    value = tuple(
        Column(draw(st.sampled_from([old.name, old.name.lower()])), str(draw(_akin(old.sql_type) | kinds_of(format_))))
        for old in draw(st.lists(pick, min_size=1, max_size=3, unique_by=lambda column: _told_apart(column.name)))
    )
    return msgspec.structs.replace(source, value=value)


def _akin(kind: SqlType) -> st.SearchStrategy[SqlType]:
    """Types that may take values of a type."""
    match kind:
        case Array(element):
            return _akin(element).map(Array)
        case Map(key, value):
            return _akin(value).map(lambda found: Map(key, found))
        case Struct(fields):
            names = [field.name.lower() for field in fields[:-1]] + [fields[-1].name]
            parts = st.tuples(*(_akin(field.type) for field in fields))
            return parts.map(lambda kinds: Struct(tuple(map(Field, names, kinds))))
        case Decimal(precision, scale):
            wider = st.sampled_from([0, 1, 5]).map(lambda more: Decimal(min(38, precision + more), scale))
            return wider | st.sampled_from([kind, STRING, DOUBLE])
        case _:
            return st.just(kind) | st.sampled_from([STRING, DOUBLE, BIGINT, INTEGER])


@st.composite
def rows(draw: st.DrawFn, source: Source) -> dict[str, Any]:
    """A row of a source, with its window."""
    format_ = source.value_format.name
    found = {column.name: draw(values_of(column.sql_type, format_)) for column in source.columns}
    if source.window is None:
        return found
    if all(found[column.name] is None for column in source.key):
        found[source.key[0].name] = draw(_present(source.key[0].sql_type, format_))
    start = draw(st.integers(0, 1 << 40))
    end = start + (source.window.size_ms or draw(st.integers(0, 1 << 20)))
    return {**found, "WINDOWSTART": start, "WINDOWEND": end}


@st.composite
def hostile(draw: st.DrawFn, data: bytes | None) -> bytes:
    """Bytes that may well be something like these."""
    mutable = bytearray(data or b"")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(mutable)))
        match draw(st.sampled_from(["cut", "put", "change", "any"])):
            case "cut":
                del mutable[at : at + draw(st.integers(1, 4))]
            case "put":
                mutable[at:at] = draw(st.binary(max_size=4))
            case "change" if at < len(mutable):
                mutable[at] = draw(st.integers(0, 255))
            case _:
                mutable = bytearray(draw(st.binary(max_size=30)))
    return bytes(mutable)
