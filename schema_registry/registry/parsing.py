"""Parse schema texts of all formats, with a cache."""

from collections.abc import Callable
from typing import assert_never

from schema_registry.errors import RegistryError, invalid_schema
from schema_registry.formats.schema import InvalidSchema, Limits, ResolvedReference, Schema, SchemaType
from schema_registry.registry.lru_cache import LruCache

_CACHE_BYTES = 4 << 20
_ENTRY_BYTES = 500
"""Estimated size of a parsed schema, without its texts."""
_REFERENCE_BYTES = 3000
"""Estimated size of each reference that is parsed with it, without its text."""

Parse = Callable[..., Schema]
_Key = tuple[SchemaType, str, tuple[ResolvedReference, ...], bool]


class Parser:
    """Parses schemas, and caches those that were used recently. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parsed: LruCache[_Key, Schema] = LruCache(weight_max=_CACHE_BYTES)

    def parse(
        self, schema_type: SchemaType, text: str, references: tuple[ResolvedReference, ...], *, strict: bool
    ) -> Schema:
        """Parse a text whose references are resolved; raises 42201."""
        try:
            # Nearly all texts are valid under the strict rules, and share one cache entry this way.
            return self._parse(schema_type, text, references, strict=True)
        except InvalidSchema as error:
            if strict:
                raise _to_registry_error(schema_type, error) from error
        try:
            return self._parse(schema_type, text, references, strict=False)
        except InvalidSchema as error:
            raise _to_registry_error(schema_type, error) from error

    def _parse(
        self, schema_type: SchemaType, text: str, references: tuple[ResolvedReference, ...], *, strict: bool
    ) -> Schema:
        key = (schema_type, text, references, strict)
        found = self._parsed.get(key)
        if found is None:
            found = _load_parser(schema_type)(text, references, limits=self._limits, strict=strict)
            weight = _ENTRY_BYTES + len(text) + sum(_REFERENCE_BYTES + len(item.text) for item in references)
            self._parsed.put(key, found, weight=weight)
        return found


def _to_registry_error(schema_type: SchemaType, error: InvalidSchema) -> RegistryError:
    return invalid_schema(f"Invalid schema of type {schema_type}, details: {error}")


def parse_schema_type(text: str | None) -> SchemaType:
    """The schema type in a request; Avro by default."""
    try:
        return SchemaType(text or "AVRO")
    except ValueError:
        raise invalid_schema(f"Invalid schema type {text}") from None


def _load_parser(schema_type: SchemaType) -> Parse:
    """The parser of a format, imported when it is first needed, so that the registry starts quickly."""
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
