"""Stack traces in one line: what happened, and what it was caused by; text from outside, fit for a terminal."""

import re
from typing import Final

_BLOCK: Final = re.compile(r"^Traceback \(most recent call last\):\n", re.MULTILINE)
_CAUSED: Final = "Caused by: "
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def summary(trace: str | None) -> str:
    """The first line that tells something, of Python's traces and of Java's; then the first cause, if it is another."""
    if not trace or not trace.strip():
        return ""
    told = _python(trace) if _BLOCK.search(trace) else _java(trace)
    return printable(" ← ".join(dict.fromkeys(told[:1] + told[-1:])))


def _python(trace: str) -> list[str]:
    """The last error and those before it: Python tells the cause first."""
    lines = (_error_line(block) for block in _BLOCK.split(trace)[1:])
    return [line for line in lines if line][::-1]


def _error_line(block: str) -> str:
    """Frames are indented, the error is not."""
    line = next((line for line in block.splitlines() if line.strip() and not line.startswith(" ")), "")
    name, separator, message = line.partition(": ")
    return f"{name.rpartition('.')[2]}{separator}{message}"


def _java(trace: str) -> list[str]:
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    return [lines[0], *(line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED))]


def printable(text: str) -> str:
    """Text from outside, fit for a terminal: what would steer it is shown as an escape."""
    return _STEERING.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
