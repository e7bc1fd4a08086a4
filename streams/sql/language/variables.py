"""Variables: `${name}` in a statement becomes the value that DEFINE has given it.

A value takes the place of one token, so it can be a name or a literal, and never more: no value changes what a
statement does. Tokens keep their places, so errors point into the text that the user wrote.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from streams.errors import StatementError
from streams.sql.language.tokens import NUMBERS, Kind, Token, tokens_of
from streams.sql.language.words import RESERVED

_IN_STRING: Final = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_MAX_VALUE_CHARACTERS: Final = 100_000


class Variables:
    """The variables of a session; their names have no case."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = {name.upper(): value for name, value in (values or {}).items()}

    def define(self, name: str, value: str) -> None:
        """Give a variable a value."""
        self._values[name.upper()] = value

    def undefine(self, name: str) -> bool:
        """Forget a variable; False if there is none of that name."""
        return self._values.pop(name.upper(), None) is not None

    def get(self, name: str) -> str | None:
        """A variable's value."""
        return self._values.get(name.upper())

    def substitute(self, tokens: Sequence[Token]) -> list[Token]:
        """The tokens with values for variables; unknown ones stay, for the parser to refuse where they stand."""
        return [replaced for token in tokens for replaced in self._replacements(token)]

    def _replacements(self, token: Token) -> Iterator[Token]:
        if token.kind is Kind.STRING and "${" in token.value:
            yield Token(Kind.STRING, self._in_string(token), token.start, token.end)
        elif token.kind is Kind.VARIABLE and (value := self.get(token.value)) is not None:
            yield from _value_tokens(token, value)
        else:
            yield token

    def _in_string(self, token: Token) -> str:
        room = _MAX_VALUE_CHARACTERS + len(token.value)

        def replace(match: re.Match[str]) -> str:
            nonlocal room
            if match[1]:
                return match[0][1:]  # $${name} is ${name} as text
            value = self.get(match[2])
            if value is None:
                return match[0]
            room -= len(value)
            if room < 0:
                message = (
                    f"With the values of its variables, this string has more than {_MAX_VALUE_CHARACTERS:,} characters."
                )
                raise StatementError(message, start=token.start, end=token.end)
            return value

        return _IN_STRING.sub(replace, token.value)


def escaped(text: str) -> str:
    """A text for a string literal, in which nothing is taken for a variable."""
    return _IN_STRING.sub(lambda match: "$" + match[0], text)


def _value_tokens(variable: Token, value: str) -> list[Token]:
    """The value as one token, or a sign and a number."""
    found = tokens_of(value[:_MAX_VALUE_CHARACTERS], start=variable.start, end=variable.end)
    if len(found) == 1:
        token = found[0]
        if token.kind in {*NUMBERS, Kind.STRING, Kind.NAME} or token.value in {"TRUE", "FALSE"}:
            return found
        if token.kind is Kind.WORD and token.value not in RESERVED and value.isascii():
            return [Token(Kind.NAME, token.value, token.start, token.end)]
    if len(found) == 2 and found[0].value == "-" and found[1].kind in NUMBERS:
        return found
    raise StatementError(
        f"The variable {variable.value} is neither a name, a number, TRUE, FALSE nor text in quotes. "
        f"Where text is meant, write it in quotes: '${{{variable.value}}}'.",
        start=variable.start,
        end=variable.end,
    )
