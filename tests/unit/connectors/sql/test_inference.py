from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from connect.api import data
from connect.api.data import Schema, Type
from connect.api.errors import DataError
from connectors.sql.column_types import ColumnType, Kind, from_values
from connectors.sql.inference import common_schema, schema_of


@pytest.mark.parametrize(
    "value, wanted",
    [
        (None, None),
        (True, data.OPTIONAL_BOOLEAN),
        (5, data.OPTIONAL_INT64),
        (2**70, data.decimal(0, optional=True)),
        (0.5, data.OPTIONAL_FLOAT64),
        ("x", data.OPTIONAL_STRING),
        (Decimal("1.50"), data.decimal(2, optional=True)),
        (datetime(2024, 1, 1, tzinfo=UTC), data.TIMESTAMP.as_optional()),
    ],
)
def test_a_value_tells_its_schema(value: Any, wanted: Schema | None) -> None:
    assert schema_of(value) == wanted


@pytest.mark.parametrize(
    "one, other, wanted",
    [
        (None, 5, Type.INT64),
        (5, 0.5, Type.FLOAT64),
        (5, "x", Type.STRING),
        (True, 5, Type.STRING),
        ({"a": 1}, [1], Type.MAP),
        ({"a": 1}, "x", Type.STRING),
    ],
)
def test_a_column_holds_what_all_records_have(one: Any, other: Any, wanted: Type) -> None:
    for pair in ((one, other), (other, one)):
        found = common_schema(schema_of(pair[0]), schema_of(pair[1]))
        assert found is not None
        assert found.type is wanted


def test_things_without_a_type_are_bad_data() -> None:
    with pytest.raises(DataError, match="object"):
        schema_of(object())


@pytest.mark.parametrize(
    "cells, kind",
    [
        ([1, None], Kind.INT64),
        ([1, 0.5], Kind.FLOAT64),
        ([b"x"], Kind.BYTES),
        ([1, "x"], Kind.TEXT),
        ([None], Kind.TEXT),
    ],
)
def test_cells_tell_the_type_of_a_column_that_has_none(cells: list[Any], kind: Kind) -> None:
    assert from_values(cells) == ColumnType(kind=kind)
