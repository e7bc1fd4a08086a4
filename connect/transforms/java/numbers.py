"""Numbers as Java converts them: integers wrap around, fractions are truncated, text is parsed strictly."""

import math
import re
import struct
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?", re.ASCII
)
_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf}
_BLANKS: Final = "".join(map(chr, range(33)))
_FLOAT32: Final = struct.Struct("<f")
_MOST_DIGITS: Final = 400


def wrap(value: int, bits: int) -> int:
    """The lowest bits of an integer as a signed number: 300 in 8 bits is 44."""
    half = 1 << (bits - 1)
    return value if -half <= value < half else ((value + half) & ((1 << bits) - 1)) - half


def truncate(value: float, bits: int) -> int:
    """A number without its fraction; one that 32 or 64 bits cannot hold is clamped to their range, NaN becomes 0.

    8 and 16 bits take the lowest bits of the 32-bit result.
    """
    if math.isnan(value):
        return 0
    half = 1 << (max(bits, 32) - 1)
    held = half - 1 if value >= half else -half if value < -half else int(value)
    return wrap(held, bits)


def parse_integer(text: str, bits: int) -> int:
    """Digits with an optional sign; ValueError for any other text, and if the bits cannot hold the number."""
    if len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
        raise ValueError(f"not an integer: {text[:100]}")
    value = int(text)
    if wrap(value, bits) != value:
        raise ValueError(f"more than {bits} bits: {text}")
    return value


def parse_float(text: str) -> float:
    """A number as `Double.parseDouble` reads it: blanks around it, `NaN`, `Infinity`, a trailing `d` or `f`."""
    stripped = text.strip(_BLANKS)
    if (word := stripped.lstrip("+-")) in _WORDS and len(stripped) - len(word) <= 1:
        return -_WORDS[word] if stripped.startswith("-") else _WORDS[word]
    if len(stripped) <= _MOST_DIGITS and (found := _DECIMAL.fullmatch(stripped)):
        return float(found[1])
    if len(stripped) <= _MOST_DIGITS and (found := _HEXADECIMAL.fullmatch(stripped)):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return -math.inf if found[1].startswith("-") else math.inf
    raise ValueError(f"not a number: {text[:100]}")


def float32(value: float) -> float:
    """The nearest 32-bit number; infinite when the number is too large."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
