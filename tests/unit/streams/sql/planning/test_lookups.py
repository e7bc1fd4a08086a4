"""Which pull queries the copy of a table answers, and what is looked for in it."""

from typing import Any

import msgspec
import pytest

from tests.support.sql_catalog import KnownSources

SOURCES = (
    """CREATE STREAM S (K STRING KEY, A INT, B STRING, R STRUCT<F STRUCT<G INT>>)
    WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')""",
    "CREATE TABLE C AS SELECT B, COUNT(*) AS N, AVG(A) AS M, LATEST_BY_OFFSET(R) AS R FROM S GROUP BY B",
    """CREATE TABLE W AS SELECT B, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY B""",
    """CREATE TABLE P WITH (KEY_FORMAT='JSON') AS SELECT A, B, COUNT(*) AS N FROM S GROUP BY A, B""",
)


@pytest.fixture(scope="module")
def catalog() -> KnownSources:
    return KnownSources(*SOURCES)


def read(value: Any) -> Any:
    return msgspec.json.decode(value)


LOOKUPS: list[tuple[str, Any, list[tuple[str, str, Any]]]] = [
    ("SELECT * FROM C", None, []),
    ("SELECT * FROM C WHERE B = 'x'", [["x"]], []),
    ("SELECT * FROM C WHERE 'x' = B AND N > 3", [["x"]], [("N", ">", 3)]),
    ("SELECT * FROM C WHERE 3 < N", None, [("N", ">", 3)]),
    ("SELECT * FROM C WHERE B IN ('x', 'y', 'x', NULL)", [["x"], ["y"]], []),
    ("SELECT * FROM C WHERE B = 'x' OR B = 'y'", [["x"], ["y"]], []),
    ("SELECT * FROM C WHERE B = 'x' AND B = 'y'", [["x"]], [("B", "=", "y")]),
    ("SELECT * FROM C WHERE B >= 'x' AND M < 2", None, [("B", ">=", "x"), ("M", "<", 2.0)]),
    ("SELECT * FROM C WHERE N IS NOT NULL", None, [("N", "IS NOT NULL", None)]),
    ("SELECT * FROM C WHERE N BETWEEN 1 AND 2", None, [("N", ">=", 1), ("N", "<=", 2)]),
    ("SELECT * FROM P WHERE B = 'x' AND A = 2", [[2, "x"]], []),
    ("SELECT * FROM P WHERE A IN (1, 2) AND B IN ('x', 'y')", [[1, "x"], [1, "y"], [2, "x"], [2, "y"]], []),
    (
        "SELECT * FROM W WHERE B = 'x' AND WINDOWSTART >= '1970-01-01T00:00:01' AND WINDOWEND < 5",
        [["x"]],
        [("WINDOWSTART", ">=", 1000), ("WINDOWEND", "<", 5)],
    ),
]


@pytest.mark.parametrize(("text", "keys", "filters"), LOOKUPS, ids=lambda one: str(one)[:60])
def test_lookup(catalog: KnownSources, text: str, keys: Any, filters: list[tuple[str, str, Any]]) -> None:
    found = catalog.pull(text).lookup
    assert found is not None
    assert (None if found.keys is None else [[read(part) for part in key] for key in found.keys]) == keys
    assert [(one.column, one.operator, read(one.literal)) for one in found.filters] == filters


def test_outputs(catalog: KnownSources) -> None:
    plan = catalog.pull("SELECT R->F->G AS G, B, ROWTIME FROM C WHERE B = 'x' LIMIT 3")
    assert plan.lookup is not None
    assert [(one.name, one.path) for one in plan.lookup.outputs] == [
        ("G", ("R", "F", "G")),
        ("B", ("B",)),
        ("ROWTIME", ("ROWTIME",)),
    ]
    assert (plan.limit, plan.lookup.limit, plan.key_columns) == (3, 3, 0)
    assert [column.type for column in plan.columns] == ["INTEGER", "STRING", "BIGINT"]
    assert catalog.pull("SELECT * FROM P").key_columns == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT UCASE(B) AS U FROM C",
        "SELECT * FROM C WHERE N = 1 OR B = 'x'",
        "SELECT * FROM C WHERE NOT (N = 1)",
        "SELECT * FROM C WHERE N = M",
        "SELECT * FROM C WHERE LEN(B) = 2",
        "SELECT * FROM P WHERE A = 2",
        "SELECT COUNT(*) AS X FROM C",
        "SELECT N, COUNT(*) AS X FROM C GROUP BY N",
        "SELECT C.B, W.N FROM C JOIN W ON C.B = W.B",
        "SELECT * FROM S",
    ],
)
def test_rest_is_for_spark(catalog: KnownSources, text: str) -> None:
    plan = catalog.pull(text)
    assert plan.lookup is None
    assert plan.sql is not None


def test_many_keys_are_a_scan(catalog: KnownSources) -> None:
    numbers = ", ".join(map(str, range(2000)))
    assert catalog.pull(f"SELECT * FROM P WHERE A IN ({numbers}) AND B = 'x'").sql is not None
