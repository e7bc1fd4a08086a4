"""Print reserved numbers and names, and extension ranges, as .proto text."""

from collections.abc import Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from schema_registry.formats.protobuf_layout import option_brackets
from schema_registry.formats.protobuf_options import OptionPrinter, quote
from schema_registry.formats.protobuf_written import Path, Position, Written

_MAX_FIELD_NUMBER = (1 << 29) - 1
_MAX_ENUM_NUMBER = (1 << 31) - 1
_EXTENSION_RANGE = 5
Ranges = Sequence[tuple[int, int]]
"""First and last number, both included."""


class RangePrinter:
    """Prints the ranges of one file."""

    def __init__(self, syntax: str, options: OptionPrinter, written: Written | None, *, normalized: bool) -> None:
        # Editions write reserved names without quotes.
        self._name_text = str if syntax == "editions" else quote
        self._options = options
        self._written = written
        self._normalized = normalized

    def reserved(
        self, owner: DescriptorProto | EnumDescriptorProto, *, path: Path, numbers: int, names: int
    ) -> list[str]:
        """The `reserved` statements of a message or an enum, grouped as the client wrote them."""
        ranges, largest = _reserved_ranges(owner)
        words = [self._name_text(name) for name in owner.reserved_name]
        if self._normalized:
            texts = [_range_text(*ends, largest) for ends in sorted(ranges)] + sorted(words)
            return [f"reserved {text};\n" for text in texts]
        placed = [
            (self._statement((*path, numbers), index), self._range((*path, numbers, index), ends, largest))
            for index, ends in enumerate(ranges)
        ]
        placed += [(self._statement((*path, names), index), word) for index, word in enumerate(words)]
        return [f"reserved {', '.join(texts)};\n" for texts in _group_by_statement(placed)]

    def extensions(self, message: DescriptorProto, path: Path) -> list[str]:
        """The `extensions` statements of a message."""
        placed: list[tuple[Position | None, str, str]] = []
        for index, extent in enumerate(message.extension_range):
            ends = (extent.start, extent.end - 1)
            text = self._range((*path, _EXTENSION_RANGE, index), ends, _MAX_FIELD_NUMBER)
            options = option_brackets(self._options.options(extent.options, (*path, _EXTENSION_RANGE, index, 3)))
            placed.append((self._statement((*path, _EXTENSION_RANGE), index), text, options))
        if self._normalized:
            order = sorted(range(len(placed)), key=lambda index: message.extension_range[index].start)
            return [f"extensions {placed[index][1]}{placed[index][2]};\n" for index in order]
        lines = []
        for texts in _group_by_statement([(position, text) for position, text, _ in placed]):
            options = next(options for _, text, options in placed if text == texts[0])
            lines.append(f"extensions {', '.join(texts)}{options};\n")
        return lines

    def _range(self, path: Path, ends: tuple[int, int], largest: int) -> str:
        if ends[0] == ends[1] and self._written and self._written.is_range(path):
            return f"{ends[0]} to {ends[1]}"
        return _range_text(*ends, largest)

    def _statement(self, path: Path, index: int) -> Position | None:
        return self._written.statement(path, index) if self._written else None


def _reserved_ranges(owner: DescriptorProto | EnumDescriptorProto) -> tuple[Ranges, int]:
    if isinstance(owner, EnumDescriptorProto):
        # Enums include the end of a range, messages do not.
        return [(extent.start, extent.end) for extent in owner.reserved_range], _MAX_ENUM_NUMBER
    return [(extent.start, extent.end - 1) for extent in owner.reserved_range], _MAX_FIELD_NUMBER


def _range_text(first: int, last: int, largest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= largest else last}"


def _group_by_statement(placed: Sequence[tuple[Position | None, str]]) -> list[list[str]]:
    """Group texts by their statements, in order; a text without a position gets a statement of its own."""
    statements: dict[Position | int, list[str]] = {}
    for index, (position, text) in enumerate(placed):
        statements.setdefault(index if position is None else position, []).append(text)

    def sort_key(statement: Position | int) -> Position:
        return statement if isinstance(statement, tuple) else (-1, statement)

    return [statements[statement] for statement in sorted(statements, key=sort_key)]
