"""Infers the type of a text: a number, a boolean, a date, a list or a map, else a string."""

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Final, NoReturn

from connect.api.data import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    Value,
    decimal,
)
from connect.api.errors import DataError

_Typed = tuple[Schema | None, Value]

_NULL: Final[_Typed] = (None, None)
_WORDS: Final[dict[str, _Typed]] = {"null": _NULL, "true": (BOOLEAN, True), "false": (BOOLEAN, False)}
_TOKEN: Final = re.compile(r'(?:\\(?:.|$)|[^:,{}\[\]"\\])+|[:,{}\[\]"]', re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern}T{_TIME.pattern}", re.ASCII)
_BLANKS: Final = "".join(map(chr, range(33)))
_INTEGERS: Final = ((INT8, 1 << 7), (INT16, 1 << 15), (INT32, 1 << 31), (INT64, 1 << 63))
_WIDTHS: Final = {Type.INT8: 0, Type.INT16: 1, Type.INT32: 2, Type.INT64: 3, Type.FLOAT32: 4, Type.FLOAT64: 5}
_MOST_DIGITS_OF_INT64: Final = 19
_PACKED_FLOAT: Final = struct.Struct(">f")
_MOST_NESTED: Final = 100
_MOST_DIGITS: Final = 10_000


def parse(text: str) -> _Typed:
    """The schema and value of a text; STRING and the text itself when it is nothing else.

    As in Kafka Connect `1` is an INT8, `1.5` a FLOAT32, `2019-08-23` a Date, `[1, 2]` an ARRAY, `{"a": 1}` a MAP.
    The whole text has to match: `10:30` and `1,5` stay text, where Kafka Connect would keep only the first number.
    """
    stripped = text.strip(_BLANKS)
    if not stripped:
        return STRING, text
    if stripped in _WORDS:
        return _WORDS[stripped]
    if len(stripped) < _MOST_DIGITS_OF_INT64 and stripped.isascii() and stripped.isdigit():
        return _integer(int(stripped)) or (STRING, text)
    if stripped[0] in "[{":
        try:
            return _Reader(text).read_all()
        except DataError:
            return STRING, text
    if stripped[0] in "+-0123456789":
        return _temporal(stripped) or _number(stripped) or (STRING, text)
    return STRING, text


class _Reader:
    """Parses lists and maps; DataError for any other text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0
        self._depth = 0

    def read_all(self) -> _Typed:
        """The value that the whole text is."""
        found = self.value()
        if any(token.strip(_BLANKS) for token in self._tokens[self._at :]):
            _refuse()
        return found

    def value(self) -> _Typed:
        """The next value."""
        if self._take('"'):
            return self._read_quoted()
        if self._take("["):
            return self._read_nested(self._list)
        if self._take("{"):
            return self._read_nested(self._map)
        if self._at >= len(self._tokens):
            _refuse()
        token = self._tokens[self._at].strip(_BLANKS)
        self._at += 1
        return _WORDS.get(token) or self._temporal(token) or _number(token) or _refuse()

    def _read_nested(self, read: Callable[[], _Typed]) -> _Typed:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            _refuse()
        found = read()
        self._depth -= 1
        return found

    def _list(self) -> _Typed:
        common = _CommonSchema()
        items = []
        while not self._take("]"):
            schema, item = self.value()
            common.add(schema)
            items.append(item)
            self._end_item("]")
        return Schema(Type.ARRAY, value_schema=common.schema), common.align(items)

    def _map(self) -> _Typed:
        common_key, common_value = _CommonSchema(), _CommonSchema()
        keys, values = [], []
        while not self._take("}"):
            key_schema, key = self.value()
            if key is None or isinstance(key, (dict, list)) or not self._take(":"):
                _refuse()
            value_schema, value = self.value()
            common_key.add(key_schema)
            common_value.add(value_schema)
            keys.append(key)
            values.append(value)
            self._end_item("}")
        if common_key.schema is None:
            return Schema(Type.MAP), dict(zip(keys, values, strict=True))
        schema = Schema(Type.MAP, key_schema=common_key.schema, value_schema=common_value.schema)
        return schema, dict(zip(common_key.align(keys), common_value.align(values), strict=True))

    def _read_quoted(self) -> _Typed:
        begin = self._at
        try:
            end = self._tokens.index('"', begin)
        except ValueError:
            _refuse()
        self._at = end + 1
        content = "".join(self._tokens[begin:end])
        return _temporal(content) or (STRING, content)

    def _temporal(self, token: str) -> _Typed | None:
        """The tokenizer splits times at their colons, unless these are escaped."""
        whole = token + "".join(self._tokens[self._at : self._at + 4]).rstrip(_BLANKS)
        if token[0].isdigit() and (found := _temporal(whole)):
            self._at += 4
            return found
        return _temporal(token)

    def _end_item(self, end: str) -> None:
        if not self._take(",") and not self._is_next(end):
            _refuse()

    def _take(self, expected: str) -> bool:
        if self._is_next(expected):
            self._at += 1
            return True
        return False

    def _is_next(self, expected: str) -> bool:
        while self._at < len(self._tokens) and not self._tokens[self._at].strip(_BLANKS):
            self._at += 1
        return self._at < len(self._tokens) and self._tokens[self._at] == expected


class _CommonSchema:
    """The schema that all items of a list share: the widest number type, or the same schema for all."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._is_mixed = False

    def add(self, schema: Schema | None) -> None:
        """Add the schema of one more item."""
        if schema is None or self._is_mixed:
            return
        if self.schema is None or self.schema == schema:
            self.schema = schema
        else:
            one, other = self.schema, schema
            are_numbers = not one.name and not other.name and one.type in _WIDTHS and other.type in _WIDTHS
            self.schema = max(one, other, key=lambda number: _WIDTHS[number.type]) if are_numbers else None
            self._is_mixed = not are_numbers

    def align(self, items: list[Value]) -> list[Value]:
        """The items as values of that schema, which has no place for nulls among other items."""
        if self.schema is None:
            return items
        if None in items:
            _refuse()
        return [float(item) for item in items] if self.schema in (FLOAT32, FLOAT64) else items


def _refuse() -> NoReturn:
    raise DataError("not a list or a map")


def _temporal(text: str) -> _Typed | None:
    plain = text.replace("\\:", ":")
    try:
        if _DATE.fullmatch(plain):
            return DATE, dt.date.fromisoformat(plain)
        if _TIME.fullmatch(plain):
            return TIME, dt.time.fromisoformat(plain[:-1])
        if _TIMESTAMP.fullmatch(plain):
            return TIMESTAMP, dt.datetime.fromisoformat(plain)
    except ValueError:
        return None
    return None


def _number(text: str) -> _Typed | None:
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    if not number:
        return INT8, 0
    is_short = number.adjusted() < _MOST_DIGITS_OF_INT64
    if is_short and number == (whole := int(number)) and (integer := _integer(whole)):
        return integer
    scale = -int(number.as_tuple().exponent)
    if scale:
        if (narrow := _as_float32(number)) is not None:
            return FLOAT32, narrow
        if math.isfinite(wide := float(number)):
            return FLOAT64, wide
    return decimal(scale), number


def _integer(value: int) -> _Typed | None:
    for schema, limit in _INTEGERS:
        if -limit <= value < limit:
            return schema, value
    return None


def _as_float32(number: Decimal) -> float | None:
    try:
        narrow: float = _PACKED_FLOAT.unpack(_PACKED_FLOAT.pack(float(number)))[0]
    except OverflowError:
        return None
    return narrow if math.isfinite(narrow) else None
