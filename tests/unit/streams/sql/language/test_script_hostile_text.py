"""Texts that no user writes on purpose: damaged ones, endless ones, deeply nested ones."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.sql.language.formatting.statements import format_statement
from streams.sql.language.parsing.spark import FIRST_WORDS
from streams.sql.language.script import ReadStatement, read_script
from streams.sql.language.source import Source
from streams.sql.language.tokens import MAX_TEXT_CHARACTERS, Token, statements
from tests.support.sql_statements import STATEMENTS

GARBAGE = (
    "(",
    ")",
    "'",
    '"',
    "`",
    "/*",
    "--",
    "SELECT",
    "FROM",
    ";",
    "\x00",
    "${",
    "${x}",
    "->",
    "=>",
    "1e999",
    "é",
    "🦊",
    "9" * 50,
)
DAMAGES = 100


def checked(text: str) -> list[ReadStatement]:
    """The statements of a text, after a look at every problem: it has a message, and a place inside the text."""
    found = list(read_script(text))
    source = Source(text)
    for read in found:
        assert read.statement is not None or read.problems
        for problem in read.problems:
            assert problem.message
            assert 0 <= problem.place.start <= problem.place.end <= len(text)
            assert source.position(problem.place.start) >= (1, 1)
    return found


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_damaged_statement_has_a_mistake_with_a_place_or_none_at_all(text: str) -> None:
    (read,) = statements(text, spark_words=FIRST_WORDS)
    tokens = read.tokens[:-1]
    chance = random.Random(text)
    for _ in range(DAMAGES):
        for statement in checked(_damaged(text, tokens, chance)):
            if statement.statement is not None:
                format_statement(statement.statement)


def _damaged(text: str, tokens: list[Token], chance: random.Random) -> str:
    token = chance.choice(tokens)
    other = chance.choice(tokens)
    before, after = text[: token.start], text[token.end :]
    match chance.randrange(6):
        case 0:
            return before + after
        case 1:
            return f"{before}{text[token.start : token.end]} {text[token.start : token.end]}{after}"
        case 2:
            return before + text[other.start : other.end] + after
        case 3:
            return before + chance.choice(GARBAGE) + after
        case 4:
            return before
        case _:
            at = chance.randrange(len(text))
            return text[:at] + chance.choice(GARBAGE) + text[at:]


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    checked(text)


@given(st.lists(st.sampled_from([*" ".join(STATEMENTS).split()[:400], *GARBAGE]), max_size=25).map(" ".join))
def test_any_mixture_of_words_is_read_without_an_exception(text: str) -> None:
    checked(text)


@pytest.mark.parametrize(
    "beginning, part, count, end",
    [
        ("SELECT ", "(", 100_000, ""),
        ("SELECT a", "->b[(a", 20_000, ""),
        ("SELECT ", "NOT ", 90_000, "a FROM t;"),
        ("SELECT ", "- ", 90_000, "a FROM t;"),
        ("SELECT ", "f(", 40_000, ""),
        ("SELECT ", "a[", 40_000, ""),
        ("SELECT ", "ARRAY[", 40_000, ""),
        ("SELECT ", "STRUCT(a := ", 20_000, ""),
        ("SELECT ", "CASE WHEN ", 40_000, ""),
        ("SELECT ", "f(x => ", 20_000, ""),
        ("SELECT ", "CAST(", 20_000, ""),
        ("CREATE TYPE t AS ", "ARRAY<", 40_000, ""),
        ("CREATE TYPE t AS ", "STRUCT<a ", 30_000, ""),
        ("", "EXPLAIN ", 90_000, "SELECT a FROM t;"),
    ],
)
def test_endless_nesting_is_refused(beginning: str, part: str, count: int, end: str) -> None:
    (read,) = checked(beginning + part * count + end)
    assert read.problems[0].message.startswith("Nested too deeply")


def test_endless_nesting_is_refused_also_where_it_ends() -> None:
    (read,) = checked("SELECT " + "(" * 50_000 + "a" + ")" * 50_000 + " FROM t;")
    assert read.problems[0].message.startswith("Nested too deeply")


@pytest.mark.parametrize(
    "chain",
    [
        " + ".join(["a"] * 10_000),
        " || ".join(["a"] * 10_000),
        " AND ".join(["a = 1"] * 5_000),
        " OR ".join(["a * 2"] * 5_000),
        "a" + "->b" * 10_000,
        "a" + "[1]" * 10_000,
        "a IN (" + ", ".join(["1"] * 10_000) + ")",
        "f(" + ", ".join(["a"] * 10_000) + ")",
    ],
    ids=range(8),
)
def test_long_chains_are_no_deeper_than_short_ones(chain: str) -> None:
    (read,) = checked(f"SELECT {chain} AS x FROM t;")
    assert not read.problems
    assert read.statement is not None
    (again,) = read_script(format_statement(read.statement))
    assert again.statement == read.statement


def test_a_caller_may_itself_be_hundreds_of_calls_deep() -> None:
    texts = [f"SELECT {'f(x => ' * depth}a{')' * depth} FROM t;" for depth in (40, 74, 75, 79, 80, 1000)]

    def call(depth: int) -> None:
        if depth:
            call(depth - 1)
            return
        for text in texts:
            for read in read_script(text):
                if read.statement is not None:
                    format_statement(read.statement)

    call(150)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CASE " + "WHEN a = 1 THEN EXPLODE(a) " * 20_000 + "END FROM t EMIT CHANGES;",
        "SELECT " + ", ".join(["SUM(MAX(a))"] * 20_000) + " FROM t GROUP BY a EMIT CHANGES;",
        "SELECT " + ", ".join([f"z{number}.a" for number in range(40_000)]) + " FROM t;",
        "SELECT f(" + "(a, b, " * 30_000,
        "CREATE STREAM s (" + ", ".join([f"c{number} STRNG" for number in range(40_000)]) + ") WITH (a = 1);",
        "CREATE STREAM s WITH (" + ", ".join([f"kafka_topi{number} = 1" for number in range(40_000)]) + ");",
    ],
    ids=range(6),
)
def test_thousands_of_mistakes_in_one_statement_are_not_all_looked_into(text: str) -> None:
    (read,) = checked(text)
    assert 1 <= len(read.problems) <= 100
    assert all(len(problem.message) < 3000 for problem in read.problems)


def test_a_tree_that_is_too_high_for_its_walks_is_refused_although_its_parentheses_are_few() -> None:
    inside = "a"
    for _ in range(60):
        inside = f"NOT f(1 + -g({inside}) * 2 = 3)"
    (read,) = checked(f"SELECT {inside} FROM t;")
    assert read.problems[0].message.startswith("Nested too deeply")


def test_moderate_nesting_is_welcome() -> None:
    (read,) = checked("SELECT " + "(" * 75 + "a" + ")" * 75 + " FROM t;")
    assert not read.problems
    (read,) = checked("SELECT " + "f(" * 75 + "a" + ")" * 75 + " FROM t;")
    assert not read.problems


@pytest.mark.parametrize(
    "text",
    ["a " * 5_000_000, "'" + "a" * 10_000_000, "/*" * 5_000_000, "''" * 5_000_000, "9" * 10_000_000, "(" * 10_000_000],
    ids=["words", "string", "comments", "quotes", "digits", "parentheses"],
)
def test_ten_million_characters_are_refused_where_they_become_too_many(text: str) -> None:
    found = checked(text)
    assert len(found) == 1
    assert len(found[0].problems) == 1
    assert len(found[0].problems[0].message) < 1000


def test_a_text_is_not_read_at_all_when_it_is_too_long() -> None:
    (read,) = checked(" " * (MAX_TEXT_CHARACTERS + 1))
    assert "Split it into several files" in read.problems[0].message


def test_long_words_are_not_compared_with_all_others() -> None:
    (read,) = checked("SELECT a FROM t " + "W" * 1_000_000 + " x;")
    assert len(read.problems[0].message) < 300
