import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import StatementError
from streams.sql.language.script import read_script
from streams.sql.language.tokens import Kind, Token, statements
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import PrintTopic
from streams.sql.language.variables import Variables, escaped


def substituted(text: str, **values: str) -> list[Token]:
    (statement,) = statements(text)
    return Variables(values).substitute(statement.tokens)[:-1]


def test_names_of_variables_have_no_case() -> None:
    variables = Variables({"Name": "a"})
    assert variables.get("NAME") == variables.get("name") == "a"
    assert variables.undefine("nAME")
    assert not variables.undefine("name")


@pytest.mark.parametrize(
    "value, kind, found",
    [
        ("orders", Kind.NAME, "ORDERS"),
        ("`orders`", Kind.NAME, "orders"),
        ("'it''s'", Kind.STRING, "it's"),
        ("42", Kind.INTEGER, "42"),
        ("1.5", Kind.DECIMAL, "1.5"),
        ("TRUE", Kind.WORD, "TRUE"),
    ],
)
def test_a_value_takes_the_place_of_a_name_or_literal(value: str, kind: Kind, found: str) -> None:
    (token,) = substituted("${x}", x=value)
    assert (token.kind, token.value, token.start, token.end) == (kind, found, 0, 4)


def test_a_negative_number_is_a_value() -> None:
    (read,) = read_script("SELECT ${x} FROM t;", Variables({"x": "-5"}))
    assert isinstance(read.statement, Query)


@pytest.mark.parametrize(
    "value", ["", "a b", "SELECT", "FROM", "a; DROP TABLE b", "1 OR 1", "(", "NULL", "größe", "'open", "a.b"]
)
def test_a_value_is_never_more_than_that(value: str) -> None:
    with pytest.raises(StatementError) as caught:
        substituted("  ${x}", x=value)
    assert (caught.value.start, caught.value.end) == (2, 6)
    assert "Where text is meant, write it in quotes: '${x}'" in caught.value.message


@given(st.text(max_size=20))
def test_no_value_adds_a_statement_or_changes_one(value: str) -> None:
    found = list(read_script("PRINT '${x}'; SELECT a FROM t WHERE b = ${x};", Variables({"x": value})))
    assert len(found) == 2
    assert found[0].statement == PrintTopic(value)


def test_in_strings_variables_are_replaced_as_text() -> None:
    (token,) = substituted("'a ${x} $${x} ${unknown}'", x="it's")
    assert token.value == "a it's ${x} ${unknown}"


@given(st.text(st.sampled_from("${}a_'"), max_size=20))
def test_an_escaped_text_is_not_replaced(text: str) -> None:
    quoted = escaped(text).replace("'", "''")
    assert [token.value for token in substituted(f"'{quoted}'", a="x", _="y")] == [text]


def test_values_cannot_make_a_string_endless() -> None:
    with pytest.raises(StatementError, match="characters"):
        substituted("'" + "${x}" * 1000 + "'", x="a" * 1000)


def test_an_error_points_at_the_variable() -> None:
    text = "SELECT a FROM t\n  WHERE ${x} = 1;"
    (read,) = read_script(text)
    assert text[slice(*read.problems[0].place)] == "${x}"
