"""One text for each rule; the most frequent mistakes are in test_script_mistakes.py."""

import pytest

from streams.sql.language.script import read_script

WITH = "WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON')"


def messages(text: str) -> str:
    (read,) = read_script(text)
    assert read.statement is not None, read.problems
    return "\n".join(problem.message for problem in read.problems)


@pytest.mark.parametrize(
    "columns, said",
    [
        ("a INT, b MAP<STRING, INT> KEY", "A key cannot hold a MAP"),
        ("a ARRAY<STRUCT<f MAP<STRING, INT>>> KEY", "A key cannot hold a MAP"),
        ("h STRING HEADERS", "A HEADERS column has the type"),
        ("h STRING HEADER('x')", "A HEADER('key') column has the type BYTES"),
        ("h BYTES HEADER('x'), i BYTES HEADER('x')", "Header 'x' has a column already"),
        (
            "h ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, i ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS",
            "One HEADERS column holds all headers",
        ),
        ("h ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, i BYTES HEADER('x')", "One HEADERS column holds all"),
        ("a STRUCT<f INT, g INT, f STRING>", "Field F occurs twice"),
        ("a DECIMAL(10, 11)", "The scale of DECIMAL(10, ...) is between 0 and 10, not 11"),
        ("a DECIMAL(10, -1)", "not -1"),
        ("a DECIMAL(0, 0)", "not 0"),
        ("windowstart BIGINT", "WINDOWSTART is a column that Caudal adds itself"),
        ("a ARRAY<LONG>", "Write BIGINT"),
        ("a INT, `A` STRING", "Column A is declared twice"),
    ],
)
def test_columns(columns: str, said: str) -> None:
    assert said in messages(f"CREATE STREAM s ({columns}) {WITH};")


@pytest.mark.parametrize(
    "properties, said",
    [
        ("CLEANUP_POLICY = 'compact'", "CLEANUP_POLICY cannot be set"),
        ("QUERY_ID = 'x'", "QUERY_ID cannot be set here, only in INSERT INTO ... SELECT"),
        ("partitions = 3, PARTITIONS = 4", "PARTITIONS is set twice"),
        ("PARTITIONS = 'many'", "The value of PARTITIONS"),
        ("PARTITIONS = 1.5", "The value of PARTITIONS"),
        ("REPLICAS = 0", "The value of REPLICAS"),
        ("RETENTION_MS = -2", "The value of RETENTION_MS"),
        ("KEY_FORMAT = 'JSN'", "The value of KEY_FORMAT"),
        ("VALUE_DELIMITER = ';'", "VALUE_DELIMITER is for the format DELIMITED, not for JSON"),
        ("KEY_FORMAT = 'DELIMITED', KEY_DELIMITER = 'ab'", "one character in single quotes"),
        ("TIMESTAMP_FORMAT = 'yyyy'", "TIMESTAMP_FORMAT needs TIMESTAMP"),
        ("TIMESTAMP = 'text'", "TEXT is STRING; a time is BIGINT (milliseconds) or TIMESTAMP. Add TIMESTAMP_FORMAT"),
        ("TIMESTAMP = 'number', TIMESTAMP_FORMAT = 'yyyy'", "TIMESTAMP_FORMAT is for text"),
        ("TIMESTAMP = 'tex'", "There is no column TEX to take the time from. Did you mean TEXT?"),
        ("WRAP_SINGLE_VALUE = 'maybe'", "TRUE or FALSE"),
        ("WRAP_SINGLE_VALUE = TRUE", "WRAP_SINGLE_VALUE is for values of one column; here there are 2"),
        ("WINDOW_TYPE = 'TUMBLING'", "needs WINDOW_SIZE"),
        ("WINDOW_TYPE = 'SESSION', WINDOW_SIZE = '3 DAYS'", "Remove WINDOW_SIZE"),
        ("WINDOW_SIZE = '3 DAYS'", "WINDOW_SIZE needs WINDOW_TYPE"),
        ("WINDOW_TYPE = 'HOPPING', WINDOW_SIZE = '3 FORTNIGHTS'", "such as '30 SECONDS'"),
        ("VALUE_SCHEMA_ID = 3", "VALUE_SCHEMA_ID is for AVRO, JSON_SR or PROTOBUF, not for JSON"),
        ("KEY_FORMAT = 'AVRO', KEY_SCHEMA_ID = 3", "the key columns come from the schema"),
        ("KEY_FORMAT = 'NONE'", "With KEY_FORMAT = 'NONE' there are no key columns"),
        ("VALUE_PROTOBUF_NULLABLE_REPRESENTATION = 'WRAPPER'", "is for PROTOBUF, not for JSON"),
        ("SOURCE_CONNECTOR = 'a', SOURCED_BY_CONNECTOR = 'a'", "Write only one of"),
        ("VALUE_SCHEMA_FULL_NAME = 'a', VALUE_AVRO_SCHEMA_FULL_NAME = 'a'", "is an older name"),
        (
            "a = 1, b = 2, partition = 3",
            "Unknown properties in the WITH clause: A, B, PARTITION (did you mean PARTITIONS?)",
        ),
    ],
)
def test_properties(properties: str, said: str) -> None:
    columns = "id INT KEY, text STRING, number BIGINT"
    text = f"CREATE STREAM s ({columns}) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', {properties});"
    assert said in messages(text)


