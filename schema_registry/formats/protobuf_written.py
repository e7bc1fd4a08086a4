"""The details of a text that its descriptor does not have: names as written, the order of options, grouping."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from google.protobuf.descriptor_pb2 import SourceCodeInfo

Path = tuple[int, ...]
"""The path of an element in its file: field numbers of descriptor.proto and indexes, alternating."""
Position = tuple[int, int]

SYNTAX: Path = (12,)
_TYPE_NAME = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_MAP_VALUE = re.compile(r"map\s*<\s*\w+\s*,\s*([\w.]+)\s*>", re.ASCII)
_ONE_LINE = 3
"""Length of the span of an element that ends on the line where it begins: protoc leaves out the second line."""
_TAB = 8
_RANGE = re.compile(r"\S+\s+to\s+\S+")
_PARTS: Mapping[str, Mapping[int, str]] = {
    "file": {4: "message", 5: "enum", 6: "service", 7: "field", 8: "options"},
    "message": {2: "field", 3: "message", 4: "enum", 5: "range", 6: "field", 7: "options", 8: "oneof"},
    "field": {8: "options"},
    "oneof": {2: "options"},
    "range": {3: "options"},
    "enum": {2: "value", 3: "options"},
    "value": {3: "options"},
    "service": {2: "method", 3: "options"},
    "method": {4: "options"},
}
"""The kind of element at each field number of descriptor.proto, if it can have options inside."""
_BLOCKS = frozenset({"message", "enum", "service", "method"})
_LINES = frozenset({"field", "value", "range"})
"""Elements with their options in brackets."""


class Written:
    """A text that was compiled, by the paths of its elements."""

    def __init__(self, text: str, info: SourceCodeInfo, unknown: Sequence[tuple[int, int]] = ()) -> None:
        self._text = text
        self._spans: dict[Path, list[list[int]]] = {}
        """The spans of elements in protoc's columns: bytes, with tab stops every eight columns."""
        self._tabs: dict[int, list[Position]] = {}
        for location in info.location:
            self._spans.setdefault(tuple(location.path), []).append(location.span[:])
        self._unknown: dict[Path, list[list[int]]] = {}
        """The spans of undefined options, by the path of the option list that they belong to."""
        if unknown:
            self._assign_unknown(unknown)

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._text.encode(errors="replace").split(b"\n")

    @cached_property
    def _options(self) -> dict[Path, list[list[int]]]:
        """The spans of the options of each element, by the path of its option list."""
        options: dict[Path, list[list[int]]] = {}
        for path, spans in self._spans.items():
            length = _options_length(path)
            if length:
                options.setdefault(path[:length], []).extend(spans)
        return options

    @property
    def has_syntax(self) -> bool:
        """Whether there is a `syntax` statement, which is optional in proto2."""
        return SYNTAX in self._spans

    def type_name(self, path: Path) -> str | None:
        """The name of the type at this path as the client wrote it, if it is on one line."""
        word = self._word(path)
        return word if word and _TYPE_NAME.fullmatch(word) else None

    def map_value(self, path: Path) -> str | None:
        """The name of the value type, as the client wrote it, of the map whose type is at this path."""
        match = _MAP_VALUE.fullmatch(self._word(path) or "")
        return match[1] if match and _TYPE_NAME.fullmatch(match[1]) else None

    def is_range(self, path: Path) -> bool:
        """Whether the text has `x to y` at this path, even if the two numbers are equal."""
        return bool(_RANGE.fullmatch(self._word(path) or ""))

    def options(self, path: Path) -> list[str]:
        """The texts of the options in the list at this path, in their order."""
        spans = [*self._options.get(path, ()), *self._unknown.get(path, ())]
        return [self._slice(span) for span in sorted(spans, key=_start)]

    @property
    def unknown_options(self) -> dict[Path, list[str]]:
        """The texts of undefined options, by the path of the option list that they belong to."""
        return {path: [self._slice(span) for span in spans] for path, spans in self._unknown.items()}

    def statement(self, path: Path, index: int) -> Position | None:
        """The start of the statement with element `index` of the list at this path."""
        spans = self._spans.get((*path, index))
        if not spans:
            return None
        # Statements do not overlap, so it is the last one that begins before the element.
        start = _start(spans[0])
        statements = self._spans.get(path, [])
        count = bisect_right(statements, start, key=_start)
        return _start(statements[count - 1]) if count else None

    def messages_at(self, positions: Sequence[Position]) -> Iterator[Path]:
        """The innermost message around each position."""
        messages = {path: spans[0] for path, spans in self._spans.items() if _is_message(path)}
        begun = sorted(messages, key=lambda path: _start(messages[path]))
        for position in positions:
            count = bisect_right(begun, position, key=lambda path: _start(messages[path]))
            # The message that began last, or one around it.
            path = begun[count - 1] if count else ()
            while path and not _covers(messages[path], position):
                path = path[:-2]
            if path:
                yield path

    def _assign_unknown(self, unknown: Sequence[tuple[int, int]]) -> None:
        owners = _Owners(self._spans)
        offsets = sorted({offset for span in unknown for offset in span})
        positions = dict(zip(offsets, positions_of(self._text, offsets), strict=True))
        for begin, end in sorted(unknown):
            start = positions[begin]
            path = owners.options_at(start, is_statement=self._text[begin] != "(")
            self._unknown.setdefault(path, []).append([*start, *positions[end]])

    def _word(self, path: Path) -> str | None:
        spans = self._spans.get(path)
        return self._slice(spans[0]) if spans and len(spans[0]) == _ONE_LINE else None

    def _slice(self, span: Sequence[int]) -> str:
        (first, column), (last, end_column) = _start(span), _end(span)
        start, end = self._offset(first, column), self._offset(last, end_column)
        if first == last:
            return self._lines[first][start:end].decode(errors="replace")
        inner = self._lines[first + 1 : last]
        return b"\n".join([self._lines[first][start:], *inner, self._lines[last][:end]]).decode(errors="replace")

    def _offset(self, line: int, column: int) -> int:
        """The byte offset in a line of one of protoc's columns."""
        tabs = self._tabs.get(line)
        if tabs is None:
            tabs = self._tabs[line] = _tab_stops(self._lines[line])
        return _byte_offset(tabs, column)


