"""Numbers as text, as Java reads and writes them: other programs do the same, and keys are compared as bytes."""

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7
"""Where Java writes numbers without an exponent."""
_LEAST_NORMAL: Final = 2.3e-308
_WHOLE_DIGITS_MAX: Final = 400


def parse_integer(text: str, bits: int) -> int:
    """A whole number; raises ValueError if it does not fit into so many bits."""
    limit = 1 << (bits - 1)
    number = int(text) if _INTEGER.fullmatch(text) else limit
    if not -limit <= number < limit:
        raise ValueError(f"not a whole number of {bits} bits")
    return number


def parse_double(text: str) -> float:
    """A floating-point number; raises ValueError."""
    stripped = text.strip()
    if not _DOUBLE.fullmatch(stripped):
        raise ValueError("not a number")
    return float(stripped if stripped.endswith("Infinity") else stripped.rstrip("fFdD"))


def parse_decimal(text: str) -> Decimal:
    """A decimal with all its digits; raises ValueError."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a decimal number")
    return Decimal(text)


def fit_decimal(value: Decimal, precision: int, scale: int) -> Decimal:
    """The same number with this scale; raises ValueError if that would round it, or if it has more digits."""
    try:
        return value.quantize(_quantum(scale), context=_exact(precision))
    except DecimalException:
        raise ValueError(f"the number does not fit into DECIMAL({precision}, {scale})") from None


@lru_cache(maxsize=1000)
def _exact(precision: int) -> Context:
    traps = [Inexact, InvalidOperation, Overflow]
    return Context(prec=max(precision, 1), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=traps)


@lru_cache(maxsize=1000)
def _quantum(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))


def wrapped(value: float | Decimal, bits: int) -> int:
    """The whole part of a number, of which only the low bits are kept."""
    if isinstance(value, Decimal) and value.adjusted() > _WHOLE_DIGITS_MAX:
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and exponent >= bits:
            return 0  # A multiple of 10^64 has nothing but zeros in its low bits.
    whole = int(value)
    limit = 1 << (bits - 1)
    return (whole + limit) % (1 << bits) - limit


def double_text(value: float) -> str:
    """A double with the fewest digits that tell it from others, in Java's notation."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return repr(value)
    shortest = f"{value:.1e}" if abs(value) < _LEAST_NORMAL else repr(value)
    # Java writes two digits at least, and close to zero one is not enough to tell which are the best.
    sign, digits, exponent = Decimal(shortest if float(shortest) == value else repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"
