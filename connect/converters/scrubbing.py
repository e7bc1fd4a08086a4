"""Turns names that a format does not allow into names that it does, as Confluent's converters do."""

import re
from typing import Final
from urllib.parse import quote_plus

_is_word: Final = re.compile(r"[A-Za-z0-9_]*").fullmatch
_not_word: Final = re.compile(r"[^A-Za-z0-9_]")


def scrubbed(name: str, *, refused_first: str = "0123456789") -> str:
    """A name of letters, digits and underscores that does not begin with a refused character."""
    if not name or (_is_word(name) and name[0] not in refused_first):
        return name
    # Java's URL encoding keeps the asterisk, which then becomes an underscore like every other remaining character.
    encoded = quote_plus(name, safe="*")
    if encoded[0] in refused_first:
        encoded = f"x{encoded}"
    return _not_word.sub("_", encoded)
