"""Decodes JSON by a schema: msgspec decodes and checks, and what it cannot express is converted afterwards.

A schema becomes a type for msgspec, which builds dicts and lists and checks types and limits as it decodes. The result
is visited again only where there are dates, decimals, defaults or maps with keys that are not text.
"""

import base64
import copy
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, Required, TypedDict

import msgspec

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import date_of, decimal_of, rescaled, scale_of, time_of, timestamp_of

Reader = Callable[[bytes], Value]
"""Reads the JSON text of one value."""
_Change = Callable[[Any], Value]

_BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_INT64: Final = 1 << 63
_MOST_DIGITS: Final = 10_000
_INTEGER_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_PLAIN: Final = {
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
}
_LOGICAL: Final[dict[str | None, _Change]] = {DATE_NAME: date_of, TIME_NAME: time_of, TIMESTAMP_NAME: timestamp_of}
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NO_NUMBER: Final = re.compile(rb'"(?:NaN|-?Infinity)"')
_any = msgspec.json.Decoder()
_text = msgspec.json.Decoder(str)


def read_any(data: bytes) -> Value:
    """JSON text without a schema."""
    value = decode(_any, data)
    if _LONG_NUMBER.search(data):
        _refuse_long_numbers(value)
    return value


def decode(decoder: msgspec.json.Decoder[Any], data: bytes) -> Any:
    """Decode JSON. Raises DataError."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        text = str(error)
        is_null = "got `null`" in text or "missing required field" in text
        problem = "Invalid null value for required field" if is_null else "The JSON does not fit its schema"
        raise DataError(f"{problem}: {text}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{_BROKEN}{error}") from None
    except RecursionError:
        raise DataError(f"{_BROKEN}it is nested too deep") from None


def _refuse_long_numbers(value: Value) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is int and not -_INT64 <= item < _INT64:
            raise DataError("A whole number does not fit into 64 bits")
        if isinstance(item, (dict, list)):
            waiting.extend(item.values() if isinstance(item, dict) else item)


class Readers:
    """Makes readers for schemas."""

    def __init__(self, *, nulls_become_defaults: bool, words_are_numbers: bool = False) -> None:
        """`words_are_numbers`: "NaN" and "Infinity" stand for such numbers; slower, so only where there are any."""
        self._nulls_become_defaults = nulls_become_defaults
        self._words_are_numbers = words_are_numbers

    def of(self, schema: Schema | None) -> Reader:
        """The reader of one schema."""
        if schema is None:
            return read_any
        read = self._reader(schema)
        if self._words_are_numbers or not _has_floats(schema):
            return read

        lenient = Readers(nulls_become_defaults=self._nulls_become_defaults, words_are_numbers=True)
        made: list[Reader] = []

        def read_words_too(data: bytes) -> Value:
            try:
                return read(data)
            except DataError:
                if not _NO_NUMBER.search(data):
                    raise
                if not made:
                    made.append(lenient.of(schema))
                return made[0](data)

        return read_words_too

    def _reader(self, schema: Schema) -> Reader:
        decoder = msgspec.json.Decoder(self._type(schema))
        change = self._change(schema)
        if change is None:
            return lambda data: decode(decoder, data)
        return lambda data: change(decode(decoder, data))

    def value_of(self, schema: Schema, json: Any) -> Value:
        """The value of JSON that was read without its schema: a default for instance."""
        return self.of(schema)(msgspec.json.encode(json))

    def _may_be_null(self, schema: Schema) -> bool:
        return schema.optional or self._has_default(schema)

    def _has_default(self, schema: Schema) -> bool:
        return schema.default is not None and self._nulls_become_defaults

    def _is_missed(self, schema: Schema) -> bool:
        """Whether there is something to do when a field is missing."""
        is_required = schema.name == DECIMAL_NAME and not schema.optional
        return is_required or self._has_default(schema)

    def _type(self, schema: Schema) -> Any:
        if schema.name == DECIMAL_NAME:
            return msgspec.Raw
        plain = self._present_type(schema)
        return plain | None if self._may_be_null(schema) else plain

    def _present_type(self, schema: Schema) -> Any:
        if schema.type in _INTEGER_BITS:
            limit = 1 << (_INTEGER_BITS[schema.type] - 1)
            return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
        if schema.type in _FLOATS and self._words_are_numbers:
            return float | str
        if schema.type in _PLAIN:
            return _PLAIN[schema.type]
        if schema.type is Type.STRUCT:
            return self._struct_type(schema)
        values = self._type(_known(schema.value_schema))
        if schema.type is Type.ARRAY:
            return list[values]  # type: ignore[valid-type]
        if _known(schema.key_schema).type is Type.STRING:
            return dict[str, values]  # type: ignore[valid-type]
        return list[tuple[self._type(_known(schema.key_schema)), values]]  # type: ignore[misc]

    def _struct_type(self, schema: Schema) -> Any:
        fields = {}
        for field in schema.fields:
            kind = self._type(field.schema)
            # msgspec does not support Required[Raw], so the conversion checks that a decimal is present.
            may_be_missing = kind is msgspec.Raw or self._may_be_null(field.schema)
            # It also finds non-ASCII names in a TypedDict only after having encoded them once.
            msgspec.json.encode(field.name)
            fields[field.name] = kind if may_be_missing else Required[kind]
        return TypedDict(schema.name or "Struct", fields, total=False)  # type: ignore[operator]

    def _change(self, schema: Schema) -> _Change | None:
        """The conversion that remains; None if there is none."""
        change = self._present_change(schema)
        if self._has_default(schema):
            return _or_default(schema.default, change)
        if change is None or schema.name == DECIMAL_NAME or not schema.optional:
            return change
        return lambda value: None if value is None else change(value)

    def _present_change(self, schema: Schema) -> _Change | None:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name] if schema.type in _INTEGER_BITS else _refusing_logical(schema)
        if schema.type in _FLOATS and self._words_are_numbers:
            return _float_of
        if schema.name == DECIMAL_NAME:
            return _decimal_reader(scale_of(schema), may_be_null=self._may_be_null(schema))
        made = {Type.ARRAY: self._array, Type.MAP: self._map, Type.STRUCT: self._struct}.get(schema.type)
        return made(schema) if made else None

    def _array(self, schema: Schema) -> _Change | None:
        inner = self._change(_known(schema.value_schema))
        return None if inner is None else lambda items: [inner(item) for item in items]

    def _map(self, schema: Schema) -> _Change | None:
        values = self._change(_known(schema.value_schema))
        key_schema = _known(schema.key_schema)
        if key_schema.type is Type.STRING:
            return None if values is None else lambda found: {key: values(item) for key, item in found.items()}
        keys = self._change(key_schema)

        def made_map(pairs: list[tuple[Any, Any]]) -> Value:
            try:
                return {keys(k) if keys else k: values(v) if values else v for k, v in pairs}
            except TypeError:
                raise DataError(f"A map cannot have keys of type {key_schema.type.name}") from None

        return made_map

    def _struct(self, schema: Schema) -> _Change | None:
        changes = [(field.name, change) for field in schema.fields if (change := self._change(field.schema))]
        if not changes:
            return None
        always = frozenset(field.name for field in schema.fields if self._is_missed(field.schema))

        def changed_struct(found: dict[str, Any]) -> Value:
            for name, change in changes:
                if name in found or name in always:
                    found[name] = change(found.get(name))
            return found

        return changed_struct


def _has_floats(schema: Schema) -> bool:
    inner = (schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields))
    return schema.type in _FLOATS or any(_has_floats(part) for part in inner if part is not None)


def _float_of(value: float | str) -> float:
    if isinstance(value, str):
        if value not in _NOT_FINITE:
            raise DataError(f"The JSON does not fit its schema: Expected `float`, got {value!r}")
        return _NOT_FINITE[value]
    return value


def _refusing_logical(schema: Schema) -> _Change:
    kind = (schema.name or "").rpartition(".")[2]

    def refuse(_: Any) -> Value:
        rule = "underlying representation should be integral"
        raise DataError(f"Invalid type for {kind}, {rule} but was {schema.type.name}")

    return refuse


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("the schema of an array or a map has no schema for its elements")
    return schema


def _or_default(default: Value, change: _Change | None) -> _Change:
    is_shared = not isinstance(default, (dict, list))

    def value_or_default(value: Any) -> Value:
        found = change(value) if change is not None and value is not None else value
        if found is not None:
            return found
        return default if is_shared else copy.deepcopy(default)

    return value_or_default


def _decimal_reader(scale: int, *, may_be_null: bool) -> _Change:
    def read_decimal(raw: msgspec.Raw | None) -> Decimal | None:
        text = "null" if raw is None else bytes(raw).decode("utf-8", "replace")
        if text == "null":
            if may_be_null:
                return None
            raise DataError("Invalid null value for required BYTES field")
        if text.startswith('"'):
            return _decimal_from_base64(decode(_text, text.encode()), scale)
        if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text):
            return rescaled(Decimal(text), scale)
        found = {"t": "BOOLEAN", "f": "BOOLEAN", "[": "ARRAY", "{": "OBJECT"}.get(text[0], "a number too long")
        representation = "underlying representation should be numeric or bytes"
        raise DataError(f"Invalid type for Decimal, {representation} but was {found}")

    return read_decimal


def _decimal_from_base64(text: str, scale: int) -> Decimal:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise DataError("Invalid bytes for Decimal field") from None
    if not data:
        raise DataError("Invalid bytes for Decimal field")
    return decimal_of(data, scale)
