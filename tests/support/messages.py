"""Random instances of the wire messages, made from the same annotations that drive the codec."""

import importlib
import pkgutil
import random
import string
import types
from collections.abc import Iterator
from typing import Any, Final

import core_broker.protocol.messages
import core_broker.protocol.stored
from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message, _Field, _fields_of

_RANGES: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_TIMES_MAX: Final = {"int32": 2**31 - 1, "int64": 4_000_000_000_000}
_LETTERS: Final = string.ascii_letters + string.digits + "._-äß€漢🎈"


def message_classes(package: types.ModuleType = core_broker.protocol.messages) -> list[type[Message]]:
    """All top-level messages of a package, requests and responses alike, by name."""
    found = {cls for module in _modules(package) for cls in _classes_of(module) if "VERSIONS" in cls.__dict__}
    return sorted(found, key=lambda cls: cls.__name__)


def stored_classes() -> list[type[Message]]:
    """All records that Kafka keeps in its internal topics and files."""
    return message_classes(core_broker.protocol.stored)


def _modules(package: types.ModuleType) -> Iterator[types.ModuleType]:
    for info in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package.__name__}.{info.name}")


def _classes_of(module: types.ModuleType) -> Iterator[type[Message]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
            yield value


class MessageFactory:
    """Fills messages with random values; `strict_times` keeps to values that have a date and error codes that exist."""

    def __init__(self, seed: int, *, strict_times: bool = False, array_max: int = 3) -> None:
        self.random = random.Random(seed)
        self._strict = strict_times
        self._array_max = array_max

    def make(self, message: type[Message], version: int) -> Message:
        """One instance whose fields of this version are random and whose others keep their defaults."""
        return message(**{field.name: self._value(field, version) for field in _fields_of(message, version)})

    def _value(self, field: _Field, version: int) -> Any:
        if field.tag is not None and self.random.random() < 0.4:
            return field.default
        if field.nullable and field.tag is None and self.random.random() < 0.2:
            return None
        if field.kind == "array":
            size = self.random.randint(0, self._array_max)
            return [self._of_kind(field.element, version) for _ in range(size)]
        return self._of_kind(field, version)

    def _of_kind(self, field: _Field, version: int) -> Any:
        match field.kind:
            case "struct":
                return self.make(field.element, version)
            case "string":
                return "".join(self.random.choices(_LETTERS, k=self._size()))
            case "bytes" | "records":
                return self.random.randbytes(self._size())
            case "uuid":
                return self.random.randbytes(16)
            case "bool":
                return self.random.random() < 0.5
            case "float64":
                return self.random.uniform(-1e9, 1e9)
            case kind:
                return self._integer(field.name, kind)

    def _size(self) -> int:
        """Mostly short; sometimes long enough for a length of two bytes."""
        return self.random.randint(100, 300) if self.random.random() < 0.05 else self.random.randint(0, 12)

    def _integer(self, name: str, kind: str) -> int:
        if self._strict and kind == "int16" and name.endswith("error_code"):
            return int(self.random.choice(list(ErrorCode)))
        if self._strict and (name.endswith("_ms") or "time" in name) and kind in _TIMES_MAX:
            return self.random.randint(0, _TIMES_MAX[kind])
        low, high = _RANGES[kind]
        return self.random.choice((low, high, 0, -1 if low < 0 else 1, self.random.randint(low, high)))