@pytest.mark.parametrize(
    "text, said",
    [
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 'a topic', VALUE_FORMAT = 'JSON');", "a topic's name"),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = '..', VALUE_FORMAT = 'JSON');", "a topic's name"),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'DELIMITED');", "DELIMITED are not in a registry"),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'NONE');", "NONE is a format of keys only"),
        (
            "CREATE STREAM s (a ARRAY<INT>) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'DELIMITED');",
            "cannot hold an ARRAY",
        ),
        ("CREATE STREAM s (a BOOLEAN) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'KAFKA');", "The format KAFKA holds"),
        ("CREATE STREAM s (a INT, b INT) WITH (KAFKA_TOPIC = 't', FORMAT = 'KAFKA');", "holds one value column"),
        (f"CREATE STREAM `a.b` (a INT) {WITH};", "letters, digits, _ and - only"),
        (f"CREATE OR REPLACE SOURCE STREAM s (a INT) {WITH};", "A SOURCE cannot be replaced"),
        ("CREATE TYPE integer AS STRING;", "INTEGER is a type of the language already"),
        ("CREATE SINK CONNECTOR c WITH ('topics' = 'a');", "The connector's class is missing"),
        ("CREATE SINK CONNECTOR c WITH ('connector.class' = 'a', 'x' = 1, 'x' = 2);", "x is set twice"),
        ("ALTER STREAM s ADD a INT, ADD a INT;", "Column A is added twice"),
        ("ALTER STREAM s ADD rowtime INT;", "ROWTIME is a column"),
        ("INSERT INTO s (a, a) VALUES (1, 2);", "Column A is listed twice"),
        ("INSERT INTO s (rowoffset) VALUES (1);", "ROWOFFSET cannot be inserted"),
        ("INSERT INTO s WITH (QUERY_ID = 'CSAS_1') SELECT a FROM b;", "The value of QUERY_ID"),
        ("INSERT INTO s SELECT a FROM b LIMIT 2;", "LIMIT is only for a SELECT that returns rows"),
        ("PRINT a INTERVAL 0;", "INTERVAL is 1 or more"),
        ("PRINT a LIMIT -1;", "LIMIT is 0 or more"),
        ("ASSERT TOPIC a WITH (VALUE_FORMAT = 'JSON');", "VALUE_FORMAT cannot be set here"),
        ("ASSERT TABLE t (a INT KEY);", "tables have a PRIMARY KEY"),
        ("EXPLAIN SELECT a FROM b WHERE a = NULL;", "Comparison with NULL"),
        ("CREATE TABLE t AS SELECT a FROM b PARTITION BY a;", "PARTITION BY produces a STREAM"),
        ("CREATE STREAM s AS SELECT ROWTIME, a FROM b;", "ROWTIME needs another name to be stored"),
        ("CREATE STREAM s AS SELECT a AS ROWTIME FROM b;", "ROWTIME cannot be the name"),
    ],
)
def test_statements(text: str, said: str) -> None:
    assert said in messages(text)


