"""Functions of single values; None for any argument is None, and so is whatever cannot be computed."""

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_DOWN, ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from itertools import islice
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from streams.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Array, Map, SqlType

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
FAILURES: Final = (ValueError, ArithmeticError, LookupError, OSError, struct.error, RecursionError)
"""What makes a result NULL."""
_EXACT: Final = Context(prec=1000)
_PLACES_MAX: Final = 400
_TEXTS_MAX: Final = 1000
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(?:(\d{1,9})|'([^']*)'|\"([^\"]*)\")\]")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - clocks in any zone
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function that Spark has to be told of: its name in Spark's SQL, its result, what computes it."""

    name: str
    result: SqlType
    compute: Callable[..., object]


def instr(text: str, part: str, position: int, occurrence: int) -> int:
    """The position of the n-th occurrence from a position on, or backwards from one that counts from the end."""
    if position == 0 or occurrence < 1 or abs(position) > len(text):
        return 0
    found, end = position - 2, len(text) + position + 1
    for _ in range(occurrence):
        found = text.find(part, found + 1) if position > 0 else text.rfind(part, 0, end)
        if found < 0:
            return 0
        end = found + len(part) - 1
    return found + 1


def round_half_up(value: float, places: int) -> float:
    """Half towards positive infinity, of the shortest decimal that is this double."""
    return float(_rounded(Decimal(repr(value)), places))


def round_decimal(text: str, places: int) -> str:
    """Half towards positive infinity."""
    return str(_rounded(Decimal(text), places))


def _rounded(value: Decimal, places: int) -> Decimal:
    return _quantized(value, places, ROUND_HALF_UP if value > 0 else ROUND_HALF_DOWN)


def truncate(value: float, places: int) -> float:
    """Towards zero, of the shortest decimal that is this double."""
    return float(_quantized(Decimal(repr(value)), places, ROUND_DOWN))


def truncate_decimal(text: str, places: int) -> str:
    """Towards zero."""
    return str(_quantized(Decimal(text), places, ROUND_DOWN))


def _quantized(value: Decimal, places: int, rounding: str) -> Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or places >= -exponent:
        return value
    if abs(places) > _PLACES_MAX:
        return Decimal(0)
    shifted = value.scaleb(places, _EXACT).to_integral_value(rounding)
    return shifted.scaleb(-places, _EXACT)


def extract_json_field(text: str, path: str) -> str | None:
    """What is at a path: texts as they are, anything else as JSON."""
    if not path.startswith("$"):
        return None
    value, at = read_json(text), 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        index = step[2]
        if index is not None:
            if not isinstance(value, list) or int(index) >= len(value):
                return None
            value = value[int(index)]
            continue
        name = next(part for part in (step[1], step[3], step[4]) if part is not None)
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value if isinstance(value, str) else write_json(value)


def json_array_contains(text: str, wanted: str) -> bool:
    """Whether an array contains the one item of another array, which is of the same type."""
    try:
        values, (value,) = read_json(text), json.loads(wanted)
    except FAILURES:
        return False
    return isinstance(values, list) and any(type(one) is type(value) and one == value for one in values)


def json_concat(texts: Sequence[str]) -> str | None:
    """Objects as one, anything else as one array."""
    if any(text is None for text in texts):
        return None
    values = [read_json(text) for text in texts]
    if len(values) == 1:
        return write_json(values[0])
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) == len(values):
        return write_json({name: item for one in objects for name, item in one.items()})
    return write_json([item for value in values for item in (value if isinstance(value, list) else [value])])


def json_items(text: str) -> list[str] | None:
    """The items of an array, each as JSON."""
    values = read_json(text)
    return [write_json(value) for value in values] if isinstance(values, list) else None


def read_json(text: str) -> Json:
    """A document of JSON, strictly."""
    value: Json = json.loads(text, parse_constant=_refuse)
    return value


def _refuse(word: str) -> Json:
    raise ValueError(word)


def write_json(value: Json) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def double_from_bytes(data: bytes) -> float:
    """The double whose bytes these are, the first ones first."""
    value: float = struct.unpack(">d", data)[0]
    return value


def histogram(texts: Sequence[str]) -> dict[str, int]:
    """How often each of the first texts occurs."""
    return dict(islice(Counter(texts).items(), _TEXTS_MAX))


def shift_zone(micros: int, zone: str, back: bool) -> int:
    """What a clock in a zone shows at a time in UTC, or back, as microseconds since 1970."""
    time = _EPOCH + timedelta(microseconds=micros)
    known = _zone(zone)
    shifted = time.replace(tzinfo=known).astimezone(UTC) if back else time.replace(tzinfo=UTC).astimezone(known)
    return (shifted.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


def _zone(name: str) -> ZoneInfo | timezone:
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return ZoneInfo("UTC" if name == "Z" else name)
    distance = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
    return timezone(-distance if offset[1] == "-" else distance)


PYTHON_FUNCTIONS: Final = {
    function.name: function
    for function in (
        PythonFunction("caudal_instr", INTEGER, instr),
        PythonFunction("caudal_round", DOUBLE, round_half_up),
        PythonFunction("caudal_round_decimal", STRING, round_decimal),
        PythonFunction("caudal_trunc", DOUBLE, truncate),
        PythonFunction("caudal_trunc_decimal", STRING, truncate_decimal),
        PythonFunction("caudal_extract_json_field", STRING, extract_json_field),
        PythonFunction("caudal_json_array_contains", BOOLEAN, json_array_contains),
        PythonFunction("caudal_json_concat", STRING, json_concat),
        PythonFunction("caudal_json_items", Array(STRING), json_items),
        PythonFunction("caudal_double_from_bytes", DOUBLE, double_from_bytes),
        PythonFunction("caudal_histogram", Map(STRING, BIGINT), histogram),
        PythonFunction("caudal_shift_zone", BIGINT, shift_zone),
    )
}
"""By their names in Spark's SQL."""
