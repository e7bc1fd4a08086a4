"""Undefined custom options: Confluent's registry keeps them as they are written, but protoc rejects them.

They are blanked out for protoc, and kept by their positions in the text.
"""

import re
from collections.abc import Iterator, Sequence

from schema_registry.formats.protobuf_option_text import TOKEN, UnknownSyntax
from schema_registry.formats.schema import InvalidSchema

MAX_UNKNOWN = 10_000
_ERROR = re.compile(
    r"""^(?:\S+:)?(\d+):(\d+):\ Option\ (?:field\ )?"\([^\n]{1,1000}?"\ (?:unknown|is\ not\ a\ field\ or\ extension)""",
    re.MULTILINE | re.VERBOSE,
)
_STATEMENT = re.compile(r"\boption\s*\Z", re.ASCII)
_STRING_OR_COMMENT = re.compile(
    r"""
    "[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|//[^\n]*|/\*(?s:.*?)\*/
    """,
    re.VERBOSE,
)
_OPENING = frozenset("{<[(")
_CLOSING = frozenset("}>])")

Span = tuple[int, int]
"""Start and end of an option in the text."""


def positions_in(errors: str) -> list[tuple[int, int]]:
    """Zero-based lines and columns of the undefined options in protoc's errors."""
    return [(int(match[1]) - 1, int(match[2]) - 1) for match in _ERROR.finditer(errors)]


def find_spans(text: str, offsets: Sequence[int]) -> list[Span]:
    """The spans of the options whose names begin at these offsets, from `option` to `;` or inside their brackets."""
    if len(offsets) > MAX_UNKNOWN:
        raise InvalidSchema(f"the schema has more than {MAX_UNKNOWN} undefined options")
    found = []
    for offset in offsets:
        # The word `option` is searched for only a short way back, so that a long text is not scanned for each offset.
        statement = _STATEMENT.search(text, max(0, offset - 1000), offset)
        found.append((statement.start() if statement else offset, _end(text, offset, is_statement=bool(statement))))
    return found


def blank_out(text: str, options: Sequence[Span]) -> str:
    """The text with options and comments replaced by blanks; everything else stays in its place."""
    letters = list(text)
    for match in _STRING_OR_COMMENT.finditer(text):
        if match[0].startswith("/"):
            _blank(letters, *match.span())
    for start, end in options:
        _blank(letters, start, end)
        if text[start] == "(":
            _close_gap(letters, start, end)
    return "".join(letters)


def _blank(letters: list[str], start: int, end: int) -> None:
    for index in range(start, end):
        if letters[index] not in "\n\t":
            # As many blanks as bytes, because protoc counts columns in bytes.
            letters[index] = " " * len(letters[index].encode(errors="replace"))


def _close_gap(letters: list[str], start: int, end: int) -> None:
    """Remove a comma beside an option in brackets, or the brackets if nothing is left in them."""
    before, after = _skip_blanks(letters, start - 1, step=-1), _skip_blanks(letters, end, step=1)
    if letters[after] == ",":
        letters[after] = " "
    elif letters[before] == ",":
        letters[before] = " "
    elif letters[before] == "[" and letters[after] == "]":
        letters[before] = letters[after] = " "


def _skip_blanks(letters: list[str], index: int, *, step: int) -> int:
    while 0 < index < len(letters) - 1 and not letters[index].strip():
        index += step
    return index


def _end(text: str, start: int, *, is_statement: bool) -> int:
    depth = 0
    end = start
    for place, token in _tokens(text, start):
        if depth == 0 and token == ";":
            return place + 1 if is_statement else end
        if depth == 0 and token in ",]":
            return end
        depth += (token in _OPENING) - (token in _CLOSING)
        end = place + len(token)
    raise UnknownSyntax(text[start : start + 100])


def _tokens(text: str, start: int) -> Iterator[tuple[int, str]]:
    while start < len(text):
        match = TOKEN.match(text, start)
        if match is None:
            raise UnknownSyntax(text[start : start + 100])
        if match.lastgroup:
            yield match.start(), match[0]
        start = match.end()
