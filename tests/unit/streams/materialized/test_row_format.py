from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from streams.materialized.errors import CopyDamaged
from streams.materialized.row_format import RowFormat
from streams.materialized.store import StoredRow
from streams.model.sources import Column
from tests.support.materialized_tables import table

EVERY = {
    "BOOLEAN": True,
    "INTEGER": -7,
    "BIGINT": 1 << 62,
    "DOUBLE": 2.5,
    "DECIMAL(40, 2)": Decimal("12345678901234567890123456789012345678.90"),
    "STRING": "ünï",
    "BYTES": b"\x00\xff",
    "TIME": time(1, 2, 3, 4000),
    "DATE": date(2026, 2, 28),
    "TIMESTAMP": datetime(2026, 2, 28, 1, 2, 3, 4000, tzinfo=UTC),
    "ARRAY<DOUBLE>": [1.0, None],
    "MAP<STRING, BYTES>": {"a": b"1", "b": None},
    "MAP<INTEGER, DATE>": {1: date(2026, 1, 1)},
    "STRUCT<`a b` INTEGER, `C` STRUCT<`D` DECIMAL(4, 1)>>": {"a b": 1, "C": {"D": Decimal("1.5")}},
    "ARRAY<STRUCT<`T` TIME>>": [{"T": time(1)}, None],
}


def test_values_of_every_type_are_read_as_they_were_written() -> None:
    columns = tuple(Column(f"C{number}", kind) for number, kind in enumerate(EVERY))
    form = RowFormat(table(value=columns))
    record = {"WORD": "a", **{column.name: value for column, value in zip(columns, EVERY.values(), strict=True)}}

    row = form.row_of(StoredRow(form.key_of(record), 0, 0, 5, form.data(record)))

    assert row == ("a", *EVERY.values(), 5, 0, 0)
    assert form.names[-3:] == ("ROWTIME", "WINDOWSTART", "WINDOWEND")


def test_nulls_of_every_type_are_nulls() -> None:
    columns = tuple(Column(f"C{number}", kind) for number, kind in enumerate(EVERY))
    form = RowFormat(table(value=columns))
    record = {"WORD": None, **{column.name: None for column in columns}}

    assert form.row_of(StoredRow(b"k", 0, 0, 0, form.data(record)))[:-3] == (None,) * (len(EVERY) + 1)


@pytest.mark.parametrize(
    ("kind", "one", "same"),
    [
        ("DOUBLE", 1, 1.0),
        ("DECIMAL(5, 2)", Decimal("1.00"), Decimal(1)),
        (
            "DECIMAL(40, 2)",
            Decimal("12345678901234567890123456789012345678.90"),
            Decimal("12345678901234567890123456789012345678.9"),
        ),
        ("STRUCT<`A` INTEGER, `B` DOUBLE>", {"A": 1, "B": 2.0}, {"B": 2, "A": 1}),
        ("STRUCT<`A` INTEGER, `B` DOUBLE>", {"A": 1}, {"B": None, "A": 1}),
        ("MAP<STRING, DOUBLE>", {"a": 1, "b": None}, {"b": None, "a": 1.0}),
        ("ARRAY<DECIMAL(3, 1)>", [Decimal("1.0"), None], [Decimal(1), None]),
    ],
)
def test_equal_values_have_the_same_key(kind: str, one: object, same: object) -> None:
    form = RowFormat(table(key=(Column("K", kind), Column("L", "STRING"))))

    assert form.key([one, "x"]) == form.key([same, "x"])
    assert form.key([one, "x"]) != form.key([one, "y"])
    assert form.key([one, "x"]) != form.key([None, "x"])


def test_bytes_of_other_columns_are_damage() -> None:
    form = RowFormat(table())

    for data in (b"\xc1", form.key(["only one"]), form.key(["a", "no number"])):
        with pytest.raises(CopyDamaged):
            form.row_of(StoredRow(b"k", 0, 0, 0, data))
