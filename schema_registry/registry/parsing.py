"""Schema texts to parsed schemas, by type; what was parsed lately is kept."""

from collections.abc import Callable
from typing import assert_never

from schema_registry.errors import invalid_schema
from schema_registry.formats.schema import InvalidSchema, Limits, ResolvedReference, Schema, SchemaType
from schema_registry.registry.recently_used import RecentlyUsed

_CACHE_BYTES = 4 << 20
_ENTRY_BYTES = 500
"""What a parsed schema weighs beside its texts."""

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
        found = self._parsed.get((schema_type, text, references, True))
        if found is None and not strict:
            found = self._parsed.get((schema_type, text, references, False))
        if found is not None:
            return found
        try:
            parsed = _parse_of(schema_type)(text, references, limits=self._limits, strict=strict)
        except InvalidSchema as error:
            raise invalid_schema(f"Invalid schema of type {schema_type}, details: {error}") from error
        weight = _ENTRY_BYTES + len(text) + sum(len(reference.text) for reference in references)
        self._parsed.put((schema_type, text, references, strict), parsed, weight=weight)
        return parsed


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
