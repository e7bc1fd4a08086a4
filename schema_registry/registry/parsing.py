"""Schema texts to parsed schemas, by type; what was parsed lately is kept."""

from collections.abc import Callable
from typing import assert_never

from schema_registry.errors import RegistryError, invalid_schema
from schema_registry.formats.schema import InvalidSchema, Limits, ResolvedReference, Schema, SchemaType
from schema_registry.registry.recently_used import RecentlyUsed

_CACHE_BYTES = 4 << 20
_ENTRY_BYTES = 500
"""What a parsed schema weighs beside its texts."""
_REFERENCE_BYTES = 3000
"""What each of its references weighs beside its text, parsed along with it."""

Parse = Callable[..., Schema]
_Key = tuple[SchemaType, str, tuple[ResolvedReference, ...], bool]


class Parser:
    """Parses each text once, as long as it is asked for now and then. Safe for threads."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parsed: RecentlyUsed[_Key, Schema] = RecentlyUsed(weight_max=_CACHE_BYTES)

    def parse(
        self, schema_type: SchemaType, text: str, references: tuple[ResolvedReference, ...], *, strict: bool
    ) -> Schema:
        """The schema of a text whose references are resolved; refuses with 42201."""
        try:
            return self._parse(schema_type, text, references, strict=True)
        except InvalidSchema as error:
            if strict:
                raise _refusal(schema_type, error) from error
        try:
            return self._parse(schema_type, text, references, strict=False)
        except InvalidSchema as error:
            raise _refusal(schema_type, error) from error

    def _parse(
        self, schema_type: SchemaType, text: str, references: tuple[ResolvedReference, ...], *, strict: bool
    ) -> Schema:
        key = (schema_type, text, references, strict)
        found = self._parsed.get(key)
        if found is None:
            found = _parse_of(schema_type)(text, references, limits=self._limits, strict=strict)
            weight = _ENTRY_BYTES + len(text) + sum(_REFERENCE_BYTES + len(item.text) for item in references)
            self._parsed.put(key, found, weight=weight)
        return found


def _refusal(schema_type: SchemaType, error: InvalidSchema) -> RegistryError:
    return invalid_schema(f"Invalid schema of type {schema_type}, details: {error}")


def schema_type_of(text: str | None) -> SchemaType:
    """The type that a client names; none means Avro."""
    try:
        return SchemaType(text or "AVRO")
    except ValueError:
        raise invalid_schema(f"Invalid schema type {text}") from None


def _parse_of(schema_type: SchemaType) -> Parse:
    """The format's code, imported when it is first needed: a registry starts without."""
    match schema_type:
        case SchemaType.AVRO:
            from schema_registry.formats import avro

            return avro.parse
        case SchemaType.JSON:
            from schema_registry.formats import json_schema

            return json_schema.parse
        case SchemaType.PROTOBUF:
            from schema_registry.formats import protobuf

            return protobuf.parse
        case _:
            assert_never(schema_type)
