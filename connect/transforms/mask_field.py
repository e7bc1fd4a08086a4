"""Masks fields with the zero value of their type, or with a replacement."""

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from typing_extensions import override

from connect.api.config import LIST, STRING, Importance, not_empty, option, optional
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.transforms.epoch import EPOCH
from connect.transforms.field_changes import FieldChange, change_map, struct_changes, tree_of
from connect.transforms.field_path import Path, parse_path
from connect.transforms.java.numbers import float32, parse_float, wrap
from connect.transforms.options import FIELD_NAMES, PathConfig, raw_text
from connect.transforms.sides import Side, SideTransform
from connect.transforms.structs import class_name, require_map, require_struct

_PURPOSE: Final = "mask fields"
_ZEROS: Final[dict[type, Value]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    dt.date: EPOCH.date(),
    dt.time: dt.time(),
    dt.datetime: EPOCH,
}
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}
_MOST_DIGITS: Final = 1_000


class MaskFieldConfig(PathConfig):
    """Options of MaskField."""

    fields: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Names of fields to mask."""
    replacement: str | None = option(optional(STRING), default=None, check=not_empty(), importance=Importance.LOW)
    """Replaces numbers and text; not set: the zero value of the type, or an empty text, list or map."""


class MaskField(SideTransform):
    """Masks fields with the zero value of their type, or with a replacement."""

    config_class = MaskFieldConfig
    config: MaskFieldConfig
    aliases = ("org.apache.kafka.connect.transforms.MaskField",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = self.config
        self._tree = tree_of(parse_path(name, options.field_syntax_version) for name in options.fields)
        replacement = raw_text(options, "replacement", default="") if options.replacement else None
        self._mask_item: Callable[[Value, Path], Value] = lambda item, _: _mask(None, replacement, item)
        self._replacement = replacement
        replace_null = options.replace_null_with_default
        self._plans = struct_changes(self._tree, self._field_change, purpose=_PURPOSE, replace_null=replace_null)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is None:
            return None, change_map(require_map(value, _PURPOSE), self._tree, change=self._mask_item)
        struct = require_struct(value, _PURPOSE)
        return schema, self._plans[schema].change(struct)

    def _field_change(self, schema: Schema, _: Path) -> FieldChange:
        return FieldChange(schema, partial(_mask, schema, self._replacement))


def _mask(schema: Schema | None, replacement: str | None, value: Value) -> Value:
    return _zero(schema, value) if replacement is None else _replace(schema, replacement, value=value)


def _zero(schema: Schema | None, value: Value) -> Value:
    if isinstance(value, Decimal):
        return Decimal(0).scaleb(int(value.as_tuple().exponent)) if value.is_finite() else Decimal(0)
    is_struct = schema is not None and schema.type is Type.STRUCT
    if isinstance(value, (list, dict)) and not is_struct:
        return type(value)()
    if type(value) not in _ZEROS:
        raise DataError(f"Cannot mask value of type: {'struct' if is_struct else class_name(value)}")
    return _ZEROS[type(value)]


def _replace(schema: Schema | None, replacement: str, *, value: Value) -> Value:
    """The replacement as a value of the same type; integers take its whole part, cut to the bits they have."""
    kind = type(value)
    if kind is str:
        return replacement
    if kind not in (int, float, Decimal):
        raise DataError(f"Cannot mask value of type {class_name(value)} with custom replacement.")
    try:
        if kind is float:
            number = parse_float(replacement)
            return float32(number) if schema is not None and schema.type is Type.FLOAT32 else number
        exact = _decimal(replacement)
        return exact if kind is Decimal else wrap(int(exact), _BITS.get(schema.type, 64) if schema else 64)
    except ValueError:
        raise DataError(f"Unable to convert {replacement} (java.lang.String) to number") from None


def _decimal(text: str) -> Decimal:
    try:
        exact = Decimal(text.strip() if "_" not in text else "none")
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not exact.is_finite() or abs(exact.adjusted()) > _MOST_DIGITS:
        raise ValueError("not a number")
    return exact
