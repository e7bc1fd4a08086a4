import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import StatementError
from streams.sql.language.tokens import MAX_TOKENS, Kind, statements


def kinds(text: str) -> list[tuple[Kind, str]]:
    return [(token.kind, token.value) for statement in statements(text) for token in statement.tokens[:-1]]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select Abc_1@x", [(Kind.WORD, "SELECT"), (Kind.WORD, "ABC_1@X")]),
        ("`a``b` \"c\"\"d\"", [(Kind.NAME, "a`b"), (Kind.NAME, 'c"d')]),
        ("'it''s' ''", [(Kind.STRING, "it's"), (Kind.STRING, "")]),
        ("'a\nb\\'", [(Kind.STRING, "a\nb\\")]),
        ("1 1.5 .5 5. 1e3 1.5E-3", [(Kind.INTEGER, "1"), (Kind.DECIMAL, "1.5"), (Kind.DECIMAL, ".5"),
                                    (Kind.DECIMAL, "5."), (Kind.DOUBLE, "1e3"), (Kind.DOUBLE, "1.5E-3")]),
        ("2nd 1e3x", [(Kind.NAME, "2ND"), (Kind.NAME, "1E3X")]),
        ("a->b=>c:=d<>e!=f||g", [(Kind.WORD, "A"), (Kind.SYMBOL, "->"), (Kind.WORD, "B"), (Kind.SYMBOL, "=>"),
                                (Kind.WORD, "C"), (Kind.SYMBOL, ":="), (Kind.WORD, "D"), (Kind.SYMBOL, "<>"),
                                (Kind.WORD, "E"), (Kind.SYMBOL, "<>"), (Kind.WORD, "F"), (Kind.SYMBOL, "||"),
                                (Kind.WORD, "G")]),
        ("${a_1} $ {", [(Kind.VARIABLE, "a_1"), (Kind.UNKNOWN, "$"), (Kind.UNKNOWN, "{")]),
        ("a -- b\nc /* d\ne */ f", [(Kind.WORD, "A"), (Kind.WORD, "C"), (Kind.WORD, "F")]),
        ("a 'b; c", [(Kind.WORD, "A"), (Kind.UNCLOSED, "'")]),
        ("a /* b; c", [(Kind.WORD, "A"), (Kind.UNCLOSED, "/*")]),
    ],
)  # fmt: skip
def test_tokens(text: str, expected: list[tuple[Kind, str]]) -> None:
    assert kinds(text) == expected


@given(st.text(max_size=80))
def test_tokens_of_any_text_follow_each_other_in_it(text: str) -> None:
    last = 0
    for statement in statements(text):
        assert statement.tokens[-1].kind is Kind.END
        for token in statement.tokens:
            assert last <= token.start <= token.end <= len(text)
            last = token.end


def test_a_statement_of_too_many_tokens_is_refused_at_its_beginning() -> None:
    found = statements("SHOW TOPICS; x " + "y " * MAX_TOKENS)
    assert len(next(found).tokens) == 3
    with pytest.raises(StatementError, match="more than 200,000") as caught:
        next(found)
    assert caught.value.start == 13


def test_strings_of_spark_may_have_backslashes() -> None:
    (one,) = statements(r"WITH x 'it\'s;' ", spark_words=frozenset({"WITH"}))
    assert len(one.tokens) == 4
