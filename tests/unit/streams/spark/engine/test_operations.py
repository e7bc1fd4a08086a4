import datetime as dt
import json
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import Row

from streams.spark.engine.operations import json_value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        ("text", "text"),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"\x00\xff", "00ff"),
        (bytearray(b"a"), "61"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC).replace(tzinfo=None), "2026-01-02T03:04:05.000006Z"),
        (dt.datetime(2026, 1, 2, tzinfo=ZoneInfo("Europe/Madrid")), "2026-01-02T00:00:00+01:00"),
        ([1, None, [b"a"]], [1, None, ["61"]]),
        ({"a": Decimal(1), 2: "b", dt.date(2026, 1, 2): 3}, {"a": "1", "2": "b", "2026-01-02": 3}),
        (Row(a=1, b=Row(c=[Decimal("0.5")])), {"a": 1, "b": {"c": ["0.5"]}}),
        (dt.timedelta(seconds=90), "0:01:30"),
    ],
)
def test_values_of_rows_can_be_said_in_json(value: object, shown: object) -> None:
    assert json_value(value) == shown
    json.dumps(json_value(value), allow_nan=False)


def test_what_is_nested_too_deeply_is_cut_short() -> None:
    value: list[object] = []
    for _ in range(10_000):
        value = [value]
    assert "…" in json.dumps(json_value(value), ensure_ascii=False)
