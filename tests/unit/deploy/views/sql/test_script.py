import pytest

from deploy.views.sql.script import How, is_command, is_complete, parts_of


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("SELECT * FROM t WHERE id = 1", How.PULL),
        ("SELECT * FROM t EMIT CHANGES", How.PUSH),
        ("SELECT a FROM t ORDER BY a", How.PULL),
        ("PRINT orders FROM BEGINNING", How.PRINT),
        ("SHOW STREAMS", How.COMMAND),
        ("MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", How.COMMAND),
        ("spool 'x.txt'", How.HERE),
        ("RUN  SCRIPT 'x.sql'", How.HERE),
        ("exit", How.HERE),
    ],
)
def test_each_part_of_a_text_is_run_in_its_way(text: str, how: How) -> None:
    (part,) = parts_of(f"-- first\n{text};\n", {})
    assert (part.how, part.text, part.problems) == (how, text, ())


def test_variables_of_the_session_and_of_the_text_are_known() -> None:
    text = "DEFINE topic = 'orders'; PRINT ${topic}; SELECT ${column} FROM s EMIT CHANGES;"
    assert [part.problems for part in parts_of(text, {"COLUMN": "price"})] == [(), (), ()]
    (_, _, select) = parts_of(text, {})
    assert "column is not defined" in select.problems[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("SHOW STREAMS;", True),
        ("SHOW STREAMS;\n-- done\n", True),
        ("SHOW STREAMS", False),
        ("SHOW STREAMS; SHOW", False),
        ("PRINT 'a;", False),
        ("help", True),
        ("OUTPUT JSON", True),
        ("run script 'a.sql'", True),
        ("run", False),
    ],
)
def test_a_statement_ends_with_a_semicolon_and_a_command_with_its_line(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_a_word_that_begins_like_a_command_is_none() -> None:
    assert is_command("clear")
    assert not is_command("clearing")
    assert not is_command("SHOW STREAMS")
