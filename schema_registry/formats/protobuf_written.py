"""What a descriptor forgets of the text it was compiled from: names as written, order of options, grouping."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from google.protobuf.descriptor_pb2 import SourceCodeInfo

Path = tuple[int, ...]
"""Where an element is in its file: field numbers and indexes of descriptor.proto, in turns."""
Position = tuple[int, int]

SYNTAX: Path = (12,)
_TYPE_NAME = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_MAP_VALUE = re.compile(r"map\s*<\s*\w+\s*,\s*([\w.]+)\s*>", re.ASCII)
_ONE_LINE = 3
"""Numbers in the span of an element that ends on the line where it begins: the line is not told twice."""
_OPTION_DEPTH = 3
"""Levels below an option that protoc still gives a position to: `(x).y` and elements of lists."""


class Written:
    """One text, asked by the paths of its elements."""

    def __init__(self, text: str, info: SourceCodeInfo) -> None:
        self._text = text
        self._spans: dict[Path, list[list[int]]] = {}
        """Where elements begin and end, in protoc's columns: bytes, with tabs widened to eight."""
        for location in info.location:
            self._spans.setdefault(tuple(location.path), []).append(location.span[:])

    @cached_property
    def _lines(self) -> list[bytes]:
        return [line.expandtabs(8) for line in self._text.encode(errors="replace").split(b"\n")]

    @cached_property
    def _starts(self) -> dict[Path, Position]:
        """Where elements begin, those included that have only parts with a position."""
        starts: dict[Path, Position] = {}
        for path, spans in self._spans.items():
            for length in range(len(path), max(0, len(path) - _OPTION_DEPTH), -1):
                starts.setdefault(path[:length], _start(spans[0]))
        return starts

    @property
    def has_syntax(self) -> bool:
        """Whether there is a `syntax` statement, which proto2 files may leave out."""
        return SYNTAX in self._spans

    def type_name(self, path: Path) -> str | None:
        """How the text names the type at this path, if in one word."""
        word = self._word(path)
        return word if word and _TYPE_NAME.fullmatch(word) else None

    def map_value(self, path: Path) -> str | None:
        """How the text names the type of the values of the map field whose type is at this path."""
        match = _MAP_VALUE.fullmatch(self._word(path) or "")
        return match[1] if match and _TYPE_NAME.fullmatch(match[1]) else None

    def start(self, path: Path) -> Position | None:
        """Where the element begins."""
        return self._starts.get(path)

    def statement(self, path: Path, index: int) -> Position | None:
        """Where the statement begins that holds element `index` of the list at this path."""
        start = self._starts.get((*path, index))
        if start is None:
            return None
        return next((_start(span) for span in self._spans.get(path, ()) if _covers(span, start)), None)

    def messages_at(self, positions: Sequence[Position]) -> Iterator[Path]:
        """The innermost message around each position."""
        messages = [(path, spans[0]) for path, spans in self._spans.items() if _is_message(path)]
        for position in positions:
            around = [path for path, span in messages if _covers(span, position)]
            if around:
                yield max(around, key=len)

    def _word(self, path: Path) -> str | None:
        span = self._spans.get(path, [[]])[0]
        if len(span) != _ONE_LINE:
            return None
        line, first, last = span
        return self._lines[line][first:last].decode(errors="replace")


def position_of(text: str, offset: int) -> Position:
    """The position, as protoc counts, of a character of the text."""
    before = text[:offset].encode(errors="replace")
    line_start = before.rfind(b"\n") + 1
    return before.count(b"\n"), len(before[line_start:].expandtabs(8))


def _start(span: Sequence[int]) -> Position:
    return span[0], span[1]


def _covers(span: Sequence[int], position: Position) -> bool:
    end = (span[0], span[2]) if len(span) == _ONE_LINE else (span[2], span[3])
    return _start(span) <= position < end


def _is_message(path: Path) -> bool:
    return len(path) % 2 == 0 and len(path) > 0 and path[0] == 4 and all(number == 3 for number in path[2::2])
