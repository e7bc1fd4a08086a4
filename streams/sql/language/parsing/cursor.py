"""A place in the tokens of a statement: what comes next, what was expected, and the error if it is something else."""

from collections.abc import Sequence
from typing import Final

from streams.errors import StatementError
from streams.sql.language.source import Place
from streams.sql.language.tokens import NUMBERS, Kind, Token
from streams.sql.language.tree.expressions import StringLiteral
from streams.sql.language.tree.node import Identifier, too_deep
from streams.sql.language.words import KEYWORDS, RESERVED, closest, did_you_mean, is_likely_name, listed

MAX_DEPTH: Final = 80
"""Parentheses, calls and types within each other. Each takes up to eight of the thousand calls that Python nests."""
_OPENED: Final = {"'": "string", '"': "name in quotes", "`": "name in backquotes", "/*": "comment"}
_MOST_NAMED: Final = 5
"""How many expected words a message names."""
_MOST_SHOWN: Final = 30
"""How many characters of a token a message shows."""


class Cursor:
    """Walks over the tokens of one statement, and remembers at each which words would have been right there."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0
        self._depth = 0
        self._tried: list[str] = []
        self._tried_at = 0
        self.bare_alias: Token | None = None
        """The last alias without AS: perhaps a misspelt word."""

    # What comes next.

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def ahead(self, count: int) -> Token:
        """A token behind the next one, or the end."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Take the next token; the end is never taken."""
        token = self.tokens[self.index]
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def written(self, token: Token) -> str:
        """A token as it stands in the text, shortened."""
        if token.kind is Kind.END:
            return "the end of the statement"
        if token.kind is Kind.SYMBOL:
            return f"'{self.text[token.start : token.end]}'"
        if token.kind is Kind.STRING:
            return _shortened(f"the string {self.text[token.start : token.end]}")
        return _shortened(self.text[token.start : token.end])

    def is_word(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        for offset, word in enumerate(words):
            token = self.ahead(offset)
            if token.kind is not Kind.WORD or token.value != word:
                return False
        return True

    def is_symbol(self, symbol: str, *, ahead: int = 0) -> bool:
        """Whether the next token is a symbol."""
        token = self.ahead(ahead)
        return token.kind is Kind.SYMBOL and token.value == symbol

    def is_name(self, *, ahead: int = 0) -> bool:
        """Whether the next token can be a name."""
        token = self.ahead(ahead)
        return token.kind is Kind.NAME or (token.kind is Kind.WORD and token.value not in RESERVED)

    def is_end(self) -> bool:
        """Whether nothing follows."""
        return self.token.kind is Kind.END

    # What may come next.

    def accept(self, *words: str) -> bool:
        """Take these words if they are next; all of them, or none."""
        if self.is_word(*words):
            self.index += len(words)
            return True
        self.tried(words[0])
        return False

    def accept_one(self, words: Sequence[str]) -> str | None:
        """Take one of the words if it is next."""
        for word in words:
            if self.accept(word):
                return word
        return None

    def accept_symbol(self, symbol: str) -> bool:
        """Take a symbol if it is next."""
        if self.is_symbol(symbol):
            self.index += 1
            return True
        self.tried(symbol)
        return False

    def tried(self, what: str) -> None:
        """Remember what would have been right here."""
        if self._tried_at != self.index:
            self._tried, self._tried_at = [], self.index
        self._tried.append(what)

    # What must come next.

    def expect(self, *words: str, where: str = "") -> None:
        """Take these words one by one, or raise."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(f"Expected {word}{where and ' ' + where}")

    def expect_one(self, words: Sequence[str], *, where: str = "") -> str:
        """Take one of the words, or raise."""
        found = self.accept_one(words)
        if found is None:
            raise self.unexpected(f"Expected {listed(words)}{where and ' ' + where}")
        return found

    def expect_symbol(self, symbol: str, *, where: str) -> Token:
        """Take a symbol, or raise."""
        token = self.token
        if not self.accept_symbol(symbol):
            others = [other for other in self._expected() if other in {",", ")", "]", ">"} and other != symbol]
            shown = listed(f"'{name}'" for name in [*others, symbol])
            raise self.unexpected(f"Expected {shown} {where}")
        return token

    def expect_end(self) -> None:
        """Nothing may follow."""
        if self.is_end():
            return
        # A symbol is often only one of many that could continue the last expression: words say more.
        words = [word for word in self._expected() if word.isalpha()]
        if words and len(words) <= _MOST_NAMED:
            raise self.unexpected(f"Expected {listed(words)}, or the end of the statement")
        raise self.unexpected("Expected the end of the statement")

    def identifier(self, what: str) -> Identifier:
        """A name, or raise."""
        token = self.token
        if token.kind is Kind.NAME:
            if not token.value:
                raise self.error_at(token, f"The name of {what} is empty. Write at least one character in the quotes.")
        elif token.kind is Kind.WORD:
            self._refuse_bad_word(token, what)
        else:
            raise self.unexpected(f"Expected {what}")
        self.index += 1
        return Identifier(token.value, place=Place(token.start, token.end))

    def _refuse_bad_word(self, token: Token, what: str) -> None:
        written = self.text[token.start : token.end]
        if not written.isascii():
            message = f"Put a name with letters other than A to Z in backquotes: `{_shortened(written)}`."
            raise self.error_at(token, message)
        if is_likely_name(token.value):
            message = f"{token.value} is a reserved word. To use it as a name, put it in backquotes: `{token.value}`."
            raise self.error_at(token, message)
        if token.value in RESERVED:
            hint = "" if what.endswith("expression") else f" To use {token.value} as a name, put it in backquotes."
            raise self.unexpected(f"Expected {what}", hint=hint)

    def string(self, what: str) -> StringLiteral:
        """A string, or raise."""
        token = self.token
        if token.kind is not Kind.STRING:
            raise self.unexpected(f"Expected {what} in single quotes", hint=self.hint_at_quotes())
        self.index += 1
        return StringLiteral(token.value, place=Place(token.start, token.end))

    def hint_at_quotes(self) -> str:
        """What to write if the next token was meant as text."""
        token = self.token
        if token.kind not in {Kind.NAME, Kind.WORD} or token.value in KEYWORDS:
            return ""
        end = self.index
        while self.tokens[end + 1].value in {".", "-"} and self.tokens[end + 2].kind in {Kind.WORD, Kind.NAME}:
            end += 2
        text = self.text[token.start : self.tokens[end].end].strip('"`')
        return f" Write it in single quotes: '{_shortened(text)}'."

    def whole_number(self, what: str) -> int:
        """A whole number, which may be negative, or raise."""
        is_negative = self.accept_symbol("-")
        token = self.token
        if token.kind is not Kind.INTEGER:
            hint = " Fractions are not accepted: choose a smaller unit." if token.kind in NUMBERS else ""
            raise self.unexpected(f"Expected {what} as a whole number", hint=hint)
        if len(token.value) > 18:  # longer ones take Python long to read
            raise self.error_at(token, f"{_shortened(token.value)} is too large for {what}.")
        self.index += 1
        return -int(token.value) if is_negative else int(token.value)

    # Places, depth, errors.

    def place_from(self, start: int) -> Place:
        """From an offset to the end of what was taken last."""
        return Place(start, max(self.tokens[self.index - 1].end, start) if self.index else start)

    def enter(self) -> None:
        """Go one level deeper, or raise."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise too_deep(Place(self.token.start, self.token.end))

    def leave(self) -> None:
        """Leave a level; not called after an error."""
        self._depth -= 1

    def error_at(self, token: Token, message: str) -> StatementError:
        """An error at a token."""
        return StatementError(message, start=token.start, end=token.end)

    def unexpected(self, expected: str, *, hint: str = "") -> StatementError:
        """The error that something else was expected than what comes next."""
        token = self.token
        unreadable = self._unreadable(token)
        if unreadable is not None:
            return unreadable
        alias = self.bare_alias
        if alias is not None and alias is self.tokens[self.index - 1]:
            meant = closest(alias.value, [word for word in self._expected() if word.isalpha()])
            if meant:
                return self.error_at(alias, f"{expected}; found {self.written(alias)}. Did you mean {meant}?")
        if not hint and token.kind is Kind.WORD:
            others = [word for word in self._expected() if word != token.value]
            hint = did_you_mean(token.value, others)
        return self.error_at(token, f"{expected}; found {self.written(token)}.{hint}")

    def _unreadable(self, token: Token) -> StatementError | None:
        """A better error for what is no token at all."""
        if token.kind is Kind.UNCLOSED:
            what = _OPENED[token.value]
            end = "*/" if token.value == "/*" else token.value
            message = f"The {what} that begins here has no end. Close it with {end}"
            return StatementError(message, start=token.start, end=token.start + len(token.value))
        if token.kind is Kind.UNKNOWN:
            return self.error_at(
                token, f"{token.value!r} means nothing here. If it belongs to a name or a text, put that in quotes."
            )
        if token.kind is Kind.VARIABLE:
            message = f"The variable {token.value} is not defined. Write DEFINE {token.value} = '...'; first."
            return self.error_at(token, message)
        return None

    def _expected(self) -> list[str]:
        return list(dict.fromkeys(self._tried)) if self._tried_at == self.index else []


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_SHOWN else f"{flat[:_MOST_SHOWN]}..."
