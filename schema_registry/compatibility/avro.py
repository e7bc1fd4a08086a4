"""Find what prevents a reader with one Avro schema from reading records that were written with another.

The rules, types, paths and details are those of Java's SchemaCompatibility and of Confluent's registry.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from schema_registry.compatibility.avro_readable import (
    PAIRS_MAX,
    Key,
    Readable,
    TooManyPairs,
    is_same_name,
    match_fields,
    missing_symbols,
    pair_key,
    promotes,
)
from schema_registry.compatibility.difference import Difference
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Named, Primitive, Record, Type, Union

_PairAt: TypeAlias = tuple[Type, Type, str]
"""A reader's type, a writer's type, and the path to them."""
_Step: TypeAlias = Difference | _PairAt

_DESCRIPTIONS: Final = {
    "FIXED_SIZE_MISMATCH": (
        "At path '{path}' the fixed types of the {reader} schema and the {writer} schema have different sizes"
    ),
    "TYPE_MISMATCH": (
        "At path '{path}' the {reader} schema has a type that cannot read the type of the {writer} schema"
    ),
    "NAME_MISMATCH": (
        "At path '{path}' the {reader} schema has another type name than the {writer} schema, and no alias matches"
    ),
    "MISSING_ENUM_SYMBOLS": (
        "At path '{path}' the {reader} schema lacks enum symbols of the {writer} schema,"
        " and has no default for them: {detail}"
    ),
    "MISSING_UNION_BRANCH": (
        "At path '{path}' the {reader} schema has no union branch for a type of the {writer} schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The {reader} schema has a field '{detail}' at path '{path}' that is missing in the {writer} schema"
        " and has no default"
    ),
    # The last two are ours: Java throws an exception, or takes very long.
    "AMBIGUOUS_ALIASES": (
        "The field at path '{path}' in the {reader} schema matches several fields of the {writer} schema,"
        " by its name and its aliases: {detail}"
    ),
    "TOO_COMPLEX": "The {reader} schema and the {writer} schema are too complex to compare: {detail}",
}


def compare(reader: AvroSchema, writer: AvroSchema) -> list[Difference]:
    """All incompatibilities, in the order of the reader's schema; empty if all records can be read."""
    readable = Readable()
    try:
        if readable(reader.root, writer.root):
            return []
        return list(_Report(readable).differences(reader.root, writer.root))
    except TooManyPairs:
        return [_difference("TOO_COMPLEX", "", f"more than {PAIRS_MAX} pairs of types in unions")]


class _Report:
    """Walks both schemas and reports each difference; a pair of named types only where it comes first."""

    def __init__(self, readable: Readable) -> None:
        self._readable = readable
        self._reported: set[Key] = set()
        self._open: list[Key] = []
        self._readable_within: Readable | None = None

    def differences(self, reader: Type, writer: Type) -> Iterator[Difference]:
        stack = [self._enter(reader, writer, "")]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, Difference):
                yield step
            elif pair_key(step[0], step[1]) not in self._reported:
                stack.append(self._enter(*step))

    def _enter(self, reader: Type, writer: Type, path: str) -> Iterator[_Step]:
        if not (isinstance(reader, Named) and isinstance(writer, Named)):
            yield from self._steps(reader, writer, path)
            return
        self._reported.add(pair_key(reader, writer))
        self._open.append(pair_key(reader, writer))
        self._readable_within = None
        yield from self._steps(reader, writer, path)
        self._open.pop()
        self._readable_within = None

    def _steps(self, reader: Type, writer: Type, path: str) -> Iterator[_Step]:
        """The differences of one pair, and the pairs below it, in order."""
        match reader, writer:
            case (Union(), _) | (_, Union()):
                yield from self._union_steps(reader, writer, path)
            case Array(), Array():
                yield reader.items, writer.items, f"{path}/items"
            case Map(), Map():
                yield reader.values, writer.values, f"{path}/values"
            case Record(), Record():
                yield from _name_steps(reader, writer, path)
                yield from _field_steps(reader, writer, f"{path}/fields")
            case Enum(), Enum():
                yield from _name_steps(reader, writer, path)
                if missing := missing_symbols(reader, writer):
                    yield _difference("MISSING_ENUM_SYMBOLS", f"{path}/symbols", f"[{', '.join(missing)}]")
            case Fixed(), Fixed():
                yield from _name_steps(reader, writer, path)
                if reader.size != writer.size:
                    detail = f"expected: {writer.size}, found: {reader.size}"
                    yield _difference("FIXED_SIZE_MISMATCH", f"{path}/size", detail)
            case Primitive(), Primitive() if promotes(reader, writer):
                pass
            case _:
                yield _type_mismatch(reader, writer, path)

    def _union_steps(self, reader: Type, writer: Type, path: str) -> Iterator[_Step]:
        branches = writer.branches if isinstance(writer, Union) else ()
        if not isinstance(reader, Union):
            for index, branch in enumerate(branches):
                yield reader, branch, f"{path}/{index}"
        elif isinstance(writer, Union):
            for index, branch in enumerate(branches):
                if self._lacks(reader, branch):
                    yield _missing_branch(branch, f"{path}/{index}")
        elif self._lacks(reader, writer):
            yield _missing_branch(writer, path)

    def _lacks(self, union: Union, writer: Type) -> bool:
        """Whether no branch reads a type, for another reason than a difference that is being reported already."""
        if self._readable(union, writer):
            return False
        # Recursive types: the pairs around this one are taken for readable, since they are reported themselves.
        if self._readable_within is None:
            self._readable_within = self._readable.presuming(self._open)
        try:
            return not self._readable_within(union, writer)
        except TooManyPairs:
            return True


def _name_steps(reader: Named, writer: Named, path: str) -> Iterator[_Step]:
    if not is_same_name(reader, writer):
        yield _difference("NAME_MISMATCH", f"{path}/name", f"expected: {writer.name.full}")


def _field_steps(reader: Record, writer: Record, path: str) -> Iterator[_Step]:
    written = {field.name: field for field in writer.fields}
    for index, field in enumerate(reader.fields):
        where = f"{path}/{index}"
        match match_fields(field, written):
            case []:
                if not field.has_default:
                    yield _missing_field(field, writer, where)
            case [found]:
                yield field.type, found.type, f"{where}/type"
            case several:
                yield _difference("AMBIGUOUS_ALIASES", where, f"[{', '.join(found.name for found in several)}]")


def _missing_field(field: Field, writer: Record, path: str) -> Difference:
    if isinstance(field.type, Enum) and field.type.default is not None:
        # Java compares the enum with the writer's whole record here, and so reports another difference.
        return _type_mismatch(field.type, writer, f"{path}/type")
    return _difference("READER_FIELD_MISSING_DEFAULT_VALUE", path, field.name)


def _missing_branch(writer: Type, path: str) -> Difference:
    return _difference("MISSING_UNION_BRANCH", path, f"reader union lacking writer type: {writer.kind.upper()}")


def _type_mismatch(reader: Type, writer: Type, path: str) -> Difference:
    detail = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return _difference("TYPE_MISMATCH", path, detail)


def _difference(type_: str, path: str, detail: str) -> Difference:
    path = path or "/"
    description = _DESCRIPTIONS[type_].replace("{path}", path).replace("{detail}", detail)
    return Difference(type=type_, path=path, is_compatible=False, description=description, detail=detail)
