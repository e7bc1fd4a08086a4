"""The identity of a schema: its guid, which is the same in every registry, and our own hashes."""

import hashlib
from collections.abc import Iterable
from itertools import chain
from uuid import UUID

import msgspec

from schema_registry.formats.schema import SchemaType
from schema_registry.models import Metadata, Rule, RuleSet
from schema_registry.registry import data_contracts
from schema_registry.store.schemas import StoredReference


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """The complete content of a schema, as it is stored."""

    schema_type: SchemaType
    text: str
    references: tuple[StoredReference, ...]
    metadata: Metadata | None
    rule_set: RuleSet | None

    @property
    def guid(self) -> str:
        """The identity across registries: MD5 as Confluent computes it, without the schema's type."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            digest.update(reference.name.encode())
            digest.update(reference.subject.encode())
            digest.update(reference.version.to_bytes(4, "big", signed=True))
        if self.metadata is not None:
            digest.update(b"\x01")
            digest.update("".join(_metadata_parts(self.metadata)).encode())
        if self.rule_set is not None:
            digest.update(b"\x01")
            rules = self.rule_set
            for rule in chain(rules.migration_rules or (), rules.domain_rules or (), rules.encoding_rules or ()):
                digest.update("".join(_rule_parts(rule)).encode())
                digest.update(b"\x01" if rule.disabled else b"")
        return str(UUID(bytes=digest.digest()))

    @property
    def content_hash(self) -> str:
        """The identity inside a context; unlike the guid's MD5, this hash resists deliberate collisions."""
        references = [[item.name, item.subject, item.version] for item in self.references]
        return _hash([self.schema_type, self.text, references, to_json(self.metadata), to_json(self.rule_set)])

    def meaning_hash(self, resolved_text: str) -> str:
        """A hash that is equal for schemas that a look-up may match; the text must have its references inline."""
        metadata = data_contracts.without_version(self.metadata)
        return _hash([self.schema_type, resolved_text, to_json(metadata), to_json(self.rule_set)])


def to_json(part: Metadata | RuleSet | None) -> str | None:
    """Metadata or rules in the form in which they are stored."""
    return None if part is None else part.model_dump_json(exclude_none=True)


def _hash(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _metadata_parts(metadata: Metadata) -> Iterable[str]:
    for path, tags in (metadata.tags or {}).items():
        yield path
        yield from tags
    for key, value in (metadata.properties or {}).items():
        yield key
        yield value
    yield from metadata.sensitive or ()


def _rule_parts(rule: Rule) -> Iterable[str]:
    yield from (part for part in (rule.name, rule.doc, rule.kind, rule.mode, rule.type) if part is not None)
    yield from rule.tags or ()
    for key, value in (rule.params or {}).items():
        yield key
        yield value
    yield from (part for part in (rule.expr, rule.on_success, rule.on_failure) if part is not None)
