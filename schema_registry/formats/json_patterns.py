"""Regular expressions of JSON Schema: checked when a schema is read, matched in linear time or not at all.

JSON Schema means ECMA 262. RE2 knows all of it but what needs backtracking (look-around and back references);
such patterns are accepted if they are well-formed, and whoever asks for a match is told that nobody knows.
"""

import re
from functools import lru_cache

import re2

MAX_PATTERN_CHARS = 10_000
MAX_PATTERNS = 500
MAX_CHARS_IN_ALL = 100_000

# Together they bound what hostile patterns can keep in memory; usual ones take a few kilobytes.
_MAX_COMPILED_BYTES = 1 << 17
_MAX_COMPILED_PATTERNS = 128

_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_CLASS_UNKNOWN_TO_PYTHON = re.compile(r"\\([pP](\{[\w=]{1,60}\}|[A-Z])|c[A-Za-z])")
_WARNED_ABOUT = re.compile(r"\\.|\[\^?\[|--|&&|~~|\|\|", re.DOTALL)
"""Escapes, to pass over them, and what Python warns about; warnings cannot be silenced for one thread alone."""


def pattern_fault(pattern: str) -> str | None:
    """Why a text is no regular expression, or None if it is one."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"a pattern of more than {MAX_PATTERN_CHARS} characters"
    if _linear(pattern) is not None:
        return None
    try:
        re.compile(_in_python_spelling(pattern))
    except re.error as error:
        return str(error)
    except (RecursionError, OverflowError):
        return "nested too deeply"
    return None


class SchemaPatterns:
    """The patterns of one schema: each is checked once, which may take a millisecond, so there are only so many."""

    def __init__(self) -> None:
        self._faults: dict[str, str | None] = {}
        self._chars = 0

    def fault(self, pattern: str) -> str | None:
        """Why a text is no regular expression, or is one too many."""
        if pattern not in self._faults:
            self._chars += len(pattern)
            if len(self._faults) >= MAX_PATTERNS or self._chars > MAX_CHARS_IN_ALL:
                return f"the schema has more than {MAX_PATTERNS} of them or {MAX_CHARS_IN_ALL} characters in all"
            self._faults[pattern] = pattern_fault(pattern)
        return self._faults[pattern]


def matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None if only a backtracking engine could tell."""
    compiled = _linear(pattern)
    return None if compiled is None else compiled.search(text) is not None


def numbered(pattern: str) -> str:
    """The pattern with references to groups by their numbers instead of their names; it must have no fault."""
    if not _NAMED_BACK_REFERENCE.search(pattern):
        return pattern
    groups = re.compile(_in_python_spelling(pattern)).groupindex
    return _NAMED_BACK_REFERENCE.sub(lambda match: rf"(?:\{groups[match.group(1)]})", pattern)


def _in_python_spelling(pattern: str) -> str:
    """The pattern as Python spells it, as far as it matters to whether it is one."""
    pattern = _NAMED_GROUP.sub("(?P<", pattern)
    pattern = _NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern)
    pattern = _CLASS_UNKNOWN_TO_PYTHON.sub(r"\\w", pattern)
    return _WARNED_ABOUT.sub(_without_warning, pattern)


def _without_warning(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith("\\") else f"{found[:-1]}\\{found[-1]}"


def _quiet_options() -> "re2.Options":
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_COMPILED_BYTES
    return options


_OPTIONS = _quiet_options()


@lru_cache(maxsize=_MAX_COMPILED_PATTERNS)
def _linear(pattern: str) -> "re2._Regexp | None":
    try:
        return re2.compile(pattern, options=_OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None
