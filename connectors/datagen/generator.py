"""Generates values of an Avro schema whose `arg.properties` describe them.

| property | of | what it does |
|---|---|---|
| `options` | all | one of these values |
| `range` {min, max} | numbers | min ≤ value < max |
| `iteration` {start, restart, step, initial} | numbers, booleans, text | start + step · number of the record, from start again at restart |
| `regex` | text | a text that matches |
| `length` (a number, or {min, max}) | text, bytes, arrays, maps | the length |
| `prefix`, `suffix` | text | the text before and after |
| `odds` | booleans | how often true, 0 to 1 |
| `keys` {options, regex, length} | maps | the keys |
"""  # noqa: E501 - a table

import math
import random
import string
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from connect.api import data
from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import ConfigError
from connect.api.logical import date_of, decimal_of, time_of, timestamp_of
from connectors.datagen.regex_text import drawer_of

Make = Callable[[random.Random, int], Value]
"""Makes a value for the record with this number."""

LENGTH_MAX: Final = 1_000_000
_NESTING_MAX: Final = 50
_DEFAULT_LENGTH: Final = {"min": 4, "max": 12}
_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_PLAIN: Final = {
    "int": data.INT32,
    "long": data.INT64,
    "float": data.FLOAT32,
    "double": data.FLOAT64,
    "boolean": data.BOOLEAN,
    "string": data.STRING,
    "bytes": data.BYTES,
    "fixed": data.BYTES,
    "enum": data.STRING,
}
_LOGICAL: Final[dict[str, tuple[Schema, Callable[[Any], Value], tuple[int, int]]]] = {
    "date": (data.DATE, date_of, (0, 20_000)),
    "time-millis": (data.TIME, time_of, (0, 86_400_000)),
    "timestamp-millis": (data.TIMESTAMP, timestamp_of, (0, 1_700_000_000_000)),
}
"""Logical types: their schema, the conversion from a number, and the range of numbers unless one is given."""


class Generator(NamedTuple):
    """A schema, and the function that makes its values."""

    schema: Schema
    make: Make


def generator_of(avro: Mapping[str, Any]) -> Generator:
    """The generator of a schema; ConfigError when the schema or its properties are invalid."""
    try:
        return _Builder().of(avro)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the schema is invalid: {type(error).__name__}: {error}") from error


class _Builder:
    def __init__(self) -> None:
        self._named: dict[str, Generator] = {}
        self._namespace = ""
        self._depth = 0

    def of(self, avro: Any) -> Generator:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise ConfigError(f"the schema is nested more than {_NESTING_MAX} deep")
        made = self._of(avro)
        self._depth -= 1
        return made

    def _of(self, avro: Any) -> Generator:
        if isinstance(avro, list):
            return self._union(avro)
        if isinstance(avro, str):
            return self._named[avro] if avro in self._named else self._of({"type": avro})
        if isinstance(avro["type"], dict | list):
            return self.of(avro["type"])
        made = self._complex(avro) or _plain(avro)
        if "name" in avro:
            self._named[avro["name"]] = made
        return made

    def _complex(self, avro: Mapping[str, Any]) -> Generator | None:
        properties = avro.get("arg.properties") or {}
        match avro["type"]:
            case "record":
                made = self._record(avro)
            case "array":
                made = _array(self.of(avro["items"]), properties)
            case "map":
                made = _map(self.of(avro["values"]), properties)
            case str() as name if name in self._named:
                return self._named[name]
            case _:
                return None
        return made if "options" not in properties else Generator(made.schema, _choice(properties["options"]))

    def _record(self, avro: Mapping[str, Any]) -> Generator:
        self._namespace = avro.get("namespace", self._namespace)
        name = f"{self._namespace}.{avro['name']}" if self._namespace and "." not in avro["name"] else avro["name"]
        fields = [(field["name"], self.of(_field_type(field))) for field in avro["fields"]]
        schema = data.struct([Field(field, made.schema) for field, made in fields], name=name)
        makers = [(field, made.make) for field, made in fields]
        return Generator(schema, lambda chance, number: {field: make(chance, number) for field, make in makers})

    def _union(self, branches: list[Any]) -> Generator:
        others = [self.of(branch) for branch in branches if branch != "null"]
        if len(others) != 1:
            raise ConfigError(f"a union must be of null and one other type, not {branches!r}")
        schema, make = others[0]
        if len(branches) == 1:
            return others[0]
        return Generator(
            schema.as_optional(), lambda chance, number: make(chance, number) if chance.random() < 0.5 else None
        )


def _field_type(field: Mapping[str, Any]) -> Any:
    """The type of a field with its properties, which may be beside the type as well as in it."""
    if "arg.properties" in field and isinstance(field["type"], str):
        return {"type": field["type"], "arg.properties": field["arg.properties"]}
    return field["type"]


def _plain(avro: Mapping[str, Any]) -> Generator:
    kind, properties = avro["type"], avro.get("arg.properties") or {}
    if kind not in _PLAIN:
        raise ConfigError(f"the type {kind!r} is unknown; known are {', '.join(_PLAIN)}, record, array, map")
    if avro.get("logicalType") == "decimal":
        return _decimal(avro, properties)
    if avro.get("logicalType") in _LOGICAL:
        schema, value_of, (low, high) = _LOGICAL[avro["logicalType"]]
        make = _number(schema, {"range": {"min": low, "max": high}, **properties})
        return Generator(schema, lambda chance, number: value_of(make(chance, number)))
    schema = _PLAIN[kind]
    return Generator(schema, _maker(schema, avro, properties))


