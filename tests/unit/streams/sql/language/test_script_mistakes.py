"""The mistakes that people make most, and what they are told."""

from typing import Final

import pytest

from streams.sql.language.script import read_script
from streams.sql.language.source import Source

MISTAKES: Final = (
    (
        "SELECT a FROM t WERE b = 1;",
        17,
        "Expected the end of the statement; found WERE. Did you mean WHERE?",
    ),
    (
        "SELECT a FORM t;",
        10,
        "Expected FROM after the columns; found FORM. Did you mean FROM?",
    ),
    (
        "SELEC * FROM t;",
        1,
        "No statement begins with SELEC. Did you mean SELECT?",
    ),
    (
        "SELECT a, FROM t;",
        11,
        "Expected a column or expression; found FROM.",
    ),
    (
        "SELECT a b c FROM t;",
        12,
        "Expected FROM after the columns; found c.",
    ),
    (
        "SELECT a FROM t WHERE a = NULL;",
        23,
        "Comparison with NULL not supported: it would never be true. Write IS NULL.",
    ),
    (
        "SELECT a FROM t WHERE a == 1;",
        26,
        "Write = for equality.",
    ),
    (
        "SELECT a FROM t WHERE a IS TRUE;",
        28,
        "Expected NULL or DISTINCT FROM after IS; found TRUE. Compare with = instead.",
    ),
    (
        "SELECT (a + b FROM t;",
        15,
        "Expected ')' to close the parenthesis; found FROM.",
    ),
    (
        "SELECT 'abc FROM t;",
        8,
        "The string that begins here has no end. Close it with '",
    ),
    (
        "SELECT a FROM t LIMIT 5 EMIT CHANGES;",
        25,
        (
            "EMIT is in the wrong place or appears twice. The order is FROM, JOIN, WINDOW, WHERE, GROUP "
            "BY, PARTITION BY, HAVING, EMIT, LIMIT."
        ),
    ),
    (
        "SELECT a FROM t GRUOP BY a EMIT CHANGES;",
        17,
        "Expected the end of the statement; found GRUOP. Did you mean GROUP?",
    ),
    (
        "SELECT COUNT(*) FROM t WINDOW TUMBLING (1 HOUR) GROUP BY a EMIT CHANGES;",
        41,
        "Expected SIZE as in TUMBLING (SIZE 1 HOUR); found 1.",
    ),
    (
        "SELECT COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 HUOR) GROUP BY a EMIT CHANGES;",
        48,
        ("Expected a unit of time (MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS); found HUOR. Did you mean HOUR?"),
    ),
    (
        "SELECT COUNT(*) FROM t WINDOW TUMBLING (SIZE 1.5 HOURS) GROUP BY a EMIT CHANGES;",
        46,
        "Expected the size as a whole number; found 1.5. Fractions are not accepted: choose a smaller unit.",
    ),
    (
        "SELECT COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 HOUR) EMIT CHANGES;",
        24,
        "WINDOW clause requires a GROUP BY clause: add GROUP BY after it.",
    ),
    (
        "SELECT a FROM t ORDER BY a EMIT CHANGES;",
        17,
        (
            "ORDER BY cannot be used in a query that never ends. Remove it here, and use it in a "
            "SELECT over the table that this statement fills."
        ),
    ),
    (
        "SELECT a FROM x JOIN y WITHIN 1 HOUR x.id = y.id EMIT CHANGES;",
        38,
        "Expected ON and a condition after the joined stream or table; found x.",
    ),
    (
        "SELECT a FROM x JOIN y ON x.id = y.id AND x.b = 1 EMIT CHANGES;",
        27,
        "ON is one equality of a column on each side, as in X.ID = Y.ID. Put other conditions in WHERE.",
    ),
    (
        "SELECT z.a FROM x JOIN y ON x.id = y.id EMIT CHANGES;",
        8,
        "Z is not a stream or table of this query. It reads X and Y. For a field of a STRUCT, write ->.",
    ),
    (
        "SELECT CASE WHEN a = 1 THEN 2 FROM t;",
        31,
        "Expected END to close CASE; found FROM.",
    ),
    (
        "SELECT CAST(a, INT) FROM t;",
        14,
        "Expected AS and a type in CAST, as in CAST(price AS DOUBLE); found ','.",
    ),
    (
        "SELECT a FROM t WHERE COUNT(*) > 1 EMIT CHANGES;",
        23,
        "COUNT is an aggregate, which WHERE cannot use. Write the condition in HAVING.",
    ),
    (
        "SELECT NULL FROM t EMIT CHANGES;",
        8,
        "NULL by itself has no type. Write CAST(NULL AS type).",
    ),
    (
        "SELECT ${x} FROM t;",
        8,
        "The variable x is not defined. Write DEFINE x = '...'; first.",
    ),
    (
        "SELECT größe FROM t;",
        8,
        "Put a name with letters other than A to Z in backquotes: `größe`.",
    ),
    (
        "CREATE STREM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        8,
        "Expected STREAM or TABLE after CREATE; found STREM. Did you mean STREAM?",
    ),
    (
        "CREATE STREAM s (a INT, a STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        25,
        "Column A is declared twice. Rename or remove one of the two.",
    ),
    (
        "CREATE STREAM s (a INT PRIMARY KEY) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        18,
        ("Column A is a 'PRIMARY KEY' column, and streams have a KEY, since keys repeat in them. Write A ... KEY."),
    ),
    (
        "CREATE TABLE s (a INT KEY) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        17,
        "Column A is a 'KEY' column, and tables have a PRIMARY KEY. Write A ... PRIMARY KEY.",
    ),
    (
        "CREATE TABLE s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        1,
        "Tables require a PRIMARY KEY: add PRIMARY KEY after the type of a column.",
    ),
    (
        "CREATE STREAM s (a FLOAT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        20,
        "There is no type FLOAT. Write DOUBLE, or define it with CREATE TYPE.",
    ),
    (
        "CREATE STREAM s (a STRNG) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        20,
        "There is no type STRNG. Write STRING, or define it with CREATE TYPE.",
    ),
    (
        "CREATE STREAM s (a DECIMAL(50, 2)) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        20,
        "The precision of a DECIMAL is between 1 and 38, not 50.",
    ),
    (
        "CREATE STREAM s (a DECIMAL) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        27,
        "Expected '(' after DECIMAL: it needs precision and scale, as in DECIMAL(10, 2); found ')'.",
    ),
    (
        "CREATE STREAM s (rowtime BIGINT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        18,
        "ROWTIME is a column that Caudal adds itself. Choose another name.",
    ),
    (
        "CREATE STREAM s (topic STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        18,
        "TOPIC is a reserved word. To use it as a name, put it in backquotes: `TOPIC`.",
    ),
    (
        "CREATE STREAM s (a INT b STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        24,
        "Expected ',' or ')' after the columns; found b.",
    ),
    (
        "CREATE STREAM s (a INT NOT NULL) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');",
        24,
        (
            "Columns have no constraints: any of them may be NULL. Only KEY, PRIMARY KEY, HEADERS and "
            "HEADER('key') follow a type."
        ),
    ),
    (
        "CREATE STREAM s (a);",
        19,
        "Expected the type of column A; found ')'.",
    ),
    (
        "CREATE STREAM s (a INT);",
        1,
        "The topic is missing: write WITH (KAFKA_TOPIC = 'name', VALUE_FORMAT = 'JSON').",
    ),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPC = 't', VALUE_FROMAT = 'JSON');",
        31,
        (
            "Unknown properties in the WITH clause: KAFKA_TOPC (did you mean KAFKA_TOPIC?), "
            "VALUE_FROMAT (did you mean VALUE_FORMAT?)."
        ),
    ),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = t, VALUE_FORMAT = 'JSON');",
        45,
        (
            "Expected text, a number, TRUE or FALSE as the value of KAFKA_TOPIC; found t. Write it in "
            "single quotes: 't'."
        ),
    ),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSN');",
        65,
        (
            "The value of VALUE_FORMAT is one of AVRO, DELIMITED, JSON, JSON_SR, KAFKA, NONE, "
            "PROTOBUF, PROTOBUF_NOSR, in single quotes."
        ),
    ),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', FORMAT = 'JSON', VALUE_FORMAT = 'JSON');",
        67,
        "FORMAT is for key and value. Write KEY_FORMAT and VALUE_FORMAT, or FORMAT alone.",
    ),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', PARTITIONS = 0);",
        86,
        "The value of PARTITIONS is a whole number from 1.",
    ),
    (
        "CREATE STREAM s (a INT) WITH KAFKA_TOPIC = 't';",
        30,
        "Expected '(' after WITH; found KAFKA_TOPIC.",
    ),
    (
        "CREATE STREAM s (a STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', TIMESTAMP = 'b');",
        88,
        "There is no column B to take the time from. The columns are A.",
    ),
    (
        "CREATE STREAM s AS SELECT a FROM t LIMIT 3;",
        42,
        "LIMIT is only for a SELECT that returns rows: a stored result has no end. Remove LIMIT.",
    ),
    (
        "CREATE STREAM s AS SELECT COUNT(*) AS n, a FROM t GROUP BY a;",
        15,
        "Invalid result type. GROUP BY produces a TABLE. Use CREATE TABLE ... AS SELECT.",
    ),
    (
        "CREATE STREAM s AS SELECT a, b AS a FROM t;",
        30,
        "Column A is selected twice. Give one of the two another name with AS.",
    ),
    (
        "INSERT INTO s (a, b) VALUES (1);",
        30,
        "There are 2 columns and 1 value. Write a value for each column.",
    ),
    (
        'INSERT INTO s (a) VALUES ("text");',
        27,
        "text is a name, not a value. Put text in single quotes: '...'.",
    ),
    (
        "INSERT INTO s VALUES (1), (2);",
        25,
        "INSERT INTO ... VALUES inserts one row. Write a statement for each row.",
    ),
    (
        "DROP STREAM IF EXIST s;",
        16,
        "Expected EXISTS after IF; found EXIST. Did you mean EXISTS?",
    ),
    (
        "SHOW STREEMS;",
        6,
        "Expected what to list after SHOW; found STREEMS. Did you mean STREAMS?",
    ),
    (
        "SET auto.offset.reset = 'earliest';",
        5,
        ("Expected the property in single quotes; found auto. Write it in single quotes: 'auto.offset.reset'."),
    ),
    (
        "SET 'auto.offset.reset' TO 'earliest';",
        25,
        "Expected '=' after the property; found TO.",
    ),
    (
        "TERMINATE;",
        10,
        "Expected the query's id, or ALL; found the end of the statement.",
    ),
    (
        "PRINT 'a' FROM BEGINING;",
        16,
        "Expected BEGINNING after FROM; found BEGINING. Did you mean BEGINNING?",
    ),
    (
        "DESCRIBE EXTENDED s;",
        10,
        "EXTENDED comes after the name, as in DESCRIBE orders EXTENDED.",
    ),
)


@pytest.mark.parametrize("text, column, message", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_where_it_stands_with_what_to_write_instead(text: str, column: int, message: str) -> None:
    behind = f"SHOW TOPICS;\n\n{text}"
    source = Source(behind)
    (_, read) = read_script(behind)
    found = [(*source.position(problem.place.start), problem.message) for problem in read.problems]
    assert (3, column, message) in found
