"""A client of the schema registry that caches immutable results, and others for a short time."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar
from urllib.parse import quote

import msgspec

from core_broker.service.clock import Clock, SystemClock
from schema_registry.client.cache import BoundedCache
from schema_registry.client.errors import IncompatibleSchema, Refused, SchemaNotFound
from schema_registry.client.models import (
    Compatibility,
    RegisteredSchema,
    SchemaDefinition,
    SchemaPayload,
    SubjectVersion,
)
from schema_registry.client.references import resolve
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.client.transport import Query, Transport
from schema_registry.formats.schema import ResolvedReference

T = TypeVar("T")
Version = int | str
"""A number, or `latest`."""


class RegistryClient:
    """Confluent's registry API as methods; all raise `schema_registry.client.errors.ClientError`.

    Every method may block for a request, except those named `known…`, which only look into the caches: an async caller
    tries these first and runs the others in a thread. Thread-safe, but not fork-safe: create a new client after a fork.
    """

    def __init__(self, settings: RegistryClientSettings, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        capacity = settings.cache_capacity
        self.settings = settings
        self._transport = Transport(settings)
        self._by_id: BoundedCache[tuple[str | None, int], RegisteredSchema] = BoundedCache(capacity, clock=clock)
        self._by_guid: BoundedCache[str, RegisteredSchema] = BoundedCache(capacity, clock=clock)
        self._by_version: BoundedCache[tuple[str, int], RegisteredSchema] = BoundedCache(capacity, clock=clock)
        self._by_definition: BoundedCache[tuple[str, SchemaDefinition, bool], RegisteredSchema] = BoundedCache(
            capacity, clock=clock
        )
        self._latest: BoundedCache[str, RegisteredSchema] = BoundedCache(
            capacity, clock=clock, ttl_seconds=settings.latest_ttl_seconds
        )
        self._missing: BoundedCache[object, SchemaNotFound] = BoundedCache(
            capacity, clock=clock, ttl_seconds=settings.missing_ttl_seconds
        )
        self._references: BoundedCache[SchemaDefinition, tuple[ResolvedReference, ...]] = BoundedCache(
            capacity, clock=clock
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    # --- cached results ----------------------------------------------------------------------------------------------

    def known(self, schema_id: int, *, subject: str | None = None) -> RegisteredSchema | None:
        """The schema with an id, if it is cached."""
        return self._by_id.get((subject, schema_id))

    def known_guid(self, guid: str) -> RegisteredSchema | None:
        """The schema with a guid, if it is cached."""
        return self._by_guid.get(guid)

    def known_latest(self, subject: str) -> RegisteredSchema | None:
        """The latest schema of a subject, if it is cached."""
        return self._latest.get(subject)

    def known_registered(
        self, subject: str, definition: SchemaDefinition, *, normalize: bool = False
    ) -> RegisteredSchema | None:
        """The version of a subject that has a schema, if it is cached because it was registered or looked up before."""
        return self._by_definition.get((subject, definition, normalize))

    # --- schemas -----------------------------------------------------------------------------------------------------

    def by_id(self, schema_id: int, *, subject: str | None = None) -> RegisteredSchema:
        """The schema with an id, in the context of `subject` if several contexts are in use."""
        key = (subject, schema_id)
        query: Query = {} if subject is None else {"subject": subject}
        return self._by_id.get(key) or self._by_id.put(
            key, msgspec.structs.replace(self._fetch(key, f"/schemas/ids/{schema_id}", query), id=schema_id)
        )

    def by_guid(self, guid: str) -> RegisteredSchema:
        """The schema with a guid, which is the same in every registry."""
        return self._by_guid.get(guid) or self._by_guid.put(
            guid, msgspec.structs.replace(self._fetch(guid, f"/schemas/guids/{_segment(guid)}", {}), guid=guid)
        )

    def version(self, subject: str, version: Version, *, deleted: bool = False) -> RegisteredSchema:
        """One version of a subject."""
        if version in ("latest", -1):
            return self.latest(subject)
        if not isinstance(version, int):
            raise Refused(f"a version is a number or 'latest', not {version!r}", code=42202)
        key = (subject, version)
        return self._by_version.get(key) or self._by_version.put(
            key, self._get_schema(f"{_subject(subject)}/versions/{version}", {"deleted": deleted})
        )

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version of a subject, cached for a short time."""
        return self._latest.get(subject) or self._latest.put(
            subject, self._get_schema(f"{_subject(subject)}/versions/latest", {})
        )

    def register(
        self,
        subject: str,
        definition: SchemaDefinition,
        *,
        normalize: bool = False,
        metadata: Mapping[str, Any] | None = None,
        rule_set: Mapping[str, Any] | None = None,
    ) -> RegisteredSchema:
        """Register a schema as a version of a subject, unless it is one already; raises IncompatibleSchema."""
        is_plain = metadata is None and rule_set is None
        known = self._by_definition.get((subject, definition, normalize)) if is_plain else None
        if known is not None:
            return known
        body = {**_body(definition), **_without_none(metadata=metadata, ruleSet=rule_set)}
        try:
            content = self._transport.send(
                "POST", f"{_subject(subject)}/versions", body=body, query={"normalize": normalize}
            )
        except IncompatibleSchema as error:
            raise self._with_messages(error, subject, definition) from error
        self._latest.remove(lambda key: key == subject)
        registered = self._complete(_decode(content, SchemaPayload).to_registered(definition), subject)
        return self._remember(registered, subject, definition, normalize) if is_plain else registered

    def lookup(
        self, subject: str, definition: SchemaDefinition, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The version of a subject that has a schema; raises SchemaNotFound."""
        known = self._by_definition.get((subject, definition, normalize))
        if known is not None and known.version is not None:
            return known
        content = self._transport.send(
            "POST", _subject(subject), body=_body(definition), query={"normalize": normalize, "deleted": deleted}
        )
        registered = self._complete(_decode(content, SchemaPayload).to_registered(definition), subject)
        return registered if deleted else self._remember(registered, subject, definition, normalize)

    def references(self, definition: SchemaDefinition) -> tuple[ResolvedReference, ...]:
        """All direct and transitive references of a schema, each before those that use it."""
        if not definition.references:
            return ()
        known = self._references.get(definition)
        if known is not None:
            return known
        resolved = resolve(definition, lambda subject, version: self.version(subject, version, deleted=True))
        is_fixed = all(reference.version != -1 for reference in definition.references)
        return self._references.put(definition, resolved) if is_fixed else resolved

    def versions_of(self, schema_id: int, *, subject: str | None = None, deleted: bool = False) -> list[SubjectVersion]:
        """The versions that have the schema with an id, in the context of `subject`."""
        query: Query = {**_without_none(subject=subject), "deleted": deleted}
        return self._get(f"/schemas/ids/{schema_id}/versions", list[SubjectVersion], query)

    def referenced_by(self, subject: str, version: Version, *, deleted: bool = False) -> list[int]:
        """The ids of schemas that reference a version; with `deleted` also of those with only deleted versions."""
        path = f"{_subject(subject)}/versions/{_segment(str(version))}/referencedby"
        return self._get(path, list[int], {"deleted": deleted})

    def is_compatible(
        self, subject: str, definition: SchemaDefinition, *, version: Version | None = "latest", normalize: bool = False
    ) -> Compatibility:
        """Check a schema against one version of a subject, or (None) against those that the subject's level names."""
        suffix = "" if version is None else f"/{_segment(str(version))}"
        content = self._transport.send(
            "POST",
            f"/compatibility{_subject(subject)}/versions{suffix}",
            body=_body(definition),
            query={"verbose": True, "normalize": normalize},
        )
        return _decode(content, Compatibility)

    # --- subjects ----------------------------------------------------------------------------------------------------

    def subjects(self, *, prefix: str | None = None, deleted: bool = False) -> list[str]:
        """The names of subjects."""
        query: Query = {"deleted": deleted, **_without_none(subjectPrefix=prefix)}
        return self._get("/subjects", list[str], query)

    def schemas(
        self, *, prefix: str | None = None, deleted: bool = False, latest_only: bool = False
    ) -> list[RegisteredSchema]:
        """All versions of all subjects, or the latest of each, in few requests; older registries do not support it."""
        found: dict[tuple[str | None, int | None], RegisteredSchema] = {}
        page_size = 1_000  # the maximum of Confluent's registry
        query: Query = {
            "deleted": deleted,
            "latestOnly": latest_only,
            "subjectPrefix": prefix or ":*:",
            "limit": page_size,
        }
        while True:
            items = self._get("/schemas", list[SchemaPayload], {**query, "offset": len(found)})
            page = {(item.subject, item.version): item.to_registered() for item in items}
            if len(page) != page_size or page.keys() <= found.keys():  # the latter if the registry ignores the offset
                return list((found | page).values())
            found |= page

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The versions of a subject."""
        return self._get(f"{_subject(subject)}/versions", list[int], {"deleted": deleted})

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions of a subject: softly first, then with `permanent`."""
        content = self._transport.send("DELETE", _subject(subject), query={"permanent": permanent}, repeatable=False)
        self._forget(subject)
        return _decode(content, list[int])

    def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        """Delete one version of a subject: softly first, then with `permanent`."""
        path = f"{_subject(subject)}/versions/{_segment(str(version))}"
        content = self._transport.send("DELETE", path, query={"permanent": permanent}, repeatable=False)
        self._forget(subject)
        return _decode(content, int)

    # --- config ------------------------------------------------------------------------------------------------------

    def config(self, subject: str | None = None, *, default_to_global: bool = True) -> dict[str, Any]:
        """The config of a subject, or the global one; the level is under `compatibilityLevel`."""
        query: Query = {} if subject is None else {"defaultToGlobal": default_to_global}
        return self._get(_config(subject), dict[str, Any], query)

    def set_config(self, subject: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
        """Change the config of a subject, or the global one (None); the level is under `compatibility`."""
        return _decode(self._transport.send("PUT", _config(subject), body=config), dict[str, Any])

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        """Remove the config of a subject, which then inherits it; returns the config that was set."""
        return _decode(self._transport.send("DELETE", _config(subject), repeatable=False), dict[str, Any])

    # --- access rules ---

    def access_rules(self) -> list[dict[str, Any]]:
        """The access rules of the registry, as its API has them."""
        return self._get("/security/acls", list[dict[str, Any]], {})

    def add_access_rules(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Add access rules; those that exist stay."""
        self._transport.send("POST", "/security/acls", body=rules)

    def remove_access_rules(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Remove access rules; those that do not exist are ignored."""
        self._transport.send("DELETE", "/security/acls", body=rules)

    def _get(self, path: str, kind: type[T], query: Query) -> T:
        return _decode(self._transport.send("GET", path, query=query), kind)

    def _fetch(self, key: object, path: str, query: Query) -> RegisteredSchema:
        """Fetch a schema by an id that may come from garbage, so that a missing one is cached for a moment as well."""
        missing = self._missing.get(key)
        if missing is not None:
            raise SchemaNotFound(missing.message, code=missing.code)
        try:
            return self._get_schema(path, query)
        except SchemaNotFound as error:
            self._missing.put(key, error)
            raise

    def _get_schema(self, path: str, query: Query) -> RegisteredSchema:
        found = self._get(path, SchemaPayload, query)
        if found.schema is None:
            raise Refused("the registry's response has no schema")
        return found.to_registered()

    def _complete(self, registered: RegisteredSchema, subject: str) -> RegisteredSchema:
        if registered.id is None:
            raise Refused("the registry's response has no id")
        return msgspec.structs.replace(registered, subject=registered.subject or subject)

    def _remember(
        self, registered: RegisteredSchema, subject: str, definition: SchemaDefinition, normalize: bool
    ) -> RegisteredSchema:
        self._missing.remove(lambda key: key in ((None, registered.id), (subject, registered.id), registered.guid))
        return self._by_definition.put((subject, definition, normalize), registered)

    def _forget(self, subject: str) -> None:
        self._latest.remove(lambda key: key == subject)
        self._by_version.remove(lambda key: key[0] == subject)
        self._by_definition.remove(lambda key: key[0] == subject)

    def _with_messages(
        self, error: IncompatibleSchema, subject: str, definition: SchemaDefinition
    ) -> IncompatibleSchema:
        """The error with one message per difference, which only a compatibility check returns."""
        try:
            messages = self.is_compatible(subject, definition, version=None).messages
        except (SchemaNotFound, Refused):
            messages = ()  # an older registry has no such call
        return IncompatibleSchema(error.message, code=error.code, messages=messages)


def _segment(text: str) -> str:
    return quote(text, safe="")


def _subject(subject: str) -> str:
    return f"/subjects/{_segment(subject)}"


def _config(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{_segment(subject)}"


def _without_none(**values: T | None) -> dict[str, T]:
    return {name: value for name, value in values.items() if value is not None}


def _body(definition: SchemaDefinition) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": definition.text}
    if definition.schema_type != "AVRO":
        body["schemaType"] = definition.schema_type
    if definition.references:
        body["references"] = definition.references
    return body


def _decode(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the registry's response cannot be decoded: {error}") from error