class _Owners:
    """Finds the element that an option belongs to by its position: the innermost one around it that can have it."""

    def __init__(self, spans: Mapping[Path, list[list[int]]]) -> None:
        self._spans = spans
        kinds = {path: _kind(path) for path in spans}
        self._blocks = self._sorted(path for path, kind in kinds.items() if kind in _BLOCKS)
        self._oneofs = self._sorted(path for path, kind in kinds.items() if kind == "oneof")
        self._lines = self._sorted(path for path, kind in kinds.items() if kind in _LINES)

    def options_at(self, position: Position, *, is_statement: bool) -> Path:
        """The path of the option list for an option at this position."""
        if not is_statement:
            return self._options(self._last(self._lines, position))
        block = self._last(self._blocks, position)
        while block and not _covers(self._spans[block][0], position):
            block = block[:-2]
        oneof = self._last(self._oneofs, position)
        if oneof and _covers(self._spans[oneof][0], position) and len(oneof) > len(block):
            block = oneof
        return self._options(block)

    def _sorted(self, paths: Iterator[Path]) -> list[Path]:
        return sorted(paths, key=self._begin)

    def _begin(self, path: Path) -> Position:
        return _start(self._spans[path][0])

    def _last(self, paths: list[Path], position: Position) -> Path:
        count = bisect_right(paths, position, key=self._begin)
        return paths[count - 1] if count else ()

    def _options(self, path: Path) -> Path:
        parts = _PARTS[_kind(path)]
        return (*path, next(number for number, part in parts.items() if part == "options"))


def offsets_of(text: str, positions: Sequence[Position]) -> list[int]:
    """The offsets in the text of positions in protoc's columns; positions outside the text are left out."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    offsets = []
    for line, column in positions:
        if line < len(lines):
            content = lines[line].encode(errors="replace")
            before = content[: _byte_offset(_tab_stops(content), column)]
            offsets.append(starts[line] + len(before.decode(errors="replace")))
    return offsets


def positions_of(text: str, offsets: Sequence[int]) -> list[Position]:
    """The positions in protoc's columns of sorted offsets in the text."""
    positions = []
    line = column = before = 0
    for offset in offsets:
        *lines, rest = text[before:offset].encode(errors="replace").split(b"\n")
        line, column = line + len(lines), 0 if lines else column
        column += len((b" " * (column % _TAB) + rest).expandtabs(_TAB)) - column % _TAB
        before = offset
        positions.append((line, column))
    return positions


def _start(span: Sequence[int]) -> Position:
    return span[0], span[1]


def _end(span: Sequence[int]) -> Position:
    return (span[0], span[2]) if len(span) == _ONE_LINE else (span[2], span[3])


def _covers(span: Sequence[int], position: Position) -> bool:
    return _start(span) <= position < _end(span)


def _byte_offset(tabs: Sequence[Position], column: int) -> int:
    count = bisect_right(tabs, column, key=lambda stop: stop[0])
    after_column, after_offset = tabs[count - 1] if count else (0, 0)
    return after_offset + column - after_column


def _tab_stops(line: bytes) -> list[Position]:
    """Column and offset after each tab."""
    stops = []
    column = offset = 0
    *cells, _ = line.split(b"\t")
    for cell in cells:
        column += len(cell)
        column += _TAB - column % _TAB
        offset += len(cell) + 1
        stops.append((column, offset))
    return stops


def _options_length(path: Path) -> int:
    """The length of the part of a path that leads to an option list; zero if there is none."""
    kind = "file"
    for index in range(0, len(path) - 1, 2):
        kind = _PARTS[kind].get(path[index], "")
        if kind == "options":
            return index + 1
        if not kind:
            return 0
    return 0


def _kind(path: Path) -> str:
    """The kind of the element at a path; empty if it cannot have options."""
    kind = "file"
    for number in path[::2]:
        kind = _PARTS.get(kind, {}).get(number, "")
    return kind if len(path) % 2 == 0 and kind in _PARTS else ""


def _is_message(path: Path) -> bool:
    return len(path) % 2 == 0 and len(path) > 0 and path[0] == 4 and all(number == 3 for number in path[2::2])
