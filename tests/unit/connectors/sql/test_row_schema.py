from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connect.api import data
from connect.api.data import Schema
from connect.api.errors import DataError
from connect.testing.samples import mismatches
from connectors.sql.column_types import ColumnType, Kind
from connectors.sql.row_schema import ReadColumn, Reading, RowSchema

MADRID = Reading(family="postgresql", zone=ZoneInfo("Europe/Madrid"))
SQLITE = Reading(family="sqlite")
TEN = datetime(2024, 7, 1, 10, tzinfo=UTC)
NOON = datetime(2024, 7, 1, 12)  # noqa: DTZ001


def read(type_: ColumnType, cell: Any, reading: Reading = MADRID) -> tuple[Schema, Any]:
    schema = RowSchema([ReadColumn(name="x", type=type_, is_nullable=False)], reading)
    value = schema.value((cell, "a column of ours"))
    assert list(mismatches(schema.schema, value)) == []
    return schema.schema.by_name["x"], value["x"]


@pytest.mark.parametrize(
    "type_, cell, wanted",
    [
        (ColumnType(kind=Kind.INT16), 5, (data.INT16, 5)),
        (ColumnType(kind=Kind.TIMESTAMP), NOON, (data.TIMESTAMP, TEN)),
        (ColumnType(kind=Kind.INSTANT), TEN.astimezone(ZoneInfo("Asia/Tokyo")), (data.TIMESTAMP, TEN)),
        (ColumnType(kind=Kind.DATE), date(2024, 2, 29), (data.DATE, date(2024, 2, 29))),
        (ColumnType(kind=Kind.TIME), timedelta(hours=1), (data.TIME, time(1))),
        (ColumnType(kind=Kind.DECIMAL, precision=5, scale=2), Decimal(1), (data.decimal(2), Decimal("1.00"))),
        (ColumnType(kind=Kind.JSON), '{"a":1}', (data.STRING, '{"a":1}')),
        (
            ColumnType(kind=Kind.ARRAY, items=ColumnType(kind=Kind.DATE)),
            [date(2024, 1, 1), None],
            (data.array(data.DATE.as_optional()), [date(2024, 1, 1), None]),
        ),
    ],
)
def test_columns_and_their_values(type_: ColumnType, cell: Any, wanted: tuple[Schema, Any]) -> None:
    assert read(type_, cell) == wanted


@pytest.mark.parametrize(
    "kind, cell, wanted",
    [
        (Kind.INT64, "5", 5),
        (Kind.FLOAT64, 5, 5.0),
        (Kind.BOOLEAN, 1, True),
        (Kind.TEXT, 5, "5"),
        (Kind.BYTES, "é", "é".encode()),
        (Kind.DECIMAL, 1.5, 1.5),
        (Kind.TIMESTAMP, "2024-07-01 10:00:00", TEN),
        (Kind.TIMESTAMP, 1_719_828_000_000, TEN),
        (Kind.DATE, "2024-07-01", date(2024, 7, 1)),
    ],
)
def test_columns_of_sqlite_hold_anything(kind: Kind, cell: Any, wanted: Any) -> None:
    assert read(ColumnType(kind=kind), cell, SQLITE)[1] == wanted


@pytest.mark.parametrize(
    "granularity, schema, wanted",
    [
        ("connect_logical", data.TIMESTAMP, TEN),
        ("nanos_long", data.INT64, 1_719_828_000_000_000_000),
        ("nanos_string", data.STRING, "1719828000000000000"),
        ("nanos_iso_datetime_string", data.STRING, "2024-07-01T10:00:00.000000000"),
    ],
)
def test_moments_are_told_as_the_operator_wants(granularity: str, schema: Schema, wanted: Any) -> None:
    reading = Reading(family="postgresql", granularity=granularity)
    assert read(ColumnType(kind=Kind.INSTANT), TEN, reading) == (schema, wanted)


@pytest.mark.parametrize(
    "mapping, precision, scale, wanted",
    [
        ("none", 4, 0, data.decimal(0)),
        ("best_fit", 2, 0, data.INT8),
        ("best_fit", 4, 0, data.INT16),
        ("best_fit", 9, 0, data.INT32),
        ("best_fit", 18, 0, data.INT64),
        ("best_fit", 19, 0, data.decimal(0)),
        ("best_fit", 10, 2, data.FLOAT64),
        ("best_fit", 25, 2, data.decimal(2)),
        ("best_fit_eager_double", 25, 2, data.FLOAT64),
        ("best_fit_eager_double", 25, 0, data.decimal(0)),
        ("precision_only", 10, 2, data.decimal(2)),
        ("precision_only", 10, 0, data.INT64),
        ("none", None, None, data.decimal(38)),
    ],
)
def test_decimals(mapping: str, precision: int | None, scale: int | None, wanted: Schema) -> None:
    column = ReadColumn(
        name="x", type=ColumnType(kind=Kind.DECIMAL, precision=precision, scale=scale), is_nullable=False
    )
    reading = Reading(family="postgresql", numeric_mapping=mapping)
    assert RowSchema([column], reading).schema.by_name["x"] == wanted


@pytest.mark.parametrize(
    "type_, cell",
    [
        (ColumnType(kind=Kind.TIME), timedelta(hours=25)),
        (ColumnType(kind=Kind.DECIMAL, scale=1), Decimal("1.25")),
        (ColumnType(kind=Kind.DECIMAL, scale=1), Decimal("NaN")),
    ],
)
def test_what_does_not_fit_is_bad_data_and_the_column_is_named(type_: ColumnType, cell: Any) -> None:
    with pytest.raises(DataError, match="column x"):
        read(type_, cell)
