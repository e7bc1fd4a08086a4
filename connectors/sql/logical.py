"""Logical types that databases have columns for: Kafka Connect's and Debezium's."""

from enum import Enum, auto
from typing import Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type

NESTED: Final = frozenset((Type.ARRAY, Type.MAP, Type.STRUCT))


class Logical(Enum):
    """The meaning of a value, beyond its type."""

    DECIMAL = auto()
    VARIABLE_DECIMAL = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    MICRO_TIMESTAMP = auto()
    INSTANT = auto()
    JSON = auto()
    UUID = auto()


_NAMES: Final = {
    DECIMAL_NAME: Logical.DECIMAL,
    DATE_NAME: Logical.DATE,
    TIME_NAME: Logical.TIME,
    TIMESTAMP_NAME: Logical.TIMESTAMP,
    "io.debezium.time.Date": Logical.DATE,
    "io.debezium.time.Time": Logical.TIME,
    "io.debezium.time.MicroTime": Logical.TIME,
    "io.debezium.time.NanoTime": Logical.TIME,
    "io.debezium.time.Timestamp": Logical.TIMESTAMP,
    "io.debezium.time.MicroTimestamp": Logical.MICRO_TIMESTAMP,
    "io.debezium.time.NanoTimestamp": Logical.MICRO_TIMESTAMP,
    "io.debezium.time.ZonedTimestamp": Logical.INSTANT,
    "io.debezium.data.Json": Logical.JSON,
    "io.debezium.data.Uuid": Logical.UUID,
    "io.debezium.data.VariableScaleDecimal": Logical.VARIABLE_DECIMAL,
}


def logical_of(schema: Schema) -> Logical | None:
    """The logical type of a schema, by its name; None when it has none that databases know."""
    return _NAMES.get(schema.name) if schema.name else None
