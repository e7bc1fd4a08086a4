"""Avro schemas: parsed strictly, stored as Confluent's registry stores them."""

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
        """What the schema describes; types that it mentions are the very objects that define them."""
        self.named = named
        """All named types by full name, those of references included."""
        self._referenced = referenced

    @cached_property
    def canonical(self) -> str:
        """The text that is stored and returned: types of references are only mentioned."""
        return avro_text.canonical(self.root, self._referenced)

    @cached_property
    def normalized(self) -> str:
        """The text in normal form."""
        return avro_text.normalized(self.root, self._referenced)

    @cached_property
    def resolved(self) -> str:
        """The text with the types of references written out."""
        return _written_out(avro_text.canonical, self.root)

    @cached_property
    def meaning(self) -> str:
        """The text in normal form, with the types of references written out."""
        return _written_out(avro_text.normalized, self.root)

    @cached_property
    def structure(self) -> JsonValue:
        """The resolved schema as Python data, for fastavro and the like. Not to be changed."""
        return json.loads(self.resolved)

    @property
    def name(self) -> str | None:
        """The full name of a record; other types have none that a subject could be called after."""
        return self.root.name.full if isinstance(self.root, Record) else None

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields at the top level; none unless it is a record."""
        return tuple(field.name for field in self.root.fields) if isinstance(self.root, Record) else ()

    def formatted(self, style: str) -> str:
        """The text for `?format=`: `resolved` writes references out, all other styles are the stored text."""
        return self.resolved if style.strip().lower() == "resolved" else self.canonical


def _written_out(write: Callable[[Type], str], root: Type) -> str:
    try:
        return write(root)
    except RecursionError:
        raise InvalidSchema("the schema nests too deep with its references written out") from None


def parse(
    text: str, references: References = (), *, limits: Limits = DEFAULT_LIMITS, strict: bool = True
) -> AvroSchema:
    """The schema that a text describes; InvalidSchema tells where the text is wrong and why.

    Without `strict` (Confluent's `validateNewSchemas=false`), defaults and namespaces are not checked, names may have
    letters of any script, and the last of equal keys counts.
    """
    try:
        known = _read_references(references, limits) if references else {}
        reader = Reader(known, strict=strict)
        root = reader.read(avro_json.read(text, limits=limits, strict=strict))
    except RecursionError:
        raise InvalidSchema("the schema nests too deep") from None
    return AvroSchema(root, reader.known, frozenset(known))


def _read_references(references: References, limits: Limits) -> Mapping[str, Named]:
    """The named types of all references; they were accepted before, so only what they mean is asked."""
    reader = Reader(strict=False)
    for reference in references:
        try:
            reader.read(avro_json.read(reference.text, limits=limits, strict=False))
        except InvalidSchema as error:
            where = f"reference {reference.name!r} (subject {reference.subject!r}, version {reference.version})"
            raise InvalidSchema(f"{where}: {error}") from None
    return reader.known
