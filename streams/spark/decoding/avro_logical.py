"""Logical types of Avro as Connect's converter understands them: by Avro's own word, or by what Connect once wrote."""

from typing import Any, Final, NamedTuple

import pyarrow as pa

from schema_registry.formats.avro_types import Fixed, Primitive, Type, Union
from streams.spark.decoding.decimals import decimal_type
from streams.spark.decoding.reading import NoColumns

CONNECT: Final = "connect."
"""How properties begin that tell in Avro what only Connect knows."""
DATE, TIME, TIMESTAMP, DECIMAL = (
    f"org.apache.kafka.connect.data.{name}" for name in ("Date", "Time", "Timestamp", "Decimal")
)

_KINDS: Final = {DATE: ("int",), TIME: ("int",), TIMESTAMP: ("long",), DECIMAL: ("bytes", "fixed")}
_WORDS: Final = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("bytes", "decimal"): DECIMAL,
    ("fixed", "decimal"): DECIMAL,
}
_UNTOLD_PRECISION: Final = 64
"""What the converter writes for decimals that do not tell it."""
_PARAMETERS: Final = CONNECT + "parameters"
_PRECISION: Final = "connect.decimal.precision"


class Logical(NamedTuple):
    """What a type means; without a name it means what it is."""

    name: str | None
    precision: int | None = None
    scale: int = 0

    @property
    def decimal_type(self) -> pa.DataType:
        """The column's type; raises NoColumns where there is none."""
        return decimal_type(self.precision, self.scale)


def check(type_: Type) -> None:
    """Raise NoColumns where the converter refuses what Connect's properties say."""
    if isinstance(type_, Union):
        return
    properties = type_.properties
    parameters = properties.get(_PARAMETERS)
    is_right = parameters is None or (
        isinstance(parameters, dict) and all(isinstance(value, str) for value in parameters.values())
    )
    name, version = properties.get(CONNECT + "name"), properties.get(CONNECT + "version")
    if not (is_right and isinstance(name, str | None) and isinstance(version, int | None)):
        raise NoColumns("the Avro schema has properties of Connect that make no sense")
    small = properties.get(CONNECT + "type")
    is_small = type_.kind == "int" and small is not None and properties.get("logicalType") is None
    if is_small and small not in ("int8", "int16"):
        raise NoColumns(f"Connect type annotation for Avro int field is {small!r}, not int8 or int16")


def of(type_: Primitive | Fixed) -> Logical:
    """What a type means."""
    properties = type_.properties
    own = _WORDS.get((type_.kind, str(properties.get("logicalType"))))
    name = own or properties.get(CONNECT + "name")
    if name not in _KINDS:
        return Logical(None)
    if type_.kind not in _KINDS[name]:
        raise NoColumns(f"no {name} is stored as {type_.kind}")
    return _decimal(type_, is_avros_own=own is not None) if name == DECIMAL else Logical(name)


def _decimal(type_: Primitive | Fixed, *, is_avros_own: bool) -> Logical:
    properties = type_.properties
    told: dict[str, Any] = {}
    if is_avros_own:
        scale, precision = properties.get("scale"), properties.get("precision")
        if not isinstance(precision, int | None):
            raise NoColumns("precision property must be a JSON Integer.")
        told["scale"] = scale if isinstance(scale, int) else 0
        if precision is not None and precision != _UNTOLD_PRECISION:
            told[_PRECISION] = precision
    told.update(properties.get(_PARAMETERS) or {})
    try:
        digits = told.get(_PRECISION)
        return Logical(DECIMAL, None if digits is None else int(digits), int(told["scale"]))
    except (KeyError, ValueError):
        raise NoColumns("a Decimal must tell its scale, and both that and its precision as numbers") from None
