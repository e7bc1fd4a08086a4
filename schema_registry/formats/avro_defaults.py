"""Whether the default of a field is a value of its type."""

from collections.abc import Iterator, Sequence
from typing import Final

from schema_registry.formats.avro_json import written
from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, JsonValue, Map, Primitive, Record, Type, Union
from schema_registry.formats.schema import InvalidSchema

NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
"""Values of floating-point fields that JSON can only say as text."""


class Defaults:
    """Judges defaults; what was judged once is remembered, because unions of records could be tried without end."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[int, int], bool] = {}

    def fits(self, type_: Type, value: JsonValue) -> bool:
        """Whether a JSON value stands for a value of the type; for a union, of any branch (as of Avro 1.12)."""
        if isinstance(type_, Primitive):
            return _fits_primitive(type_.kind, value)
        key = (id(type_), id(value))
        if (verdict := self._verdicts.get(key)) is None:
            verdict = self._verdicts[key] = self._judge(type_, value)
        return verdict

    def branch(self, union: Union, value: JsonValue) -> Type | None:
        """The first branch that has the value."""
        return next((branch for branch in union.branches if self.fits(branch, value)), None)

    def _judge(self, type_: Type, value: JsonValue) -> bool:
        match type_:
            case Enum():
                return value in type_.symbols
            case Fixed():
                return _is_bytes(value) and len(value) == type_.size
            case Array():
                return isinstance(value, list) and all(self.fits(type_.items, item) for item in value)
            case Map():
                return isinstance(value, dict) and all(self.fits(type_.values, item) for item in value.values())
            case Union():
                return self.branch(type_, value) is not None
            case Record():
                return isinstance(value, dict) and all(self._fits_field(field, value) for field in type_.fields)
            case _:
                return False

    def _fits_field(self, field: Field, value: dict[str, JsonValue]) -> bool:
        # A field that is left out takes its own default, which is judged where it is written.
        return self.fits(field.type, value[field.name]) if field.name in value else field.has_default

    def check(self, fields: Sequence[tuple[str, Field]]) -> None:
        """Refuse the first default that is wrong; fields come with where they are."""
        for path, field in fields:
            if not self.fits(field.type, field.default):
                shown = written(field.default)
                shown = shown if len(shown) <= 100 else shown[:100] + "…"
                kind = " or ".join(dict.fromkeys(branch.kind for branch in _branches(field.type)))
                raise InvalidSchema(f"{path}: the default {shown} of field {field.name!r} is no {kind or 'value'}")
        self._check_ends(fields)

    def _check_ends(self, fields: Sequence[tuple[str, Field]]) -> None:
        """Refuse a default that needs itself: a record within itself that is left out each time."""
        finished: set[int] = set()
        for path, field in fields:
            walk = [(field, self._implied(field.type, field.default))]
            under_way = {id(field)}
            while walk:
                current, implied = walk[-1]
                following = next(implied, None)
                if following is None:
                    finished.add(id(current))
                    walk.pop()
                elif id(following) in finished:
                    continue
                elif id(following) in under_way:
                    raise InvalidSchema(f"{path}: the default of field {field.name!r} has no end: it holds itself")
                else:
                    under_way.add(id(following))
                    walk.append((following, self._implied(following.type, following.default)))

    def _implied(self, type_: Type, value: JsonValue) -> Iterator[Field]:
        """The fields whose own defaults complete a default."""
        match type_:
            case Record():
                for field in type_.fields:
                    if field.name in value:
                        yield from self._implied(field.type, value[field.name])
                    else:
                        yield field
            case Array():
                for item in value:
                    yield from self._implied(type_.items, item)
            case Map():
                for item in value.values():
                    yield from self._implied(type_.values, item)
            case Union():
                if branch := self.branch(type_, value):
                    yield from self._implied(branch, value)
            case _:
                return


def _branches(type_: Type) -> Sequence[Type]:
    return type_.branches if isinstance(type_, Union) else (type_,)


def _fits_primitive(kind: str, value: JsonValue) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "bytes":
            return _is_bytes(value)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
        case _:
            return value in NOT_NUMBERS if isinstance(value, str) else type(value) in (int, float)


def _is_bytes(value: JsonValue) -> bool:
    """Whether a value is text whose characters each stand for one byte."""
    return isinstance(value, str) and (value.isascii() or max(value) <= "\xff")
