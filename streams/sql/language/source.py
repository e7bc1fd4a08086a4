"""A text of statements, and places in it."""

from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple


class Place(NamedTuple):
    """Where something is in the text: offsets in characters, the end excluded."""

    start: int
    end: int


NOWHERE = Place(0, 0)
"""The place of what was not read from a text."""


class Position(NamedTuple):
    """Line and column of an offset, both counted from 1."""

    line: int
    column: int


class Source:
    """A text, and which of its lines an offset is in."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        found = self.text.find("\n")
        while found >= 0:
            starts.append(found + 1)
            found = self.text.find("\n", found + 1)
        return starts

    def position(self, offset: int) -> Position:
        """Line and column of an offset; of one behind the text, those of its end."""
        inside = min(offset, len(self.text))
        line = bisect_right(self._line_starts, inside)
        return Position(line, inside - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """A line without its end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].removesuffix("\r")

    def slice(self, place: Place) -> str:
        """What stands at a place."""
        return self.text[place.start : place.end]
