"""One statement of any kind."""

from collections.abc import Callable, Mapping
from typing import Final

from streams.errors import StatementError
from streams.sql.language.parsing.commands import (
    parse_assert,
    parse_control,
    parse_define,
    parse_describe,
    parse_print,
    parse_run_script,
    parse_set,
    parse_show,
    parse_undefine,
    parse_unset,
)
from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.parsing.definitions import parse_alter, parse_create, parse_drop, parse_insert
from streams.sql.language.parsing.queries import parse_query
from streams.sql.language.parsing.spark import NO_FROM, is_over_topics, spark_sign, spark_sign_of_select
from streams.sql.language.source import Place
from streams.sql.language.tokens import Kind, StatementTokens
from streams.sql.language.tree.node import refuse_high_tree
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import CreateAsSelect, Explain, SparkStatement, Statement
from streams.sql.language.words import STATEMENTS, did_you_mean

_PARSERS: Final[Mapping[str, Callable[[Cursor], Statement]]] = {
    "SELECT": parse_query,
    "CREATE": parse_create,
    "DROP": parse_drop,
    "ALTER": parse_alter,
    "INSERT": parse_insert,
    "SHOW": parse_show,
    "LIST": parse_show,
    "DESCRIBE": parse_describe,
    "TERMINATE": parse_control,
    "PAUSE": parse_control,
    "RESUME": parse_control,
    "SET": parse_set,
    "UNSET": parse_unset,
    "DEFINE": parse_define,
    "UNDEFINE": parse_undefine,
    "PRINT": parse_print,
    "ASSERT": parse_assert,
    "RUN": parse_run_script,
}


def parse_statement(text: str, statement: StatementTokens) -> Statement:
    """The tree of a statement; raises StatementError for the first mistake."""
    cursor = Cursor(text, statement.tokens)
    found = _statement(cursor)
    refuse_high_tree(found)
    return found


def _statement(cursor: Cursor) -> Statement:
    sign = spark_sign(cursor.tokens[cursor.index :])
    if sign is not None:
        return _spark(cursor, sign)
    first = cursor.token
    if cursor.is_word("EXPLAIN"):
        found: Statement = _explain(cursor)
    elif first.kind is Kind.WORD and first.value in _PARSERS:
        found = _parsed_or_spark(cursor, _PARSERS[first.value])
    else:
        raise _unknown(cursor)
    cursor.expect_end()
    return found


def _parsed_or_spark(cursor: Cursor, parse: Callable[[Cursor], Statement]) -> Statement:
    start = cursor.index
    try:
        found = parse(cursor)
        cursor.expect_end()
        return found
    except StatementError as error:
        select = next((at for at in range(start, len(cursor.tokens)) if cursor.tokens[at].value == "SELECT"), None)
        sign = None if select is None else spark_sign_of_select(cursor.tokens[select:])
        if sign is None:
            raise
        if select == start and not is_over_topics(cursor.tokens[start:]):
            cursor.index = start
            return _spark(cursor, sign.words)
        if sign.start <= error.start < sign.end and sign.words != NO_FROM:
            raise StatementError(_not_over_topics(sign.words), start=sign.start, end=sign.end) from None
        raise


def _not_over_topics(sign: str) -> str:
    return (
        f"{sign} cannot be used in a query that never ends. Remove it here, and use it in a SELECT over the table "
        "that this statement fills."
    )


def _spark(cursor: Cursor, sign: str) -> SparkStatement:
    start = cursor.token.start
    for token in cursor.tokens[cursor.index :]:
        if token.kind is Kind.UNCLOSED:
            cursor.index = cursor.tokens.index(token)
            raise cursor.unexpected("Expected the rest of the statement")
    cursor.index = len(cursor.tokens) - 1
    place = Place(start, cursor.tokens[-2].end)
    return SparkStatement(cursor.text[place.start : place.end], sign, place=place)


def _explain(cursor: Cursor) -> Explain:
    cursor.enter()
    start = cursor.advance().start
    following = cursor.token
    is_id = cursor.ahead(1).kind is Kind.END and (following.kind is Kind.NAME or following.value not in _PARSERS)
    if is_id:
        return Explain(cursor.identifier("the query's id"), place=cursor.place_from(start))
    if following.kind is Kind.END:
        raise cursor.unexpected("Expected a SELECT, a CREATE ... AS SELECT or the id of a query after EXPLAIN")
    subject = _statement(cursor)
    if not isinstance(subject, Query | CreateAsSelect | SparkStatement):
        message = "Only queries can be explained: SELECT, CREATE ... AS SELECT, or the id of a running query."
        raise cursor.error_at(following, message)
    return Explain(subject, place=cursor.place_from(start))


def _unknown(cursor: Cursor) -> StatementError:
    token = cursor.token
    if token.kind in {Kind.UNCLOSED, Kind.UNKNOWN, Kind.VARIABLE}:
        if token.kind is not Kind.VARIABLE:
            raise cursor.unexpected("Expected a statement")
        return cursor.error_at(token, "A statement begins with a word, which cannot be a variable.")
    hint = did_you_mean(token.value, STATEMENTS, similarity=0.6) or f" Statements begin with {', '.join(STATEMENTS)}."
    return cursor.error_at(token, f"No statement begins with {cursor.written(token)}.{hint}")
