"""Mistakes in statements: what the message says, and which part of the text it is about."""

import pytest

from streams.errors import StatementError
from streams.functions.signature import Argument, Signature
from streams.sql.functions.user import user_functions
from tests.support.sql_catalog import KnownSources

SOURCES = (
    """CREATE STREAM S (K STRING KEY, A INT, B STRING, C DOUBLE, ARR ARRAY<INT>, M MAP<STRING, INT>)
    WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')""",
    "CREATE STREAM S2 (K STRING KEY, D INT) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON')",
    "CREATE TABLE T (ID STRING PRIMARY KEY, NAME STRING, N INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')",
    "CREATE TABLE T2 (ID INT PRIMARY KEY, NAME STRING) WITH (KAFKA_TOPIC='t2', VALUE_FORMAT='JSON')",
    "CREATE TABLE TWO (X INT PRIMARY KEY, Y INT PRIMARY KEY, Z INT) WITH (KAFKA_TOPIC='two', FORMAT='JSON')",
    """CREATE TABLE W (K STRING PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON',
    WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR')""",
    "CREATE TABLE COUNTS AS SELECT B, COUNT(*) AS N FROM S GROUP BY B",
    "CREATE SOURCE STREAM RO (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')",
)


@pytest.fixture(scope="module")
def catalog() -> KnownSources:
    return KnownSources(*SOURCES)


