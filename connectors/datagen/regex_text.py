"""Random texts that match a regular expression of literals, classes, groups, alternatives and repetition."""

import random
import string
from collections.abc import Callable
from typing import Final

from connect.api.errors import ConfigError

Draw = Callable[[random.Random], str]
"""Makes a random text."""

REPEAT_WITHOUT_END: Final = 8
"""How often `*`, `+` and `{3,}` repeat at most, beyond what they must."""
REPEAT_MAX: Final = 10_000
_NESTING_MAX: Final = 50
_PRINTABLE: Final = "".join(map(chr, range(32, 127)))
_CLASSES: Final = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " "}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r"}


def drawer_of(pattern: str) -> Draw:
    """A function that makes texts which match the pattern; ConfigError for patterns that are not supported."""
    parser = _Parser(pattern)
    draw = parser.alternatives()
    if parser.rest:
        raise parser.error("an unmatched closing bracket")
    return draw


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._depth = 0

    @property
    def rest(self) -> str:
        return self._pattern[self._place :]

    def error(self, reason: str) -> ConfigError:
        return ConfigError(f"the regex {self._pattern!r} is not supported at {self._place}: {reason}")

    def alternatives(self) -> Draw:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise self.error("brackets are nested too deeply")
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        self._depth -= 1
        if len(branches) == 1:
            return branches[0]
        return lambda chance: chance.choice(branches)(chance)

    def _sequence(self) -> Draw:
        parts: list[Draw] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._repetition(self._atom()))
        if len(parts) == 1:
            return parts[0]
        return lambda chance: "".join([part(chance) for part in parts])

    def _atom(self) -> Draw:
        match character := self._next():
            case "(":
                self._take("?:")
                inner = self.alternatives()
                if not self._take(")"):
                    raise self.error("a bracket is not closed")
                return inner
            case "[":
                return _one_of(self._class())
            case ".":
                return _one_of(_PRINTABLE)
            case "\\":
                return _one_of(self._escape())
            case "^" | "$":
                return lambda _: ""
            case "*" | "+" | "?" | "{":
                raise self.error("nothing to repeat")
            case _:
                return lambda _: character

    def _repetition(self, draw: Draw) -> Draw:
        if self._take("*"):
            low, high = 0, REPEAT_WITHOUT_END
        elif self._take("+"):
            low, high = 1, 1 + REPEAT_WITHOUT_END
        elif self._take("?"):
            low, high = 0, 1
        elif self._take("{"):
            low, high = self._bounds()
        else:
            return draw
        return lambda chance: "".join([draw(chance) for _ in range(chance.randint(low, high))])

    def _bounds(self) -> tuple[int, int]:
        inside, closed, _ = self.rest.partition("}")
        low, comma, high = inside.partition(",")
        try:
            least = int(low or "0")
            most = int(high) if high else (least + REPEAT_WITHOUT_END if comma else least)
        except ValueError:
            raise self.error("not a number of repetitions") from None
        if not closed or not 0 <= least <= most <= REPEAT_MAX:
            raise self.error(f"repetitions must be between 0 and {REPEAT_MAX}")
        self._place += len(inside) + 1
        return least, most

    def _class(self) -> str:
        is_negated = self._take("^")
        characters = ""
        while not self._take("]"):
            first = self._class_part()
            if len(first) == 1 and self.rest[:1] == "-" and self.rest[1:2] not in ("]", ""):
                self._next()
                last = self._class_part()
                if len(last) != 1 or last < first:
                    raise self.error("an invalid range of characters")
                first = "".join(map(chr, range(ord(first), ord(last) + 1)))
            characters += first
        if is_negated:
            characters = "".join(character for character in _PRINTABLE if character not in characters)
        if not characters:
            raise self.error("a class without characters")
        return characters

    def _class_part(self) -> str:
        character = self._next()
        return self._escape() if character == "\\" else character

    def _escape(self) -> str:
        character = self._next()
        if character.lower() in _CLASSES and character.isupper():
            return "".join(other for other in _PRINTABLE if other not in _CLASSES[character.lower()])
        return _CLASSES.get(character) or _CONTROLS.get(character, character)

    def _next(self) -> str:
        if not self.rest:
            raise self.error("it ends unexpectedly")
        self._place += 1
        return self._pattern[self._place - 1]

    def _take(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._place)
        self._place += len(text) if found else 0
        return found


def _one_of(characters: str) -> Draw:
    if len(characters) == 1:
        return lambda _: characters
    return lambda chance: chance.choice(characters)
