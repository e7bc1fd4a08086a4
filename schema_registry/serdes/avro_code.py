"""Python functions made for each schema: straight-line code, which `avro_reading` and `avro_writing` generate.

That takes a fraction of the time of a library that looks at the schema with every value. The code refuses what does not
fit as soon as it notices, in whichever way; what is wrong, and where, is found out afterwards.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

from schema_registry.serdes.avro_mismatch import Form

FAULTS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""What generated code raises about data or values that do not fit."""


class Code:
    """Functions being generated, and the names that they refer to."""

    def __init__(self, form: Form, names: dict[str, Any]) -> None:
        self.form = form
        self.names = names
        self.functions: dict[int, str] = {}
        self._count = 0

    def new(self, prefix: str) -> str:
        """A name that is not in use."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, prefix: str, value: Any) -> str:
        """The name of a value that the code refers to."""
        name = self.new(prefix)
        self.names[name] = value
        return name

    def define(self, name: str, parameters: str, lines: Sequence[str]) -> None:
        """Make a function of statements."""
        # Names of fields are quoted, and everything else in the code was written here.
        body = "\n    ".join(lines)
        exec(f"def {name}({parameters}):\n    {body}\n", self.names)


def reason_of(error: Exception) -> str:
    """Why generated code failed, in words."""
    if isinstance(error, IndexError | struct.error):
        return "the data ends too soon"
    if isinstance(error, OverflowError):
        return "a number is out of range, or not a moment of the years 1 to 9999"
    if isinstance(error, RecursionError):
        return "it nests too deep"
    if isinstance(error, TypeError):
        return "the keys of a map must not be structs, lists or maps themselves"
    return str(error) or type(error).__name__
