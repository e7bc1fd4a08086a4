"""Which queries may take the place of which."""

import pytest

from streams.sql.planning.replacing import check_replacement
from tests.support.sql_catalog import KnownSources

S = "CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')"
S2 = "CREATE STREAM S2 (K STRING KEY, A INT, B STRING) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON')"
PAIRS = [
    ("STREAM X AS SELECT K, A FROM S", "STREAM X AS SELECT K, A FROM S WHERE A > 1", ""),
    ("STREAM X AS SELECT K, A FROM S", "STREAM X AS SELECT K, A, B FROM S", ""),
    ("STREAM X AS SELECT K, A, B FROM S", "STREAM X AS SELECT K, A FROM S", "columns are missing: `B`"),
    ("STREAM X AS SELECT K, A, B FROM S", "STREAM X AS SELECT K, B, A FROM S", "reordered"),
    ("STREAM X AS SELECT K, A FROM S", "STREAM X AS SELECT K, B AS A FROM S", "changed"),
    ("STREAM X AS SELECT K, A FROM S", "STREAM X AS SELECT K, A FROM S2", "matching sources"),
    ("STREAM X AS SELECT K, A FROM S", "STREAM X AS SELECT A, K FROM S PARTITION BY A", "key columns"),
    ("STREAM X AS SELECT K, A FROM S", "STREAM X WITH (VALUE_FORMAT='AVRO') AS SELECT K, A FROM S", "value format"),
    (
        "TABLE X AS SELECT B, COUNT(*) AS N FROM S GROUP BY B",
        "TABLE X AS SELECT B, COUNT(*) AS N FROM S WHERE A > 1 GROUP BY B HAVING COUNT(*) > 2",
        "",
    ),
    (
        "TABLE X AS SELECT B, COUNT(*) AS N FROM S GROUP BY B",
        "TABLE X AS SELECT B, COUNT(*) AS N, MAX(A) AS M FROM S GROUP BY B",
        "GROUP BY and aggregates",
    ),
    (
        "TABLE X AS SELECT UCASE(B) AS B, COUNT(*) AS N FROM S GROUP BY UCASE(B)",
        "TABLE X AS SELECT LCASE(B) AS B, COUNT(*) AS N FROM S GROUP BY LCASE(B)",
        "GROUP BY and aggregates",
    ),
    (
        "TABLE X AS SELECT B, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY B",
        "TABLE X AS SELECT B, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOUR) WHERE A > 1 GROUP BY B",
        "Upgrades not yet supported",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason"), PAIRS)
def test_replacement(old: str, new: str, reason: str) -> None:
    catalog = KnownSources(S, S2)
    one, other = catalog.create(f"CREATE {old}"), catalog.create(f"CREATE {new}")
    found = check_replacement(one.query, other.query, one.sink, other.sink)
    assert found.fits == (not reason), found.reasons
    assert reason in " ".join(found.reasons)
