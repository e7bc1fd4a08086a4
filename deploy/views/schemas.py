"""Schemas of a registry: how users name them, lists of them, and all about one of them."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.formats.schema import References, SchemaType

if TYPE_CHECKING:
    from schema_registry.client.registry_client import RegistryClient

EXTENSIONS = {".avsc": SchemaType.AVRO, ".proto": SchemaType.PROTOBUF, ".json": SchemaType.JSON}
_VERSION = re.compile(r"(?P<subject>.+)@(?P<version>[0-9]{1,10}|latest)", re.DOTALL)
_REQUESTS_AT_ONCE = 8

Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many are done, and how many there are."""


class SubjectVersion(NamedTuple):
    """A version of a subject, or, without a version, the subject."""

    subject: str
    version: int | Literal["latest"] | None = None

    def __str__(self) -> str:
        return self.subject if self.version is None else f"{self.subject}@{self.version}"


class SchemaSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a subject in a list."""

    subject: str | None
    version: int | None
    id: int | None
    type: SchemaType
    level: str
    """The compatibility level of its subject."""
    deleted: bool


def parse_subject_version(text: str) -> SubjectVersion:
    """Read `SUBJECT` or `SUBJECT@VERSION`."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return SubjectVersion(text)
    return SubjectVersion(match["subject"], "latest" if match["version"] == "latest" else int(match["version"]))


def schema_name(schema: RegisteredSchema) -> str:
    """A registered schema as users name it."""
    return f"id {schema.id}" if schema.subject is None else str(SubjectVersion(schema.subject, schema.version))


def format_schema(definition: SchemaDefinition) -> str:
    """The text of a schema for people: JSON indented, everything as it was spelt."""
    if definition.schema_type is SchemaType.PROTOBUF:
        return definition.text.rstrip("\n")
    try:
        return msgspec.json.format(definition.text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return definition.text


def canonical_definition(definition: SchemaDefinition, references: Callable[[], References]) -> SchemaDefinition:
    """A schema as registries store it; raises InvalidSchema, or ImportError when the format's library is missing."""
    if definition.schema_type is SchemaType.JSON:
        return definition  # registries change only its layout
    if definition.schema_type is SchemaType.AVRO:
        from schema_registry.formats.avro import parse as parse_avro

        text = parse_avro(definition.text, references(), strict=False).canonical
    else:
        from schema_registry.formats.protobuf import parse as parse_protobuf

        text = parse_protobuf(definition.text, references(), strict=False).canonical
    return msgspec.structs.replace(definition, text=text)


# --- lists ---


def list_schemas(
    client: "RegistryClient",
    prefix: str = "",
    *,
    all_versions: bool = False,
    with_deleted: bool = False,
    progress: Progress = lambda *_: None,
) -> list[SchemaSummary]:
    """The latest version of each subject, or all versions; also what was deleted, unless for good."""
    found = [
        (item, False) for item in _fetch(client, prefix, deleted=False, latest=not all_versions, progress=progress)
    ]
    if with_deleted:
        # Of versions that were deleted: all, or the latest of subjects that have no other.
        live = {(item.subject, item.version if all_versions else None) for item, _ in found}
        every = _fetch(client, prefix, deleted=True, latest=not all_versions, progress=progress)
        found += [(item, True) for item in every if (item.subject, item.version if all_versions else None) not in live]
    levels = _levels(client, {item.subject or "" for item, _ in found}, progress)
    return [
        SchemaSummary(
            subject=item.subject,
            version=item.version,
            id=item.id,
            type=item.definition.schema_type,
            level=levels[item.subject or ""],
            deleted=is_deleted,
        )
        for item, is_deleted in sorted(found, key=lambda pair: (pair[0].subject or "", pair[0].version or 0))
    ]


def _fetch(
    client: "RegistryClient", prefix: str, *, deleted: bool, latest: bool, progress: Progress
) -> list[RegisteredSchema]:
    from schema_registry.client.errors import Refused, SchemaNotFound

    def fetch_one_by_one(subject: str) -> list[RegisteredSchema]:
        versions = sorted(client.versions(subject, deleted=deleted))
        return [client.version(subject, number, deleted=deleted) for number in versions[-1 if latest else 0 :]]

    try:
        found = client.schemas(prefix=prefix or None, deleted=deleted, latest_only=latest)
    except (SchemaNotFound, Refused) as error:
        if error.code not in (404, 405):
            raise
        # This registry cannot list schemas.
        names = client.subjects(prefix=prefix or None, deleted=deleted)
        found = [item for items in _for_each(names, fetch_one_by_one, "reading schemas", progress) for item in items]
    return [item for item in found if (item.subject or "").startswith(prefix)]  # some registries ignore the prefix


def _levels(client: "RegistryClient", subjects: Iterable[str], progress: Progress) -> dict[str, str]:
    from deploy.views.compatibility import level_of

    names = sorted(subjects)
    found = _for_each(names, lambda name: level_of(client, name), "reading levels", progress)
    return dict(zip(names, found, strict=True))


def _for_each(names: Sequence[str], ask: Callable[[str], Any], what: str, progress: Progress) -> list[Any]:
    """The answers for many names, a few requests at a time."""
    from concurrent.futures import ThreadPoolExecutor

    answers = []
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        for answer in pool.map(ask, names):
            answers.append(answer)
            progress(what, len(answers), len(names))
    return answers


# --- one of them ---


def find_schema(client: "RegistryClient", wanted: SubjectVersion, *, deleted: bool = False) -> RegisteredSchema:
    """The schema of a version; of the latest one if none is given."""
    subject, version = wanted
    if deleted and version in (None, "latest"):
        version = max(client.versions(subject, deleted=True))
    return client.version(subject, "latest" if version is None else version, deleted=deleted)


def describe_schema(schema: RegisteredSchema) -> dict[str, object]:
    """A registered schema with all that belongs to it."""
    described = {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "guid": schema.guid,
        "type": schema.definition.schema_type,
        "references": [
            {"name": item.name, "subject": item.subject, "version": item.version}
            for item in schema.definition.references
        ],
        "metadata": schema.metadata,
        "rule_set": schema.rule_set,
        "schema": schema.definition.text,
    }
    return {key: value for key, value in described.items() if value is not None}


def links(client: "RegistryClient", schema: RegisteredSchema) -> dict[str, list[dict[str, object]]]:
    """The schemas that a schema refers to, directly or not (`reachable`), and those that refer to it."""
    versions = [(schema.subject, schema.version)]
    if schema.subject is None and schema.id is not None:
        versions = [(item.subject, item.version) for item in client.versions_of(schema.id)]
    ids = {
        schema_id
        for subject, version in versions
        if subject is not None and version is not None
        for schema_id in client.referenced_by(subject, version)
    }
    return {
        "reachable": [
            {"name": item.name, "subject": item.subject, "version": item.version}
            for item in client.references(schema.definition)
        ],
        "referenced_by": [
            {"id": schema_id, "subject": item.subject, "version": item.version}
            for schema_id in sorted(ids)
            for item in client.versions_of(schema_id, subject=schema.subject)
        ],
    }
