from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connect.api import data
from connect.api.data import Schema
from connect.api.errors import DataError
from connectors.sql.binding import encoder
from connectors.sql.column_types import ColumnType, Kind

TEN = datetime(2024, 7, 1, 10, tzinfo=UTC)
MADRID = ZoneInfo("Europe/Madrid")


def bound(kind: Kind, value: Any, *, schema: Schema | None = None, family: str = "postgresql") -> Any:
    write = encoder(schema, ColumnType(kind=kind), family=family, zone=MADRID)
    return value if write is None else write(value)


@pytest.mark.parametrize(
    "kind, value, wanted",
    [
        (Kind.TEXT, 1.5, "1.5"),
        (Kind.TEXT, True, "true"),
        (Kind.TEXT, {"a": [1]}, '{"a":[1]}'),
        (Kind.TEXT, TEN, "2024-07-01T10:00:00+00:00"),
        (Kind.INT32, True, 1),
        (Kind.INT32, 3.0, 3),
        (Kind.INT64, TEN, 1_719_828_000_000),
        (Kind.DECIMAL, False, 0),
        (Kind.BOOLEAN, 1, True),
        (Kind.BYTES, "é", "é".encode()),
        (Kind.DATE, "2024-02-29T10:00:00Z", date(2024, 2, 29)),
        (Kind.DATE, 19_905, date(2024, 7, 1)),
        (Kind.TIME, 3_723_000, time(1, 2, 3)),
        (Kind.TIME, "01:02:03", time(1, 2, 3)),
        (Kind.TIMESTAMP, TEN, datetime(2024, 7, 1, 12)),  # noqa: DTZ001
        (Kind.TIMESTAMP, 1_719_828_000_000, datetime(2024, 7, 1, 12)),  # noqa: DTZ001
        (Kind.TIMESTAMP, "2024-07-01T10:00:00Z", datetime(2024, 7, 1, 12)),  # noqa: DTZ001
        (Kind.TIMESTAMP, "2024-07-01 10:00:00", datetime(2024, 7, 1, 10)),  # noqa: DTZ001
        (Kind.INSTANT, TEN, TEN),
        (Kind.INSTANT, "2024-07-01 12:00:00", TEN),
        (Kind.JSON, {"a": None}, '{"a":null}'),
        (Kind.JSON, '{"a": 1}', '{"a": 1}'),
        (Kind.JSON, "plain text", '"plain text"'),
        (Kind.UNKNOWN, [1], "[1]"),
    ],
)
def test_what_a_column_takes(kind: Kind, value: Any, wanted: Any) -> None:
    assert bound(kind, value) == wanted


@pytest.mark.parametrize(
    "kind, value, wanted",
    [
        (Kind.DECIMAL, Decimal("1.50"), "1.50"),
        (Kind.DECIMAL, TEN, 1_719_828_000_000),
        (Kind.DECIMAL, date(1970, 1, 2), 86_400_000),
        (Kind.DECIMAL, time(0, 0, 1), 1000),
        (Kind.TIMESTAMP, TEN, "2024-07-01 12:00:00"),
        (Kind.DATE, date(2024, 2, 29), "2024-02-29"),
        (Kind.UNKNOWN, {"a": 1}, '{"a":1}'),
    ],
)
def test_sqlite_has_numbers_and_text_only(kind: Kind, value: Any, wanted: Any) -> None:
    assert bound(kind, value, family="sqlite") == wanted


@pytest.mark.parametrize(
    "name, schema, value, kind, wanted",
    [
        ("io.debezium.time.Date", data.INT32, 19_905, Kind.DATE, date(2024, 7, 1)),
        ("io.debezium.time.MicroTime", data.INT64, 1_000_001, Kind.TIME, time(0, 0, 1, 1)),
        (
            "io.debezium.time.MicroTimestamp",
            data.INT64,
            1_719_828_000_000_001,
            Kind.INSTANT,
            TEN.replace(microsecond=1),
        ),
        ("io.debezium.time.ZonedTimestamp", data.STRING, "2024-07-01T10:00:00Z", Kind.INSTANT, TEN),
        (
            "io.debezium.data.VariableScaleDecimal",
            data.struct({"scale": data.INT32, "value": data.BYTES}),
            {"scale": 2, "value": b"\x00\x96"},
            Kind.DECIMAL,
            Decimal("1.50"),
        ),
    ],
)
def test_debeziums_types_are_understood(name: str, schema: Schema, value: Any, kind: Kind, wanted: Any) -> None:
    assert bound(kind, value, schema=schema.but(name=name)) == wanted


@pytest.mark.parametrize(
    "schema, kind",
    [(data.STRING, Kind.TEXT), (data.INT32, Kind.INT64), (data.BYTES, Kind.BYTES), (data.INT8, Kind.DECIMAL)],
)
def test_values_that_fit_go_as_they_are(schema: Schema, kind: Kind) -> None:
    assert encoder(schema, ColumnType(kind=kind), family="postgresql", zone=UTC) is None


@pytest.mark.parametrize(
    "kind, value",
    [
        (Kind.INT32, {"a": 1}),
        (Kind.FLOAT64, [1]),
        (Kind.BOOLEAN, 2),
        (Kind.BYTES, 1.5),
        (Kind.TIMESTAMP, True),
        (Kind.TIMESTAMP, {"a": 1}),
        (Kind.DATE, 1.5),
    ],
)
def test_what_a_column_cannot_take_is_bad_data(kind: Kind, value: Any) -> None:
    with pytest.raises(DataError):
        bound(kind, value)


def test_items_of_arrays_are_bound_one_by_one() -> None:
    column = ColumnType(kind=Kind.ARRAY, items=ColumnType(kind=Kind.TIMESTAMP))
    write = encoder(None, column, family="postgresql", zone=UTC)
    assert write is not None
    assert write([0, None]) == [datetime(1970, 1, 1), None]  # noqa: DTZ001
