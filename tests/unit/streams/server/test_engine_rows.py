from decimal import Decimal

import pytest

from streams.model.types import parse_type
from streams.server.engine_rows import row_reader


@pytest.mark.parametrize(
    "kind,sent,value",
    [
        ("DECIMAL(20, 2)", "123456789012345678.50", Decimal("123456789012345678.50")),
        ("STRING", "1.50", "1.50"),
        ("ARRAY<DECIMAL(4, 2)>", ["1.50", None], [Decimal("1.50"), None]),
        ("MAP<STRING, DECIMAL(4, 2)>", {"1.50": "1.50"}, {"1.50": Decimal("1.50")}),
        ("STRUCT<`A` STRING, `B` ARRAY<DECIMAL(4, 2)>>", {"A": "1", "B": ["2.00"]}, {"A": "1", "B": [Decimal("2.00")]}),
        ("STRUCT<`A` STRING>", {"A": "1"}, {"A": "1"}),
        ("DECIMAL(4, 2)", None, None),
    ],
)
def test_decimals_keep_their_digits_wherever_they_are(kind: str, sent: object, value: object) -> None:
    assert row_reader([parse_type("STRING"), parse_type(kind)])(["1.50", sent]) == ["1.50", value]