CASES = [
    ("CREATE STREAM X AS SELECT * FROM NOPE", "NOPE does not exist.", "NOPE"),
    ("CREATE STREAM X AS SELECT * FROM `counts`", 'Did you mean "COUNTS" (TABLE)?', "`counts`"),
    ("CREATE STREAM X AS SELECT K, AA FROM S", "SELECT column 'AA' cannot be resolved.", "AA"),
    ("CREATE STREAM X AS SELECT K, `a` FROM S", "Did you mean `A`?", "`a`"),
    ("CREATE STREAM X AS SELECT K, A FROM S WHERE Q = 1", "WHERE column 'Q' cannot be resolved.", "Q"),
    ("CREATE TABLE X AS SELECT B, COUNT(*) FROM S GROUP BY Q", "GROUP BY column 'Q' cannot be resolved.", "Q"),
    (
        "CREATE STREAM X AS SELECT K FROM S JOIN S2 WITHIN 1 HOUR ON S.K = S2.K",
        "column 'K' is ambiguous. Could be S.K or S2.K",
        "K",
    ),
    ("CREATE STREAM T AS SELECT K, A FROM S", "Cannot add stream 'T': A table with the same name already exists", "T"),
    ("CREATE STREAM X AS SELECT A FROM S", "Key missing from projection (ie, SELECT).", "A"),
    ("CREATE STREAM X AS SELECT K, K AS K2, A FROM S", "more than once", "K AS K2"),
    ("CREATE STREAM X AS SELECT K FROM S", "no value columns", "X"),
    ("CREATE TABLE X AS SELECT * FROM S", "Invalid result type. Your SELECT query produces a STREAM.", "X"),
    ("CREATE STREAM X AS SELECT * FROM T", "Please use CREATE TABLE AS SELECT", "X"),
    ("CREATE TABLE X AS SELECT B, A, COUNT(*) FROM S GROUP BY B", "Non-aggregate SELECT expression(s)", "A"),
    (
        "CREATE TABLE X AS SELECT B, COUNT(*) FROM S GROUP BY B HAVING A > 1",
        "Non-aggregate HAVING expression(s) not part of GROUP BY: A",
        "A",
    ),
    ("CREATE TABLE X AS SELECT B FROM S GROUP BY B", "GROUP BY requires aggregate functions", "B"),
    ("CREATE TABLE X AS SELECT COUNT(*) AS N FROM S GROUP BY B", "Key missing from projection", "COUNT(*) AS N"),
    ("CREATE TABLE X AS SELECT M, COUNT(*) FROM S GROUP BY M", "can be a key", "M"),
    (
        "CREATE TABLE X AS SELECT A, B, COUNT(*) FROM S GROUP BY A, B",
        "'KAFKA' format only supports a single field",
        "X",
    ),
    (
        "CREATE STREAM X AS SELECT S.K, A FROM S JOIN S2 ON S.K = S2.K",
        "must have a WITHIN clause",
        "JOIN S2 ON S.K = S2.K",
    ),
    ("CREATE STREAM X AS SELECT S.B, A FROM S JOIN T WITHIN 1 HOUR ON S.B = T.ID", "Stream-Table join", "1 HOUR"),
    ("CREATE STREAM X AS SELECT S.A, B FROM S JOIN T ON S.A = T.ID", "S.A{INTEGER} = T.ID{STRING}", "S.A = T.ID"),
    ("CREATE STREAM X AS SELECT S.B, A FROM S JOIN T ON S.B = T.NAME", "table's primary key", "S.B = T.NAME"),
    ("CREATE STREAM X AS SELECT S.A, B FROM S JOIN TWO ON S.A = TWO.X", "multiple keys", "S.A = TWO.X"),
    (
        "CREATE STREAM X AS SELECT S.B, A FROM S RIGHT JOIN T ON S.B = T.ID",
        "Use INNER or LEFT",
        "RIGHT JOIN T ON S.B = T.ID",
    ),
    (
        "CREATE STREAM X AS SELECT T.ID, A FROM T JOIN S ON T.ID = S.B",
        "stream has to be on the left",
        "JOIN S ON T.ID = S.B",
    ),
    (
        "CREATE STREAM X AS SELECT S.B, A FROM S JOIN T ON S.A + LEN(T.ID) = T.N",
        "exactly one source",
        "S.A + LEN(T.ID) = T.N",
    ),
    ("CREATE STREAM X AS SELECT P.K FROM S P JOIN S Q WITHIN 1 HOUR ON P.K = Q.K", "self joins", "S Q"),
    ("CREATE TABLE X AS SELECT * FROM W", "windowed tables", "W"),
    (
        "CREATE TABLE X AS SELECT NAME, MAX(N) FROM T GROUP BY NAME",
        "(MAX) cannot be applied to a table source",
        "MAX(N)",
    ),
    ("CREATE TABLE X AS SELECT ID, EXPLODE(ARRAY[N]) FROM T", "table functions", "EXPLODE(ARRAY[N])"),
    ("CREATE STREAM X AS SELECT * FROM T PARTITION BY NAME", "PARTITION BY is for streams", "NAME"),
    ("CREATE STREAM X AS SELECT K, FOO(A) FROM S", "Can't find any functions with the name 'FOO'", "FOO(A)"),
    (
        "CREATE STREAM X AS SELECT K, UCASE(A) FROM S",
        "Function 'UCASE' does not accept parameters (INTEGER).",
        "UCASE(A)",
    ),
    (
        "CREATE STREAM X AS SELECT K, A FROM S WHERE A = 'x'",
        "Cannot compare A (INTEGER) to 'x' (STRING) with EQUAL.",
        "A = 'x'",
    ),
    ("CREATE STREAM X AS SELECT K, A FROM S WHERE A + 1", "should evaluate to BOOLEAN", "A + 1"),
    ("CREATE STREAM X AS SELECT K, A + B AS Y FROM S", "Unsupported arithmetic types", "B"),
    ("CREATE STREAM X AS SELECT K, TRANSFORM(ARR, A => A) AS Y FROM S", "cannot be a lambda's parameter", "A"),
    ("CREATE STREAM X AS SELECT K, A->B FROM S", "INTEGER has no field", "A->B"),
    ("CREATE STREAM X AS SELECT K, CAST(A AS NOPE) AS Y FROM S", "Cannot resolve unknown type: NOPE", "NOPE"),
    (
        "CREATE STREAM X AS SELECT K, A FROM S WHERE ROWTIME > 'soon'",
        "Failed to parse timestamp 'soon'",
        "ROWTIME > 'soon'",
    ),
    ("CREATE STREAM X WITH (VALUE_FORMAT='DELIMITED') AS SELECT K, ARR FROM S", "does not support type 'ARRAY'", "X"),
    (
        "CREATE STREAM X WITH (KAFKA_TOPIC='t', PARTITIONS=9) AS SELECT K, A FROM S",
        "expects 9 partitions, got 2",
        "PARTITIONS=9",
    ),
    (
        "CREATE STREAM X WITH (WRAP_SINGLE_VALUE=FALSE) AS SELECT * FROM S",
        "WRAP_SINGLE_VALUE",
        "WRAP_SINGLE_VALUE=FALSE",
    ),
    (
        "CREATE STREAM X WITH (TIMESTAMP='Z') AS SELECT K, A FROM S",
        "does not exist in the schema: 'Z'",
        "TIMESTAMP='Z'",
    ),
    ("CREATE STREAM X WITH (TIMESTAMP='B') AS SELECT K, B FROM S", "should be LONG(INT64), TIMESTAMP", "TIMESTAMP='B'"),
    (
        "INSERT INTO T SELECT K AS ID, B AS NAME, A AS N FROM S",
        "INSERT INTO can only be used to insert into a stream",
        "T",
    ),
    ("INSERT INTO RO SELECT K, A FROM S", "read-only", "RO"),
    ("INSERT INTO S2 SELECT K, A FROM S", "Incompatible schema between results and sink", "S2"),
    ("INSERT INTO S2 SELECT K, C AS D FROM S", "`D` DOUBLE", "S2"),
]


