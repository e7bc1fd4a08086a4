"""Regular expressions of JSON Schema: checked when a schema is parsed, matched in linear time or not at all.

JSON Schema uses the syntax of ECMA 262. RE2 supports it, except for what needs backtracking (look-around and back
references). Such patterns are accepted if they are well-formed, but whether they match is unknown.
"""

import re
from functools import lru_cache

import re2

MAX_PATTERN_CHARS = 10_000
MAX_PATTERNS = 500
MAX_CHARS_IN_ALL = 100_000

# Together they bound the memory of hostile patterns; ordinary ones take a few kilobytes.
_MAX_COMPILED_BYTES = 1 << 17
_MAX_COMPILED_PATTERNS = 128

_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_CLASS_UNKNOWN_TO_PYTHON = re.compile(r"\\([pP](\{[\w=]{1,60}\}|[A-Z])|c[A-Za-z])")
_WARNED_ABOUT = re.compile(r"\\.|\[\^?\[|--|&&|~~|\|\|", re.DOTALL)
"""Escapes, which are skipped, and sequences that Python warns about: warnings cannot be silenced per thread."""


def pattern_fault(pattern: str) -> str | None:
    """Why a text is not a regular expression; None if it is one."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"longer than {MAX_PATTERN_CHARS} characters"
    if _compile_linear(pattern) is not None:
        return None
    try:
        re.compile(_in_python_spelling(pattern))
    except re.error as error:
        return str(error)
    except (RecursionError, OverflowError):
        return "nested too deeply"
    return None


class SchemaPatterns:
    """The patterns of one schema. Checking one may take a millisecond, so each is checked once, up to a maximum."""

    def __init__(self) -> None:
        self._faults: dict[str, str | None] = {}
        self._chars = 0

    def fault(self, pattern: str) -> str | None:
        """Why a text is not a regular expression, or is one too many; None if it is fine."""
        if pattern not in self._faults:
            self._chars += len(pattern)
            if len(self._faults) >= MAX_PATTERNS or self._chars > MAX_CHARS_IN_ALL:
                return f"the schema has more than {MAX_PATTERNS} patterns, or {MAX_CHARS_IN_ALL} characters of them"
            self._faults[pattern] = pattern_fault(pattern)
        return self._faults[pattern]


def matches(pattern: str, text: str) -> bool | None:
    """Whether the text contains a match; None if only a backtracking engine could find out."""
    compiled = _compile_linear(pattern)
    return None if compiled is None else compiled.search(text) is not None


def numbered(pattern: str) -> str:
    """The pattern with numbers instead of names in references to groups; it must be valid."""
    if not _NAMED_BACK_REFERENCE.search(pattern):
        return pattern
    groups = re.compile(_in_python_spelling(pattern)).groupindex
    return _NAMED_BACK_REFERENCE.sub(lambda match: rf"(?:\{groups[match.group(1)]})", pattern)


def _in_python_spelling(pattern: str) -> str:
    """The pattern in Python's syntax, as far as it matters for whether it is valid."""
    pattern = _NAMED_GROUP.sub("(?P<", pattern)
    pattern = _NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern)
    pattern = _CLASS_UNKNOWN_TO_PYTHON.sub(r"\\w", pattern)
    return _WARNED_ABOUT.sub(_escape_last, pattern)


def _escape_last(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith("\\") else f"{found[:-1]}\\{found[-1]}"


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = _MAX_COMPILED_BYTES


@lru_cache(maxsize=_MAX_COMPILED_PATTERNS)
def _compile_linear(pattern: str) -> "re2._Regexp | None":
    try:
        return re2.compile(pattern, options=_OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None
