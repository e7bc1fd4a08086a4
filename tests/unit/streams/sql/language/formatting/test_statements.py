from typing import Any

import pytest
from hypothesis import given, settings

from streams.sql.language.formatting.statements import format_statement
from streams.sql.language.script import read_script
from streams.sql.language.tokens import statements
from streams.sql.language.tree.statements import Statement
from tests.support.sql_statements import STATEMENTS
from tests.support.sql_trees import STATEMENTS as TREES


def parsed(text: str) -> Statement:
    (read,) = read_script(text)
    assert read.statement is not None, (text, read.problems)
    return read.statement


@settings(max_examples=300)
@given(TREES)
def test_any_tree_is_written_as_text_that_parses_to_the_same_tree(tree: Any) -> None:
    text = format_statement(tree)
    assert parsed(text) == tree, text
    assert len(list(statements(text))) == 1


@pytest.mark.parametrize("text", STATEMENTS)
def test_formatting_changes_neither_what_a_statement_says_nor_its_own_output(text: str) -> None:
    tree = parsed(text + ";")
    formatted = format_statement(tree)
    assert parsed(formatted) == tree
    assert format_statement(parsed(formatted)) == formatted


@pytest.mark.parametrize(
    "text, formatted",
    [
        ("select A,`a`,\"select\" from T;", "SELECT A,\n  `a`,\n  `select`\nFROM T;"),
        ("select ((a)) + (b * (c)) from t;", "SELECT A + B * C\nFROM T;"),
        ("select (a + b) * c - (d - e) from t;", "SELECT (A + B) * C - (D - E)\nFROM T;"),
        ("select a from t where (a = 1 or b = 2) and not (c = 3);",
         "SELECT A\nFROM T\nWHERE (A = 1 OR B = 2) AND NOT C = 3;"),
        ("select - - a, 1 - -1, 'it''s ${x}' from t;", "SELECT -(-A),\n  1 - -1,\n  'it''s $${x}'\nFROM T;"),
        ("create stream s (id int key, n varchar) with (kafka_topic='t', value_format='json');",
         "CREATE STREAM S (\n  ID INTEGER KEY,\n  N STRING\n) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'json');"),
        ("list streams;", "SHOW STREAMS;"),
    ],
)  # fmt: skip
def test_there_is_one_way_to_write_a_statement(text: str, formatted: str) -> None:
    assert format_statement(parsed(text)) == formatted
