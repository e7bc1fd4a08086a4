from streams.sql.language.script import read_script
from streams.sql.language.tree.expressions import StringLiteral
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import CreateSource, DefineVariable, PrintTopic, SparkStatement
from streams.sql.language.variables import Variables


def test_a_wrong_statement_does_not_hide_those_behind_it() -> None:
    found = list(read_script("SELEC 1; SHOW TOPICS; DROP x; SHOW TABLES"))
    assert [len(read.problems) for read in found] == [1, 0, 1, 0]
    assert [read.statement is None for read in found] == [True, False, True, False]


def test_semicolons_in_strings_comments_and_names_do_not_end_a_statement() -> None:
    text = "PRINT 'a;b'; -- ;\n/* ; */ PRINT `c;d`; PRINT \"e;f\""
    assert [read.statement for read in read_script(text)] == [
        PrintTopic("a;b"),
        PrintTopic("c;d"),
        PrintTopic("e;f"),
    ]


def test_places_lead_back_into_the_text() -> None:
    text = "\n\n  SELECT a,\n   b->c AS d FROM t;"
    (read,) = read_script(text)
    assert isinstance(read.statement, Query)
    assert text[slice(*read.place)] == "SELECT a,\n   b->c AS d FROM t"
    assert [text[slice(*item.place)] for item in read.statement.items] == ["a", "b->c AS d"]


def test_directives_belong_to_the_statement_behind_them() -> None:
    (first, second) = read_script("--@test: one\n--@expected.error: x\nSHOW TOPICS; -- plain\nSHOW TABLES;")
    assert first.directives == ("--@test: one", "--@expected.error: x")
    assert second.directives == ()


def test_variables_are_known_from_their_definition_on() -> None:
    found = list(read_script("PRINT '${t}'; DEFINE t = 'x'; PRINT '${t}'; UNDEFINE t; PRINT '${t}';"))
    topics = [read.statement.topic for read in found if isinstance(read.statement, PrintTopic)]
    assert topics == ["${t}", "x", "${t}"]
    assert DefineVariable("t", "x") in [read.statement for read in found]


def test_a_type_is_known_from_its_definition_on() -> None:
    head = "CREATE STREAM s (a TEXT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');"
    found = list(read_script(f"{head} CREATE TYPE text AS STRING; {head} DROP TYPE text; {head}"))
    assert [len(read.problems) for read in found] == [1, 0, 0, 0, 1]


def test_given_variables_count_from_the_beginning() -> None:
    text = "CREATE STREAM ${name} (a INT) WITH (KAFKA_TOPIC = '${topic}', VALUE_FORMAT = 'JSON', PARTITIONS = ${n});"
    (read,) = read_script(text, Variables({"NAME": "clicks", "topic": "t-1", "n": "3"}))
    assert not read.problems
    assert isinstance(read.statement, CreateSource)
    assert read.statement.name.name == "CLICKS"
    assert read.statement.properties[0].value == StringLiteral("t-1")


def test_statements_of_spark_keep_their_text_and_their_strings_with_backslashes() -> None:
    merge = r"MERGE INTO a USING b ON a.x = 'it\'s; here' WHEN MATCHED THEN DELETE"
    found = list(read_script(f"SHOW TOPICS; {merge} ; SHOW TABLES;"))
    assert [type(read.statement).__name__ for read in found] == ["Show", "SparkStatement", "Show"]
    assert found[1].statement == SparkStatement(merge, "MERGE")


def test_an_empty_text_has_no_statements() -> None:
    assert list(read_script("")) == []
    assert list(read_script(" ;; -- nothing\n ; /* */")) == []
