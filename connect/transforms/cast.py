"""Casts fields, or a whole key or value, to another type."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Final

from typing_extensions import override

from connect.api.config import LIST, Importance, Problem, option
from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import ConfigError, DataError
from connect.api.record import Record
from connect.api.values import text_of
from connect.transforms.epoch import days_of, ms_of
from connect.transforms.field_changes import FieldChange, change_map, struct_changes, tree_of
from connect.transforms.field_path import Path, parse_path
from connect.transforms.java.numbers import float32, parse_float, parse_integer, truncate, wrap
from connect.transforms.options import PathConfig, problems_of
from connect.transforms.sides import Memo, Side, SideTransform
from connect.transforms.structs import class_name, require_map, require_struct

_PURPOSE: Final = "cast types"
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_TARGETS: Final = (*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING)
_SOURCES: Final = (*_TARGETS, Type.BYTES)
_LOGICAL: Final = frozenset({DATE_NAME, TIME_NAME, TIMESTAMP_NAME, DECIMAL_NAME})


class CastConfig(PathConfig):
    """Options of Cast."""

    spec: tuple[str, ...] = option(LIST, importance=Importance.HIGH)
    """Fields and the types to cast them to, as field1:type,field2:type; or one type for the whole key or value. Types
    are int8, int16, int32, int64, float32, float64, boolean and string; bytes can be cast to string only."""

    @override
    def problems(self) -> Iterable[Problem]:
        """A spec that cannot be carried out."""
        return problems_of("spec", lambda: _targets(self))


class Cast(SideTransform):
    """Casts fields, or a whole key or value, to another type."""

    config_class = CastConfig
    config: CastConfig
    aliases = ("org.apache.kafka.connect.transforms.Cast",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._targets = targets = _targets(self.config)
        self._cast_item: Callable[[Value, Path], Value] = lambda item, path: _cast(None, targets[path])(item)
        self._whole = self._targets.get(())
        self._tree = tree_of(self._targets)
        replace_null = self.config.replace_null_with_default
        self._structs = struct_changes(self._tree, self._field_change, purpose=_PURPOSE, replace_null=replace_null)
        self._wholes = Memo(self._whole_change)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        if self._whole is not None:
            if schema is None:
                return None, _cast(None, self._whole)(value)
            whole = self._wholes[schema]
            return whole.schema, whole.change(value)
        if schema is None:
            return None, change_map(require_map(value, _PURPOSE), self._tree, change=self._cast_item)
        plan = self._structs[schema]
        return plan.schema, plan.change(require_struct(value, _PURPOSE))

    def _field_change(self, schema: Schema, path: Path) -> FieldChange:
        target = self._targets[path]
        change = _cast(schema, target)
        default = None if schema.default is None else change(schema.default)
        return FieldChange(Schema(target, optional=schema.optional, default=default), change)

    def _whole_change(self, schema: Schema) -> FieldChange:
        """Keeps the schema's name, unless it is that of a logical type: the value is no longer of that type."""
        target = self._targets[()]
        change = _cast(schema, target)
        default = None if schema.default is None else change(schema.default)
        if schema.name in _LOGICAL:
            return FieldChange(Schema(target, optional=schema.optional, default=default, doc=schema.doc), change)
        return FieldChange(schema.but(type=target, default=default), change)


def _targets(options: CastConfig) -> dict[Path, Type]:
    """Types by the path of the field; the empty path is the whole key or value."""
    if not options.spec:
        raise ConfigError("Must specify at least one field to cast.")
    targets: dict[Path, Type] = {}
    for entry in options.spec:
        name, separator, type_name = entry.rpartition(":")
        if separator and ":" in name and options.field_syntax_version == "V1":
            raise ConfigError(
                f"Invalid value {','.join(options.spec)} for configuration spec: Invalid mapping: {entry}"
            )
        path = parse_path(name.strip(), options.field_syntax_version) if separator else ()
        targets[path] = _parse_type(type_name.strip())
    if () in targets and len(options.spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in"
            " their spec"
        )
    return targets


def _parse_type(name: str) -> Type:
    if name.lower() not in {known.value for known in Type}:
        raise ConfigError(f"Invalid type found in casting spec: {name}")
    target = Type(name.lower())
    if target not in _TARGETS:
        raise ConfigError(
            f"Cast transformation does not support casting to {target.name}; supported types are"
            f" [{', '.join(known.name for known in _TARGETS)}]"
        )
    return target


def _cast(schema: Schema | None, target: Type) -> Callable[[Value], Value]:
    """How values of a schema become another type; DataError for types that cannot be cast."""
    if schema is not None and schema.type not in _SOURCES:
        raise DataError(
            f"Cast transformation does not support casting from {schema.type.name}; supported types are"
            f" [{', '.join(known.name for known in _SOURCES)}]"
        )
    if target in _BITS:
        return partial(_to_integer, bits=_BITS[target])
    if target is Type.STRING:
        return partial(_to_text, schema)
    if target is Type.BOOLEAN:
        return _to_boolean
    return (lambda value: float32(_to_float(value))) if target is Type.FLOAT32 else _to_float


def _to_integer(value: Value, bits: int) -> int:
    kind = type(value)
    if kind is int:
        return wrap(value, bits)
    if kind is str:
        try:
            return parse_integer(value, bits)
        except ValueError:
            raise _out_of_range(value) from None
    if kind is float:
        return truncate(value, bits)
    return wrap(int(_number(value)), bits)


def _to_float(value: Value) -> float:
    if type(value) is str:
        try:
            return parse_float(value)
        except ValueError:
            raise _out_of_range(value) from None
    return float(_number(value))


def _to_boolean(value: Value) -> bool:
    """A number is true when its whole part is not zero, text when it is the word true."""
    if isinstance(value, str):
        return value.lower() == "true"
    return _to_integer(value, 64) != 0


def _to_text(schema: Schema | None, value: Value) -> str:
    if isinstance(value, (dict, list)):
        raise _not_castable(value)
    return text_of(schema, value)


def _number(value: Value) -> int | float | Decimal:
    """The value as a number: a Date in days, a Time or Timestamp in milliseconds."""
    if isinstance(value, (int, float, Decimal)):
        return value
    if isinstance(value, dt.datetime | dt.time):
        return ms_of(value)
    if isinstance(value, dt.date):
        return days_of(value)
    raise _not_castable(value)


def _out_of_range(value: str) -> DataError:
    return DataError(f"Value ({value}) was out of range for requested data type")


def _not_castable(value: Value) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: {class_name(value)}")