@pytest.mark.parametrize(
    "query, said",
    [
        ("SELECT a FROM t EMIT FINAL;", "EMIT FINAL needs a WINDOW"),
        ("SELECT a FROM t HAVING a > 1 EMIT CHANGES;", "HAVING needs a GROUP BY"),
        ("SELECT a FROM t PARTITION BY a;", "PARTITION BY is for queries that go on. Write EMIT CHANGES at the end"),
        ("SELECT a, COUNT(*) FROM t WINDOW SESSION (5 DAYS) GROUP BY a;", "WINDOW is for queries that go on"),
        ("SELECT * FROM t JOIN u WITHIN 1 DAY ON t.a = u.a;", "WITHIN is for queries that go on"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a PARTITION BY a EMIT CHANGES;", "PARTITION BY cannot follow GROUP BY"),
        (
            "SELECT a FROM t PARTITION BY a, NULL EMIT CHANGES;",
            "PARTITION BY NULL removes the key, so nothing can be listed with it",
        ),
        ("SELECT a FROM t LIMIT -1;", "LIMIT is 0 or more, not -1"),
        ("SELECT * FROM t JOIN t ON t.a = t.b EMIT CHANGES;", "T is in this query twice"),
        ("SELECT * FROM t AS x JOIN u AS x ON x.a = x.b EMIT CHANGES;", "X is in this query twice"),
        ("SELECT ordes.a FROM orders;", "ORDES is not a stream or table of this query. Did you mean ORDERS?"),
        ("SELECT u.* FROM t;", "U is not a stream or table of this query"),
        ("SELECT * FROM t JOIN u ON a EMIT CHANGES;", "ON is one equality"),
        ("SELECT * FROM t JOIN u WITHIN -1 DAYS ON t.a = u.a EMIT CHANGES;", "The time of WITHIN is 0 or longer"),
        ("SELECT SUM(MAX(a)) FROM t GROUP BY b EMIT CHANGES;", "Aggregates cannot be nested: MAX is inside SUM"),
        ("SELECT SUM(a) FROM t EMIT CHANGES;", "SUM needs a GROUP BY"),
        ("SELECT a FROM t GROUP BY SUM(a) EMIT CHANGES;", "which GROUP BY cannot use"),
        ("SELECT * FROM t JOIN u ON SUM(t.a) = u.a EMIT CHANGES;", "which ON cannot use"),
        ("SELECT a FROM t WHERE EXPLODE(a) = 1 EMIT CHANGES;", "can be used in SELECT only"),
        ("SELECT EXPLODE(EXPLODE(a)) FROM t EMIT CHANGES;", "cannot be inside CASE or another EXPLODE"),
        ("SELECT CASE WHEN a THEN EXPLODE(b) END FROM t EMIT CHANGES;", "cannot be inside CASE"),
        ("SELECT EXPLODE(a), COUNT(*) FROM t GROUP BY a EMIT CHANGES;", "cannot be combined with aggregates"),
        (
            "SELECT a, COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 DAY) WHERE WINDOWSTART > 1 GROUP BY a EMIT CHANGES;",
            "WINDOWSTART is known in SELECT only, not in WHERE",
        ),
    ],
)
def test_queries(query: str, said: str) -> None:
    assert said in messages(query)


@pytest.mark.parametrize(
    "window, said",
    [
        ("TUMBLING (SIZE 0 SECONDS)", "The size of a window is longer than 0"),
        ("SESSION (0 SECONDS)", "The gap of a session is longer than 0"),
        ("HOPPING (SIZE 1 HOUR, ADVANCE BY 0 HOURS)", "The advance of a window is longer than 0"),
        ("HOPPING (SIZE 1 HOUR, ADVANCE BY 61 MINUTES)", "The advance is longer than the window"),
        ("TUMBLING (SIZE 1 HOUR, RETENTION 59 MINUTES)", "RETENTION is at least the size"),
        ("TUMBLING (SIZE 1 HOUR, RETENTION 90 MINUTES, GRACE PERIOD 31 MINUTES)", "RETENTION is at least the size"),
        ("TUMBLING (SIZE 1 HOUR, GRACE PERIOD -1 MINUTES)", "The grace period is 0 or longer"),
    ],
)
def test_windows(window: str, said: str) -> None:
    assert said in messages(f"SELECT a, COUNT(*) FROM t WINDOW {window} GROUP BY a EMIT CHANGES;")


@pytest.mark.parametrize(
    "expression, said",
    [
        ("a <> NULL", "Write IS NOT NULL"),
        ("NULL = a", "Write IS NULL"),
        ("a BETWEEN NULL AND 1", "Comparison with NULL"),
        ("NULL IN (1, 2)", "Comparison with NULL"),
        ("a LIKE NULL", "Comparison with NULL"),
        ("a LIKE 'x' ESCAPE '!!'", "The escape character of LIKE is one character"),
        ("CASE a WHEN NULL THEN 1 END", "Comparison with NULL"),
        ("UCASE(x => x)", "UCASE takes no lambda"),
        ("FILTER(x => x, a)", "A lambda is the last argument of FILTER"),
        ("FILTER(a)", "FILTER needs a lambda as its last argument, as in FILTER("),
        ("REDUCE(a, 0, (s, s) => s)", "Parameter S occurs twice"),
        ("TRANSFORM(a, x => TRANSFORM(b, x => x))", "X is a parameter of the lambda around this one"),
        ("SUM(*)", "SUM does not take *"),
        ("UCASE(DAYS)", "DAYS is a unit of time, which UCASE does not take"),
        ("ARRAY[]", "An empty ARRAY has no type"),
        ("MAP()", "An empty MAP has no type"),
        ("ARRAY[NULL, NULL]", "An ARRAY of NULLs has no type"),
        ("STRUCT(a := 1, a := 2)", "Field A occurs twice"),
        ("CAST(a AS TEXT)", "There is no type TEXT. Write STRING"),
    ],
)
def test_expressions(expression: str, said: str) -> None:
    assert said in messages(f"SELECT {expression} AS x FROM t;")


def test_problems_come_in_the_order_of_the_text() -> None:
    (read,) = read_script("CREATE STREAM s (a TEXT, a LONG) WITH (KAFKA_TOPIC = '!', PARTITIONS = 0);")
    places = [problem.place for problem in read.problems]
    assert len(places) == 5
    assert places == sorted(places)
