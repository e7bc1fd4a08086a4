"""Avro schemas: parsed strictly, stored in the form of Confluent's registry."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property

from schema_registry.formats import avro_json, avro_text
from schema_registry.formats.avro_reader import Reader
from schema_registry.formats.avro_types import JsonValue, Named, Record, Type
from schema_registry.formats.schema import DEFAULT_LIMITS, InvalidSchema, Limits, References, SchemaType


class AvroSchema:
    """One parsed Avro schema."""

    schema_type = SchemaType.AVRO

    def __init__(self, root: Type, named: Mapping[str, Named], referenced: frozenset[str] = frozenset()) -> None:
        self.root = root
        """The type at the top; a type that is used by name is the same object as its definition."""
        self.named = named
        """All named types by full name, including those of references."""
        self._referenced = referenced

    @cached_property
    def canonical(self) -> str:
        """The text that is stored and returned; types of references are used by name only."""
        return avro_text.canonical(self.root, self._referenced)

    @cached_property
    def normalized(self) -> str:
        """The text in normal form."""
        return avro_text.normalize(self.root, self._referenced)

    @cached_property
    def resolved(self) -> str:
        """The text with the definitions of all references inline."""
        return _print_inline(avro_text.canonical, self.root)

    @cached_property
    def meaning(self) -> str:
        """The text in normal form, with the definitions of all references inline."""
        return _print_inline(avro_text.normalize, self.root)

    @cached_property
    def structure(self) -> JsonValue:
        """The resolved schema as Python data, for libraries such as fastavro. Do not change it."""
        return json.loads(self.resolved)

    @property
    def name(self) -> str | None:
        """The full name of a record; None for other types, after which no subject is named."""
        return self.root.name.full if isinstance(self.root, Record) else None

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields of the record at the top; empty for other types."""
        return tuple(field.name for field in self.root.fields) if isinstance(self.root, Record) else ()

    def format(self, style: str) -> str:
        """The text for `?format=`: `resolved` has references inline, all other styles are the stored text."""
        return self.resolved if style.strip().lower() == "resolved" else self.canonical


def _print_inline(write: Callable[[Type], str], root: Type) -> str:
    try:
        return write(root)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply with its references inline") from None


def parse(
    text: str, references: References = (), *, limits: Limits = DEFAULT_LIMITS, strict: bool = True
) -> AvroSchema:
    """Parse a schema; raises InvalidSchema with the place and the reason of the first error.

    Without `strict` (Confluent's `validateNewSchemas=false`), defaults and namespaces are not checked, names may have
    letters of any script, and the last of several equal keys counts.
    """
    try:
        known = _read_references(references, limits) if references else {}
        reader = Reader(known, strict=strict)
        root = reader.read(avro_json.read(text, limits=limits, strict=strict))
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
    return AvroSchema(root, reader.known, frozenset(known))


def _read_references(references: References, limits: Limits) -> Mapping[str, Named]:
    """The named types of all references, which were accepted before and are not checked again."""
    reader = Reader(strict=False)
    for reference in references:
        try:
            reader.read(avro_json.read(reference.text, limits=limits, strict=False))
        except InvalidSchema as error:
            where = f"reference {reference.name!r} (subject {reference.subject!r}, version {reference.version})"
            raise InvalidSchema(f"{where}: {error}") from None
    return reader.known
