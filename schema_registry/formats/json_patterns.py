"""Regular expressions of JSON Schema: checked when a schema is read, matched in linear time or not at all.

JSON Schema means ECMA 262. RE2 knows all of it but what needs backtracking (look-around and back references);
such patterns are accepted if they are well-formed, and whoever asks for a match is told that nobody knows.
"""

import re
import warnings
from functools import lru_cache

import re2

MAX_PATTERN_CHARS = 10_000

# Together they bound what hostile patterns can keep in memory; usual ones take a few kilobytes.
_MAX_COMPILED_BYTES = 1 << 20
_MAX_COMPILED_PATTERNS = 128

_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_CLASS_UNKNOWN_TO_PYTHON = re.compile(r"\\([pP](\{[\w=]{1,60}\}|[A-Z])|c[A-Za-z])")


def pattern_fault(pattern: str) -> str | None:
    """Why a text is no regular expression, or None if it is one."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"a pattern of more than {MAX_PATTERN_CHARS} characters"
    if _linear(pattern) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(in_python_spelling(pattern))
    except re.error as error:
        return str(error)
    except (RecursionError, OverflowError):
        return "nested too deeply"
    return None


def matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None if only a backtracking engine could tell."""
    compiled = _linear(pattern)
    return None if compiled is None else compiled.search(text) is not None


def in_python_spelling(pattern: str) -> str:
    """The pattern as Python spells it; classes of characters that Python lacks become letters, digits and `_`."""
    pattern = _NAMED_GROUP.sub("(?P<", pattern)
    pattern = _NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern)
    return _CLASS_UNKNOWN_TO_PYTHON.sub(r"\\w", pattern)


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
