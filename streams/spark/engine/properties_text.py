"""Writes settings as a properties file that Java and our own reader understand."""

import re
from collections.abc import Mapping

_WRITTEN = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def properties_text(values: Mapping[str, str]) -> str:
    """A line per setting, with special characters escaped."""
    return "".join(f"{_escaped(key, more='=: #!')}={_escaped(value)}\n" for key, value in sorted(values.items()))


def _escaped(text: str, *, more: str = "") -> str:
    special = {**_WRITTEN, **{character: f"\\{character}" for character in f"\\{more}"}}
    escaped = "".join(special.get(character, character) for character in text)
    return re.sub(r"^ |(?<!\\) $", lambda _: "\\u0020", escaped)