@pytest.mark.parametrize(("text", "message", "part"), CASES, ids=lambda one: str(one)[:60])
def test_mistake_in_query(catalog: KnownSources, text: str, message: str, part: str) -> None:
    with pytest.raises(StatementError) as caught:
        catalog.create(text)
    assert message in caught.value.message
    assert text[caught.value.start : caught.value.end] == part


DECLARATIONS = [
    (
        "CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='new', VALUE_FORMAT='JSON')",
        "Topic 'new' does not exist.",
        "KAFKA_TOPIC='new'",
    ),
    ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='s')", "missing the 'VALUE_FORMAT' property", "X"),
    ("CREATE STREAM X (A NOPE) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')", "unknown type: NOPE", "NOPE"),
    (
        "CREATE TABLE S (A INT PRIMARY KEY, B INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')",
        "A stream with the same name",
        "S",
    ),
    ("CREATE OR REPLACE STREAM RO (A INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')", "SOURCE", "RO"),
    (
        "CREATE SOURCE STREAM X (A INT) WITH (KAFKA_TOPIC='new', VALUE_FORMAT='JSON')",
        "does not exist",
        "KAFKA_TOPIC='new'",
    ),
    (
        "CREATE TABLE X (A INT PRIMARY KEY, B INT) WITH (KAFKA_TOPIC='n', PARTITIONS=1, RETENTION_MS=5, FORMAT='JSON')",
        "not for tables",
        "RETENTION_MS=5",
    ),
    ("CREATE STREAM X (`__time` INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')", "reserved column name", "`__time`"),
    ("CREATE STREAM X (A MAP<INT, INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')", "MAP<INTEGER, INTEGER>", "X"),
    (
        "CREATE OR REPLACE STREAM S2 (K STRING KEY, D STRING) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON')",
        "Cannot upgrade data source",
        "S2",
    ),
]


@pytest.mark.parametrize(("text", "message", "part"), DECLARATIONS, ids=lambda one: str(one)[:60])
def test_mistake_in_declaration(catalog: KnownSources, text: str, message: str, part: str) -> None:
    with pytest.raises(StatementError) as caught:
        catalog.declare(text)
    assert message in caught.value.message
    assert text[caught.value.start : caught.value.end] == part


def test_name_that_is_taken_may_exist(catalog: KnownSources) -> None:
    declared = catalog.declare("CREATE STREAM IF NOT EXISTS S2 (A INT) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON')")
    planned = catalog.create("CREATE TABLE IF NOT EXISTS COUNTS AS SELECT * FROM T")
    assert declared.exists
    assert planned.exists
    assert planned.query.id
    assert "A stream with the same name already exists" in declared.warnings[0]


def test_pull_query_of_table_without_copy(catalog: KnownSources) -> None:
    with pytest.raises(StatementError, match="isn't queryable") as caught:
        catalog.pull("SELECT * FROM T")
    assert "CREATE TABLE QUERYABLE_T AS SELECT * FROM T" in caught.value.message


def test_record_columns_are_not_in_copies(catalog: KnownSources) -> None:
    with pytest.raises(StatementError, match="ROWOFFSET"):
        catalog.pull("SELECT ROWOFFSET FROM COUNTS")


@pytest.mark.parametrize("has_merge", [True, False])
def test_sessions_need_aggregates_that_merge(catalog: KnownSources, has_merge: bool) -> None:
    one = Signature(
        name="OWN", kind="aggregate", arguments=(Argument("x", "INTEGER"),), result="BIGINT", has_merge=has_merge
    )
    text = "CREATE TABLE X AS SELECT B, COUNT(*), OWN(A) FROM S WINDOW {} GROUP BY B"
    sessions = text.format("SESSION (1 MINUTE)")
    catalog.functions = user_functions([one])
    try:
        catalog.create(text.format("TUMBLING (SIZE 1 MINUTE)"))
        if has_merge:
            catalog.create(sessions)
            return
        with pytest.raises(StatementError, match="OWN cannot be used in session windows") as caught:
            catalog.create(sessions)
        assert sessions[caught.value.start : caught.value.end] == "OWN(A)"
    finally:
        catalog.functions = {}
