"""Values for people: counts, sizes, ages; stack traces in one line; foreign text made safe to print."""

import re
from typing import Final

_BLOCK: Final = re.compile(r"^Traceback \(most recent call last\):\n", re.MULTILINE)
_CAUSED: Final = "Caused by: "
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_SPANS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def number(value: int) -> str:
    """1234567 as 1,234,567."""
    return f"{value:,}"


def plural(count: int, word: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """1500 as `1.5 kB`."""
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def duration(seconds: int) -> str:
    """A length of time in its largest fitting unit: `90 s`, `3 h`."""
    for length, unit in _SPANS:
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def printable(text: str) -> str:
    """Text from outside, safe for a terminal: control characters are shown as escapes."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def trace_summary(trace: str | None) -> str:
    """The error of a Python or Java stack trace in one line, then its first cause, if that is another."""
    if not trace or not trace.strip():
        return ""
    if _BLOCK.search(trace):
        # Python prints the cause first. Frames are indented, the error is not.
        errors = []
        for block in reversed(_BLOCK.split(trace)[1:]):
            line = next((line for line in block.splitlines() if line.strip() and not line.startswith(" ")), "")
            name, separator, message = line.partition(": ")
            errors += [f"{name.rpartition('.')[2]}{separator}{message}"] if line else []
    else:
        lines = [line.strip() for line in trace.splitlines() if line.strip()]
        errors = [lines[0], *(line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED))]
    return printable(" ← ".join(dict.fromkeys(errors[:1] + errors[-1:])))
