"""Rows of a CSV file as structs: their columns and types."""

import base64
import binascii
import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connectors.file.config import DirectorySourceConfig


class RowReader(NamedTuple):
    """The schema of rows, and a function that makes a struct of a row; raises DataError."""

    schema: Schema
    read: Callable[[list[str]], Value]


def column_reader(names: Sequence[str], config: DirectorySourceConfig) -> RowReader:
    """The reader of rows of these columns; DataError if names and types do not fit together."""
    pairs = (pair.rpartition(":") for pair in config.csv_types)
    kinds = {name: kind for name, _, kind in pairs}
    if missing := [name for name in kinds if name not in names]:
        raise DataError(f"csv.types names columns that are not there: {', '.join(missing)}; there are {list(names)}")
    schema = data.struct([data.Field(name, _schema(kinds.get(name, "string")).as_optional()) for name in names])
    null = config.csv_null
    typed = [(name, _READ[kind.partition("(")[0]]) for name, kind in kinds.items() if kind != "string"]

    def read(row: list[str]) -> Value:
        if len(row) != len(names):
            raise DataError(f"a row has {len(row)} values, but there are {len(names)} columns")
        struct: dict[str, Value] = {name: None if text == null else text for name, text in zip(names, row, strict=True)}
        for name, parse in typed:
            if struct[name] is not None:
                struct[name] = _parse(name, struct[name], parse, schema.by_name[name])
        return struct

    return RowReader(schema, read)


def _parse(name: str, text: str, parse: Callable[[str, Schema], Value], schema: Schema) -> Value:
    try:
        return parse(text.strip(), schema)
    except (ValueError, InvalidOperation, OverflowError) as error:
        kind = schema.name.rpartition(".")[2] if schema.name else schema.type
        raise DataError(f"{text!r} in the column {name} is not a valid {kind}") from error


def _schema(kind: str) -> Schema:
    if kind.startswith("decimal("):
        return data.decimal(int(kind[8:-1]))
    logical = {"date": data.DATE, "time": data.TIME, "timestamp": data.TIMESTAMP}
    return logical.get(kind) or Schema(data.Type(kind))


def _whole_number(text: str, schema: Schema) -> int:
    number, bits = int(text), int(schema.type.removeprefix("int"))
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(text)
    return number


def _boolean(text: str, _: Schema) -> bool:
    try:
        return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def _decimal(text: str, schema: Schema) -> Decimal:
    scale = int(schema.parameters["scale"])
    number = Decimal(text)
    scaled = number.quantize(Decimal((0, (1,), -scale)))
    if scaled != number:
        raise ValueError(text)
    return scaled


def _timestamp(text: str, _: Schema) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _bytes(text: str, _: Schema) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


_READ: Final[dict[str, Callable[[str, Schema], Value]]] = {
    "int8": _whole_number,
    "int16": _whole_number,
    "int32": _whole_number,
    "int64": _whole_number,
    "float32": lambda text, _: float(text),
    "float64": lambda text, _: float(text),
    "boolean": _boolean,
    "decimal": _decimal,
    "date": lambda text, _: dt.date.fromisoformat(text),
    "time": lambda text, _: dt.time.fromisoformat(text),
    "timestamp": _timestamp,
    "bytes": _bytes,
}
