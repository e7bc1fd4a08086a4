import pytest

from streams.sql.language.script import ReadStatement, read_script
from streams.sql.language.tree.statements import Explain, SparkStatement
from tests.support.sql_statements import STATEMENTS, STATEMENTS_OF_SPARK


def read(text: str) -> ReadStatement:
    (found,) = read_script(text)
    return found


@pytest.mark.parametrize("text", STATEMENTS[-STATEMENTS_OF_SPARK:])
def test_spark_gets_its_statements_unchanged(text: str) -> None:
    statement = read(f"  {text} ;").statement
    assert isinstance(statement, SparkStatement)
    assert statement.text == text


@pytest.mark.parametrize("text", STATEMENTS[:-STATEMENTS_OF_SPARK])
def test_statements_over_topics_stay_ours(text: str) -> None:
    assert not isinstance(read(text).statement, SparkStatement)


@pytest.mark.parametrize(
    "text, sign",
    [
        ("merge INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", "MERGE"),
        ("CREATE TABLE IF NOT EXISTS a (x INT) USING delta", "USING"),
        ("CREATE TABLE a LIKE b", "LIKE"),
        ("ALTER TABLE a.b SET TBLPROPERTIES ('x' = 'y')", "SET"),
        ("INSERT INTO TABLE a VALUES (1), (2)", "INSERT INTO TABLE"),
        ("SET TIME ZONE 'UTC'", "SET TIME"),
        ("SELECT a FROM t ORDER BY b", "ORDER BY"),
        ("SELECT a FROM t LIMIT 3 OFFSET 2", "OFFSET"),
        ("SELECT a FROM t WHERE a <=> b", "<=>"),
        ("SELECT a FROM t LATERAL VIEW EXPLODE(b) AS c", "LATERAL"),
        ("SELECT current_timestamp()", "no FROM"),
    ],
)
def test_what_shows_that_a_statement_is_sparks_is_kept(text: str, sign: str) -> None:
    statement = read(text).statement
    assert isinstance(statement, SparkStatement)
    assert statement.sign == sign


def test_a_query_of_spark_can_be_explained() -> None:
    statement = read("EXPLAIN SELECT a FROM t ORDER BY a;").statement
    assert isinstance(statement, Explain)
    assert isinstance(statement.subject, SparkStatement)


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE history EXTENDED;",
        "DESCRIBE detail;",
        "EXPLAIN formatted;",
        "CREATE TABLE location (using INT PRIMARY KEY) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        "ALTER TABLE t ADD COLUMN change INT;",
        "SELECT union FROM t;",
        "SELECT pivot, minus FROM t EMIT CHANGES;",
    ],
)
def test_names_that_are_words_of_spark_are_names(text: str) -> None:
    found = read(text)
    assert not found.problems
    assert not isinstance(found.statement, SparkStatement)


@pytest.mark.parametrize(
    "text, marked",
    [
        ("SELECT a FROM t ORDER BY a EMIT CHANGES;", "ORDER BY"),
        ("CREATE TABLE x AS SELECT a FROM t UNION SELECT b FROM u;", "UNION"),
        ("INSERT INTO s SELECT a FROM t WHERE a IN (SELECT b FROM u);", "(SELECT"),
        ("CREATE STREAM x AS SELECT SUM(a) OVER (PARTITION BY b) FROM t;", "OVER ("),
    ],
)
def test_what_only_spark_can_do_is_named_in_a_query_that_goes_on(text: str, marked: str) -> None:
    (problem,) = read(text).problems
    assert "cannot be used in a query that never ends" in problem.message
    assert text[slice(*problem.place)].startswith(marked)


@pytest.mark.parametrize(
    "text", ["SELECT a FORM t;", "SELECT a", "SELECT FROM", "SELECT a, b c", "SELECT a WHERE b = 1;"]
)
def test_a_mistake_is_not_passed_on_to_spark(text: str) -> None:
    assert read(text).statement is None


def test_a_string_of_spark_without_its_end_is_refused() -> None:
    (problem,) = read("MERGE INTO a USING b ON x = 'abc").problems
    assert "has no end" in problem.message
