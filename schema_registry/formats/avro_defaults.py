"""Check that the default of a field is a value of its type."""

from collections.abc import Iterator, Sequence
from typing import Final

from schema_registry.formats.avro_json import write
from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, JsonValue, Map, Primitive, Record, Type, Union
from schema_registry.formats.schema import InvalidSchema

NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
"""Values of floating-point fields that JSON can only express as text."""


class Defaults:
    """Checks defaults. Verdicts are cached, because nested unions of records would take exponential time otherwise."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[int, int], bool] = {}

    def fits(self, type_: Type, value: JsonValue) -> bool:
        """Whether a JSON value is a value of the type; of a union, any branch counts (since Avro 1.12)."""
        if isinstance(type_, Primitive):
            return _fits_primitive(type_.kind, value)
        key = (id(type_), id(value))
        if (verdict := self._verdicts.get(key)) is None:
            verdict = self._verdicts[key] = self._fits_complex(type_, value)
        return verdict

    def branch(self, union: Union, value: JsonValue) -> Type | None:
        """The first branch that the value fits."""
        return next((branch for branch in union.branches if self.fits(branch, value)), None)

    def _fits_complex(self, type_: Type, value: JsonValue) -> bool:
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
                # A missing field takes its own default, which is checked where it is defined.
                return isinstance(value, dict) and all(
                    self.fits(field.type, value[field.name]) if field.name in value else field.has_default
                    for field in type_.fields
                )
            case _:
                return False

    def check(self, fields: Sequence[tuple[str, Field]]) -> None:
        """Refuse the first invalid default among fields and their paths."""
        for path, field in fields:
            if not self.fits(field.type, field.default):
                text = write(field.default)
                text = text if len(text) <= 100 else text[:100] + "…"
                branches = field.type.branches if isinstance(field.type, Union) else (field.type,)
                kind = " or ".join(dict.fromkeys(branch.kind for branch in branches))
                raise InvalidSchema(
                    f"{path}: the default {text} of field {field.name!r} is not a valid {kind or 'value'}"
                )
        self._refuse_infinite(fields)

    def _refuse_infinite(self, fields: Sequence[tuple[str, Field]]) -> None:
        """Refuse a default that contains itself: a record inside itself that is missing each time."""
        finished: set[int] = set()
        for path, field in fields:
            # A depth-first walk with an explicit stack; a field that is met while it is on the stack is a cycle.
            walk = [(field, self._implied_fields(field.type, field.default))]
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
                    raise InvalidSchema(f"{path}: the default of field {field.name!r} is infinite: it contains itself")
                else:
                    under_way.add(id(following))
                    walk.append((following, self._implied_fields(following.type, following.default)))

    def _implied_fields(self, type_: Type, value: JsonValue) -> Iterator[Field]:
        """The fields that a default leaves out, and whose own defaults complete it."""
        match type_:
            case Record():
                for field in type_.fields:
                    if field.name in value:
                        yield from self._implied_fields(field.type, value[field.name])
                    else:
                        yield field
            case Array():
                for item in value:
                    yield from self._implied_fields(type_.items, item)
            case Map():
                for item in value.values():
                    yield from self._implied_fields(type_.values, item)
            case Union():
                if branch := self.branch(type_, value):
                    yield from self._implied_fields(branch, value)
            case _:
                return


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
    """Whether a value is text in which each character stands for one byte."""
    return isinstance(value, str) and (value.isascii() or max(value) <= "\xff")
