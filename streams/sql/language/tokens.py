"""Tokens of a text, statement by statement.

Every text has tokens: what cannot be one is a token of its own kind, which the parser refuses where it stands. So a
text splits into statements before anything is known about them, and one wrong statement does not hide those behind it.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import msgspec

from streams.errors import StatementError

MAX_TEXT_CHARACTERS: Final = 16_000_000
MAX_TOKENS: Final = 200_000
"""Per statement: a token takes 100 bytes of memory, and each of them time."""


class Kind(IntEnum):
    """What a token is."""

    WORD = 1
    NAME = 2  # in quotes, or beginning with a digit: never a word of the language
    STRING = 3
    INTEGER = 4
    DECIMAL = 5
    DOUBLE = 6
    VARIABLE = 7
    SYMBOL = 8
    UNKNOWN = 9
    UNCLOSED = 10  # a quote or comment without its end
    END = 11  # a semicolon, or the end of the text


NUMBERS: Final = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


class Token(msgspec.Struct, frozen=True, gc=False):
    """A token: words in upper case, strings and quoted names without their quotes."""

    kind: Kind
    value: str
    start: int
    end: int


class StatementTokens(msgspec.Struct, frozen=True):
    """One statement: its tokens, the last of which is its END, and the `--@` directives before and in it."""

    tokens: list[Token]
    directives: list[Token]


_STRING: Final = r"'[^']*+(?:''[^']*+)*+'"
_SPARK_STRING: Final = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_PATTERN: Final = r"""
    (?P<SPACE>\s++|--(?!@)[^\n]*+|/\*(?s:.*?)\*/)
  | (?P<DIRECTIVE>--@[^\n]*+)
  | (?P<WORD>[^\W\d][\w@]*+)
  | (?P<VARIABLE>\$\{[A-Za-z_][A-Za-z0-9_@]*+\})
  | (?P<STRING>%s)
  | (?P<NAME>`[^`]*+(?:``[^`]*+)*+`|"[^"]*+(?:""[^"]*+)*+")
  | (?P<DOUBLE>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++(?![\w@]))
  | (?P<DIGITNAME>[0-9]++[A-Za-z_@][\w@]*+)
  | (?P<DECIMAL>[0-9]++\.[0-9]*+|\.[0-9]++)
  | (?P<INTEGER>[0-9]++)
  | (?P<UNCLOSED>['"`]|/\*)
  | (?P<SYMBOL><=>|=>|->|:=|::|<>|!=|<=|>=|\|\||\|>|[-+*/%%=<>(),.\[\]])
  | (?P<END>;)
  | (?P<UNKNOWN>(?s:.))
"""
_TOKEN: Final = re.compile(_PATTERN % _STRING, re.VERBOSE)
_SPARK_TOKEN: Final = re.compile(_PATTERN % _SPARK_STRING, re.VERBOSE)


def statements(text: str, *, spark_words: frozenset[str] = frozenset()) -> Iterator[StatementTokens]:
    """The statements of a text; in one that begins with one of Spark's words, strings have Spark's backslashes.

    A text that is too long raises StatementError, and so does a statement, when it is reached.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise StatementError(
            f"The text has {len(text):,} characters; at most {MAX_TEXT_CHARACTERS:,} can be read at once. "
            "Split it into several files.",
            start=0,
            end=1,
        )
    tokens: list[Token] = []
    directives: list[Token] = []
    pattern = _TOKEN
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        assert match is not None  # UNKNOWN takes any character
        position = match.end()
        group = match.lastgroup
        if group == "SPACE":
            continue
        token = _token(match, text)
        if group == "DIRECTIVE":
            directives.append(token)
            continue
        if not tokens and token.value in spark_words and token.kind is Kind.WORD:
            pattern = _SPARK_TOKEN
        tokens.append(token)
        if token.kind is Kind.UNCLOSED:
            position = len(text)
        elif token.kind is Kind.END:
            yield StatementTokens(tokens, directives)
            tokens, directives, pattern = [], [], _TOKEN
        elif len(tokens) > MAX_TOKENS:
            raise _too_long(tokens[0])
    if tokens or directives:
        yield StatementTokens([*tokens, Token(Kind.END, "", len(text), len(text))], directives)


def tokens_of(text: str, *, start: int, end: int) -> list[Token]:
    """The tokens of a short text, with places of their own: that of the variable which holds it."""
    return [
        Token(token.kind, token.value, start, end)
        for statement in statements(text)
        for token in statement.tokens
        if token.value or token.kind is not Kind.END
    ]


def _token(match: re.Match[str], text: str) -> Token:
    start, end = match.span()
    written = match[0]
    match match.lastgroup:
        case "WORD":
            return Token(Kind.WORD, written.upper(), start, end)
        case "SYMBOL":
            return Token(Kind.SYMBOL, "<>" if written == "!=" else written, start, end)
        case "STRING":
            return Token(Kind.STRING, written[1:-1].replace("''", "'"), start, end)
        case "NAME":
            quote = written[0]
            return Token(Kind.NAME, written[1:-1].replace(quote * 2, quote), start, end)
        case "DIGITNAME":
            return Token(Kind.NAME, written.upper(), start, end)
        case "VARIABLE":
            return Token(Kind.VARIABLE, written[2:-1], start, end)
        case "DIRECTIVE":
            return Token(Kind.UNKNOWN, written.rstrip(), start, end)
        case "UNCLOSED":
            return Token(Kind.UNCLOSED, written, start, len(text))
        case other:
            return Token(Kind[other or "UNKNOWN"], written, start, end)


def _too_long(first: Token) -> StatementError:
    return StatementError(
        f"This statement has more than {MAX_TOKENS:,} words, numbers and symbols. Split it into several statements.",
        start=first.start,
        end=first.end,
    )
