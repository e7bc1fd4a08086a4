"""What functions return becomes values of their types, or is refused."""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from streams.functions.conversion import checked, from_arrow
from streams.model.types import parse_type


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("BOOLEAN", True, True),
        ("INTEGER", -(2**31), -(2**31)),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", Decimal("0.5"), 0.5),
        ("STRING", "", ""),
        ("BYTES", bytearray(b"x"), b"x"),
        ("DECIMAL(4, 1)", Decimal("123.45"), Decimal("123.4")),
        ("DECIMAL(4, 1)", 7, Decimal("7.0")),
        ("TIME", time(1, 2, 3, 4567), time(1, 2, 3, 4000)),
        ("DATE", date(2024, 1, 1), date(2024, 1, 1)),
        ("TIMESTAMP", datetime(2024, 1, 1, 0, 0, 0, 1999), datetime(2024, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)),  # noqa: DTZ001
        (
            "TIMESTAMP",
            datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
        ("ARRAY<INTEGER>", (one for one in (1, None)), [1, None]),
        ("MAP<STRING, ARRAY<DOUBLE>>", {"x": (1,)}, {"x": [1.0]}),
        ("STRUCT<`a` INTEGER, `b` STRING>", {"a": 1, "c": 2}, {"a": 1, "b": None}),
    ],
)
def test_values_of_the_type(kind: str, given: Any, expected: object) -> None:
    found = checked(parse_type(kind))(given)
    assert (found, type(found)) == (expected, type(expected))
    assert checked(parse_type(kind))(None) is None


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("BOOLEAN", 1),
        ("INTEGER", 2**31),
        ("INTEGER", True),
        ("INTEGER", 1.0),
        ("INTEGER", "1"),
        ("BIGINT", 2**63),
        ("DOUBLE", "1"),
        ("DOUBLE", True),
        ("STRING", 1),
        ("STRING", b"x"),
        ("BYTES", "x"),
        ("DECIMAL(4, 1)", 1000),
        ("DECIMAL(4, 1)", 0.5),
        ("TIME", 1),
        ("DATE", datetime(2024, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP", date(2024, 1, 1)),
        ("ARRAY<STRING>", "abc"),
        ("ARRAY<INTEGER>", 1),
        ("MAP<STRING, STRING>", [("a", "b")]),
        ("STRUCT<`a` INTEGER>", 1),
        ("ARRAY<INTEGER>", ["x"]),
    ],
)
def test_other_values_are_refused(kind: str, given: Any) -> None:
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        checked(parse_type(kind))(given)


def test_numbers_of_numpy() -> None:
    import numpy as np

    assert checked(parse_type("BIGINT"))(np.int64(5)) == 5
    assert math.isclose(checked(parse_type("DOUBLE"))(np.float32(0.5)), 0.5)


def test_maps_of_arrow_are_lists_of_pairs() -> None:
    kind = parse_type("ARRAY<STRUCT<`m` MAP<STRING, MAP<STRING, INTEGER>>, `s` STRING>>")
    given = [{"m": [("a", [("b", 1)]), ("c", None)], "s": "x"}, None]
    assert from_arrow(kind)(given) == [{"m": {"a": {"b": 1}, "c": None}, "s": "x"}, None]
    assert from_arrow(kind)(None) is None
