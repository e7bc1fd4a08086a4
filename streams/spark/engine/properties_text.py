"""Settings as the text of a properties file, as Java and our own reader understand it."""

import re
from collections.abc import Mapping

_WRITTEN = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def properties_text(values: Mapping[str, str]) -> str:
    """A line per setting; what would be read as something else is escaped."""
    return "".join(f"{_escaped(key, more='=: #!')}={_escaped(value)}\n" for key, value in sorted(values.items()))


def _escaped(text: str, *, more: str = "") -> str:
    escaped = "".join(_WRITTEN.get(character) or _with_backslash(character, more) for character in text)
    return re.sub(r"^ |(?<!\\) $", lambda _: "\\u0020", escaped)


def _with_backslash(character: str, more: str) -> str:
    return f"\\{character}" if character == "\\" or character in more else character
