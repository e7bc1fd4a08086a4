"""Regular expressions and replacements as Java writes them.

Named groups, `\\Q…\\E`, `\\z` and `\\Z`, `\\p{…}` for ASCII and flags in the middle are translated. Nested character
classes (`[a-z&&[^b]]`) have no counterpart and are rejected.
"""

import re
from collections.abc import Iterator
from typing import Final

from connect.api.errors import ConfigError

_TOKEN: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\[pP]\{(?P<property>\w+)\}"
    r"|\\k<(?P<back>\w+)>"
    r"|\\(?P<escape>.)"
    r"|\(\?<(?P<name>[A-Za-z][A-Za-z0-9]*)>"
    r"|\(\?(?P<flags>[idmsuxU]+)\)"
    r"|\(\?(?P<scoped>[idmsuxU]+):"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<klass>\[\^?\]?)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_PROPERTIES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
    "IsAlphabetic": "a-zA-Z",
    "IsDigit": "0-9",
    "L": "a-zA-Z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "Nd": "0-9",
}
_ESCAPES: Final = {"z": r"\Z", "Z": r"(?=\n?\Z)", "h": r"[ \t\xa0]", "R": r"(?:\r\n|[\n-\r])", "e": r"\x1b"}
_GROUP_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9]*)\}|\$([0-9]+)|\\(.)|([$\\])|([^$\\]+)", re.DOTALL)

Part = str | int
"""Text, or the number of the group whose text goes there."""


def compile_pattern(pattern: str, key: str = "regex") -> re.Pattern[str]:
    """A Java pattern; ConfigError, with the name of the option, when it is invalid or cannot be translated."""
    try:
        return re.compile("".join(_translate(pattern)), re.ASCII)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise ConfigError(f"Invalid value {pattern} for configuration {key}: Invalid regex: {error}") from None


class Replacement:
    """A Java replacement: `$1` and `${name}` stand for groups, a backslash escapes the next character."""

    def __init__(self, text: str, pattern: re.Pattern[str], *, key: str = "replacement") -> None:
        try:
            self._parts = tuple(_parts(text, pattern))
        except ValueError as error:
            raise ConfigError(f"Invalid value {text} for configuration {key}: {error}") from None

    def expand(self, found: re.Match[str]) -> str:
        """The replacement of one match; groups that did not take part are empty."""
        return "".join([part if isinstance(part, str) else found[part] or "" for part in self._parts])


class Rename:
    """Renames what a pattern matches as a whole, by replacing the first match."""

    def __init__(
        self, pattern: str, replacement: str, *, key: str = "regex", replacement_key: str = "replacement"
    ) -> None:
        self._pattern = compile_pattern(pattern, key)
        self._replacement = Replacement(replacement, self._pattern, key=replacement_key)

    def __call__(self, name: str) -> str | None:
        """The new name; None when the pattern does not match."""
        if not self._pattern.fullmatch(name):
            return None
        found = self._pattern.search(name)
        if found is None:
            return None
        return f"{name[: found.start()]}{self._replacement.expand(found)}{name[found.end() :]}"


def _translate(pattern: str) -> Iterator[str]:
    """Pieces of the Python pattern. `(?i)` in the middle is valid up to the end of its group, where we close it."""
    closings = [""]
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise ValueError(f"cannot be parsed at {at}")
        at = found.end()
        if found["flags"] is not None:
            yield f"(?{_flags(found['flags'])}:"
            closings[-1] += ")"
        elif found["klass"] is not None:
            piece, at = _character_class(pattern, found.start())
            yield piece
        elif found["close"] is not None:
            yield (closings.pop() if len(closings) > 1 else "") + ")"
        else:
            yield _piece(found)
            if found["open"] or found["name"] or found["scoped"]:
                closings.append("")
    yield closings[0]


def _piece(found: re.Match[str]) -> str:
    kind = found.lastgroup
    match kind:
        case "quoted":
            return re.escape(found["quoted"])
        case "property":
            return f"[{'^' if found[0][1] == 'P' else ''}{_property(found['property'])}]"
        case "back":
            return f"(?P={found['back']})"
        case "escape":
            return _ESCAPES.get(found["escape"], found[0])
        case "name":
            return f"(?P<{found['name']}>"
        case "scoped":
            return f"(?{_flags(found['scoped'])}:"
        case _:
            return found[0]


def _flags(flags: str) -> str:
    """The flags that Python supports within a pattern; the others do not matter for names of topics."""
    return "".join(sorted(set(flags) & set("imsx")))


def _property(name: str) -> str:
    if name not in _PROPERTIES:
        raise ValueError(f"unknown character property {name}; supported are {', '.join(_PROPERTIES)}")
    return _PROPERTIES[name]


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    begin = start + 2 if pattern.startswith("[^", start) else start + 1
    pieces = [pattern[start:begin]]
    at = begin
    while at < len(pattern) and (pattern[at] != "]" or at == begin):
        piece, at = _class_member(pattern, at)
        pieces.append(piece)
    return "".join([*pieces, pattern[at : at + 1]]), at + 1


def _class_member(pattern: str, at: int) -> tuple[str, int]:
    found = _TOKEN.match(pattern, at)
    if found is None or pattern[at] == "[" or pattern.startswith("&&", at):
        raise ValueError("nested character classes are not supported")
    if found["property"]:
        return _property(found["property"]), found.end()
    if found["escape"]:
        return found[0], found.end()
    # Python reserves these for set operations that it may have one day, and warns of them.
    is_reserved = pattern[at] in "|~&" or pattern.startswith("--", at - 1)
    return f"\\{pattern[at]}" if is_reserved else pattern[at], at + 1


def _parts(text: str, pattern: re.Pattern[str]) -> Iterator[Part]:
    for found in _GROUP_REFERENCE.finditer(text):
        name, number, escaped, alone, plain = found.groups()
        if name is not None:
            if name not in pattern.groupindex:
                raise ValueError(f"No group with name {{{name}}}")
            yield pattern.groupindex[name]
        elif number is not None:
            yield from _group_number(number, pattern.groups)
        elif alone is not None:
            raise ValueError("Illegal group reference" if alone == "$" else "character to be escaped is missing")
        else:
            yield escaped if plain is None else plain


def _group_number(digits: str, groups: int) -> Iterator[Part]:
    """The longest number that is a group; the digits after it are text."""
    if int(digits[0]) > groups:
        raise ValueError(f"No group {digits[0]}")
    length = max(n for n in range(1, min(len(digits), 9) + 1) if n == 1 or int(digits[:n]) <= groups)
    yield int(digits[:length])
    if digits[length:]:
        yield digits[length:]