def _maker(schema: Schema, avro: Mapping[str, Any], properties: Mapping[str, Any]) -> Make:
    if "options" in properties:
        options = properties["options"]
        is_bytes = schema.type is Type.BYTES
        return _choice([item.encode("latin-1") for item in options] if is_bytes else options)
    match schema.type:
        case Type.STRING if avro["type"] == "enum":
            return _choice(avro["symbols"])
        case Type.STRING:
            return _text(properties)
        case Type.BYTES:
            low, high = _length({"length": avro["size"]} if "size" in avro else properties)
            return lambda chance, _: chance.randbytes(chance.randint(low, high))
        case Type.BOOLEAN:
            return _boolean(properties)
        case _:
            return _number(schema, properties)


def _number(schema: Schema, properties: Mapping[str, Any]) -> Make:
    is_whole = schema.type in (Type.INT32, Type.INT64)
    if "options" in properties:
        return _choice(properties["options"])
    if "iteration" in properties:
        return _iteration(properties["iteration"], whole=is_whole)
    largest = 2 ** (31 if schema.type is Type.INT32 else 63)
    limits = properties.get("range", {})
    low, high = limits.get("min", -largest if is_whole else 0), limits.get("max", largest if is_whole else 1)
    if not low < high:
        raise ConfigError(f"a range must have min < max, not {limits}")
    if is_whole:
        return lambda chance, _: chance.randrange(low, high)
    return lambda chance, _: chance.uniform(low, high)


def _iteration(properties: Mapping[str, Any], *, whole: bool) -> Make:
    start = properties["start"]
    restart = properties.get("restart")
    step = properties.get("step", -1 if restart is not None and restart < start else 1)
    if step == 0 or (restart is not None and (restart - start) / step <= 0):
        raise ConfigError(f"an iteration must lead from start to restart, not {dict(properties)}")
    first = round((properties.get("initial", start) - start) / step)
    cycle = None if restart is None else math.ceil((restart - start) / step)

    def make(_: random.Random, number: int) -> Value:
        steps = first + number if cycle is None else (first + number) % cycle
        return start + steps * step if whole else float(start + steps * step)

    return make


def _boolean(properties: Mapping[str, Any]) -> Make:
    if "iteration" in properties:
        start = bool(properties["iteration"]["start"])
        return lambda _, number: start == (number % 2 == 0)
    odds = float(properties.get("odds", 0.5))
    return lambda chance, _: chance.random() < odds


def _text(properties: Mapping[str, Any]) -> Make:
    prefix, suffix = properties.get("prefix", ""), properties.get("suffix", "")
    if "iteration" in properties:
        count = _iteration(properties["iteration"], whole=True)
        return lambda chance, number: f"{prefix}{count(chance, number)}{suffix}"
    if "regex" in properties:
        draw = drawer_of(properties["regex"])
    else:
        low, high = _length(properties)

        def draw(chance: random.Random) -> str:
            return "".join(chance.choices(_ALPHANUMERIC, k=chance.randint(low, high)))

    if not prefix and not suffix:
        return lambda chance, _: draw(chance)
    return lambda chance, _: f"{prefix}{draw(chance)}{suffix}"


def _array(items: Generator, properties: Mapping[str, Any]) -> Generator:
    low, high = _length(properties)
    make = items.make
    return Generator(
        data.array(items.schema),
        lambda chance, number: [make(chance, number) for _ in range(chance.randint(low, high))],
    )


def _map(values: Generator, properties: Mapping[str, Any]) -> Generator:
    low, high = _length(properties)
    keys = properties.get("keys", {})
    key = _choice(keys["options"]) if "options" in keys else _text(keys)
    make = values.make
    return Generator(
        data.mapping(data.STRING, values.schema),
        lambda chance, number: {key(chance, number): make(chance, number) for _ in range(chance.randint(low, high))},
    )


def _decimal(avro: Mapping[str, Any], properties: Mapping[str, Any]) -> Generator:
    scale, digits = int(avro.get("scale", 0)), min(int(avro["precision"]), 18)
    limits = properties.get("range", {})
    low = math.ceil(limits.get("min", 0) * 10**scale)
    high = math.ceil(limits.get("max", 10 ** (digits - scale)) * 10**scale)
    if not low < high:
        raise ConfigError(f"a range must have min < max, not {limits}")

    def make(chance: random.Random, _: int) -> Value:
        return decimal_of(chance.randrange(low, high).to_bytes(16, "big", signed=True), scale)

    return Generator(data.decimal(scale), make)


def _choice(options: Any) -> Make:
    if not isinstance(options, list) or not options:
        raise ConfigError(f"options must be a list with something in it, not {options!r}")
    return lambda chance, _: chance.choice(options)


def _length(properties: Mapping[str, Any]) -> tuple[int, int]:
    """The shortest and the longest length; the maximum in a schema is exclusive, as in a range."""
    length = properties.get("length", _DEFAULT_LENGTH)
    low, high = (length, length + 1) if isinstance(length, int) else (length.get("min", 0), length["max"])
    if not 0 <= low < high <= LENGTH_MAX:
        raise ConfigError(f"a length must be between 0 and {LENGTH_MAX}, with min < max, not {length}")
    return low, high - 1
