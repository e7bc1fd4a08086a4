"""JSON documents, validated by one JSON Schema.

Confluent's JSONSerializer writes the same documents with spaces between their parts, and none of its JSON is read
differently; it is not used here because it resolves the subject with every record and matches patterns by backtracking.
Documents are written compactly in UTF-8, as Confluent's Java serializer does. Numbers that JSON does not have (NaN) are
refused, and integers of any size are kept: hence the standard library writes, and msgspec, which does the same, reads.
"""

import json
from functools import cached_property
from itertools import islice

import jsonschema_rs
import msgspec
from jsonschema.exceptions import ValidationError, best_match

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.codec import JsonView, Value
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_compiled import compiled
from schema_registry.serdes.json_counted import (
    TooManySteps,
    UnknownPattern,
    Validator,
    counting_validator,
    steps,
)

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_MAX_SHOWN = 600
_MAX_SHOWN_VALUE = 100
_MAX_ERRORS = 100
_FREE_STEPS = 10_000
_BYTES_PER_STEP = 2
"""References that may be followed to check one document: these, and one more for each of so many bytes."""


class JsonCodec:
    """Reads and writes documents of one JSON Schema; both validate, reading only if `validates_reads`."""

    def __init__(self, schema: JsonSchema, *, validates_reads: bool = True) -> None:
        self._schema = schema
        self._validates_reads = validates_reads

    @cached_property
    def _compiled(self) -> jsonschema_rs.Validator | None:
        """Finds out quickly whether a document fits."""
        return compiled(self._schema)

    @cached_property
    def _counting(self) -> Validator:
        """Finds out why a document does not fit, and is the authority."""
        return counting_validator(self._schema)

    def encode(self, value: Value) -> bytes:
        """The bytes of a document."""
        try:
            data = _encode(value).encode()
            written = msgspec.json.decode(data)  # As it will be read: tuples are lists, keys are strings.
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidData(f"the value cannot be written as JSON: {error}") from error
        self._check(written, len(data))
        return data

    def decode(self, data: bytes, start: int = 0) -> Value:
        """The document of bytes."""
        try:
            value = msgspec.json.decode(memoryview(data)[start:] if start else data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidData(f"the data is not JSON: {error}") from error
        if self._validates_reads:
            self._check(value, len(data))
        return value

    def encode_json(self, view: JsonView) -> bytes:
        """The bytes of a document: JSON is its own view."""
        return self.encode(view)

    def decode_json(self, data: bytes, start: int = 0) -> JsonView:
        """The document of bytes: JSON is its own view."""
        return self.decode(data, start)

    def _check(self, value: Value, size: int) -> None:
        # Both libraries limit nesting only by the stack; msgspec, which decoded the value, has a lower limit.
        if self._compiled is not None and self._compiled.is_valid(value):
            return
        try:
            with steps(_FREE_STEPS + size // _BYTES_PER_STEP):
                error: ValidationError | None = best_match(islice(self._counting.iter_errors(value), _MAX_ERRORS))
        except RecursionError:
            raise InvalidData("the document nests too deep to be checked against its JSON Schema") from None
        except TooManySteps:
            raise InvalidData("it takes too long to check the document against its JSON Schema") from None
        except (OverflowError, TypeError):  # jsonschema divides huge numbers and counts the items of `"items": false`
            raise InvalidData("the document cannot be checked against its JSON Schema") from None
        except UnknownPattern as unknown:
            raise InvalidData(f"the JSON Schema has a pattern that cannot be matched: {_short(unknown)}") from None
        if error is not None:
            place = "/".join(_short(part) for part in error.absolute_path)
            value = repr(error.instance)
            problem = error.message.replace(value, _short(value))[:_MAX_SHOWN]
            raise InvalidData(f"the document does not fit its JSON Schema: /{place}: {problem}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MAX_SHOWN_VALUE else f"{text[:_MAX_SHOWN_VALUE]}…"
