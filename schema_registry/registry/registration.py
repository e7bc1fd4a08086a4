"""Registering a schema under a subject.

On PostgreSQL a registration is decided twice by the same code: first beside the database's locks, which parses the
schema and checks its compatibility while nobody waits; then under the lock of the subject, where both are remembered.
Only then is anything written. On SQLite there is one process, whose interpreter does one thing at a time anyway: once
is enough. Ids come from the counter of the context, whose row all registrations of new contents meet at: it is touched
last.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from core_broker.service.clock import Clock
from schema_registry.errors import RegistryError, incompatible, invalid_schema, not_permitted
from schema_registry.metrics import RegistryMetrics
from schema_registry.models import Config
from schema_registry.registry import lookups, references, scopes
from schema_registry.registry.candidates import Candidate, CandidateReader, Draft
from schema_registry.registry.compatibility_check import CompatibilityCheck
from schema_registry.registry.contracts import effective_contract, has_defaults_or_overrides
from schema_registry.registry.guid import json_of
from schema_registry.registry.scopes import Mode
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import contexts, registrations, schemas, subjects, versions
from schema_registry.store import references as mentions
from schema_registry.store.database import Database
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.subjects import Kind
from schema_registry.store.versions import StoredVersion


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be registered, and how."""

    subject: SubjectName
    draft: Draft
    config: Config
    """What held for the subject when the request came."""
    normalize: bool
    skip_compatibility: bool
    is_edited: bool = False
    """Whether tags were written into the text, so that it is none that a client sends again and again."""


class NewVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The decision to store a version."""

    version: int
    candidate: Candidate
    existing: StoredSchema | None
    """The content, if the context has it already."""
    explicit_id: int | None
    is_copy: bool
    """Whether an import brings a content that is there under another id."""


class Registrar:
    """Registers schemas."""

    def __init__(
        self,
        database: Database,
        reader: CandidateReader,
        clock: Clock,
        *,
        default_level: str,
        metrics: RegistryMetrics,
    ) -> None:
        self._metrics = metrics
        self._database = database
        self._reader = reader
        self._clock = clock
        self._default_level = default_level

    def register(self, ask: Callable[[Connection], Request]) -> StoredVersion:
        """The version that the schema is: one that was there, or a new one. `ask` tells what is to be registered."""
        try:
            found, is_new = self._register(ask)
        except RegistryError as error:
            self._metrics.refused(error.code)
            raise
        if is_new:
            self._metrics.registered(found.schema.schema_type)
        return found

    def _register(self, ask: Callable[[Connection], Request]) -> tuple[StoredVersion, bool]:
        check = CompatibilityCheck(self._reader)
        with self._database.read() as connection:
            request = ask(connection)
            known = self._known(connection, request)
            if known is not None:
                return known, False
            if not self._database.is_sqlite:
                self._decide(connection, request, check, config=request.config)
        return self._database.write(lambda connection: self._write(connection, request, check))

    def _known(self, connection: Connection, request: Request) -> StoredVersion | None:
        """The version that a client registers again, whatever the mode: nothing is to be written."""
        subject, draft, config = request.subject, request.draft, request.config
        if request.is_edited or draft.is_empty or has_defaults_or_overrides(config):
            return None
        normalize = request.normalize or bool(config.normalize)
        candidate = self._reader.read(connection, subject, draft, normalize=normalize, is_new=False, strict=False)
        if draft.version == lookups.LATEST:
            latest = versions.latest(connection, *subject.key)
            found = latest if latest is not None and lookups.is_same(candidate, latest) else None
        else:
            found = lookups.find_candidate(connection, subject, candidate, deleted=False)
        return found if found is not None and _is_asked_for(draft, found) else None

    def _write(self, connection: Connection, request: Request, check: CompatibilityCheck) -> tuple[StoredVersion, bool]:
        subject = request.subject
        contexts.ensure(connection, subject.context)
        subjects.lock_or_create(connection, *subject.key)
        # What a schema mentions must still be there when it is committed.
        targets = references.targets(subject, request.draft.references)
        subjects.hold(connection, [target.key for target in targets if target != subject])
        config = scopes.config_in_scope(connection, subject, default_level=self._default_level)
        decision = self._decide(connection, request, check, config=config)
        if isinstance(decision, StoredVersion):
            return decision, False
        return self._store(connection, subject, decision), True

    def _decide(
        self, connection: Connection, request: Request, check: CompatibilityCheck, *, config: Config
    ) -> StoredVersion | NewVersion:
        """What a registration comes to: a version that is there, a new one, or a refusal."""
        subject, draft = request.subject, request.draft
        mode = scopes.mode_in_scope(connection, subject)
        _check_mode(mode, subject, draft)
        next_version = versions.newest_number(connection, *subject.key) + 1
        latest = versions.latest(connection, *subject.key) if next_version > 1 else None
        if not mode.is_import:
            draft = _filled(draft, latest, config, next_version)
        if draft.is_empty:
            raise invalid_schema("Empty schema")
        candidate = self._candidate(connection, request, draft, config)
        if draft.version == 0 and latest is not None:
            known = lookups.find_candidate(connection, subject, candidate, deleted=False)
            if known is not None and draft.id in (None, known.schema.id):
                return known
        if not mode.is_import and not request.skip_compatibility:
            messages = check.against_subject(connection, subject, candidate, config=config, latest=latest)
            if messages:
                raise incompatible(subject.qualified, messages)
        version = draft.version if draft.version > 0 else next_version
        if version != next_version and not mode.is_import:
            raise invalid_schema("Version is not one more than previous version")
        existing, is_copy = _existing(connection, subject, draft, candidate)
        return NewVersion(
            version=version, candidate=candidate, existing=existing, explicit_id=draft.id, is_copy=is_copy
        )

    def _candidate(self, connection: Connection, request: Request, draft: Draft, config: Config) -> Candidate:
        normalize = request.normalize or bool(config.normalize)
        is_new = draft.id is None
        strict = is_new and config.validate_new_schemas is not False
        return self._reader.read(connection, request.subject, draft, normalize=normalize, is_new=is_new, strict=strict)

    def _store(self, connection: Connection, subject: SubjectName, new: NewVersion) -> StoredVersion:
        created_ms = self._clock.now_ms()
        versions.raise_latest(connection, *subject.key, new.version)
        if new.existing is None and new.explicit_id is None:
            stored = registrations.add(
                connection,
                _content(subject, new, schema_id=0),
                subject=subject.name,
                version=new.version,
                created_ms=created_ms,
            )
        else:
            stored = new.existing or _import_content(connection, subject, new)
            put = versions.add if new.explicit_id is None else versions.put
            put(connection, *subject.key, version=new.version, schema_id=stored.id, created_ms=created_ms)
            _forget_older(connection, subject, stored.id, new.version)
        return StoredVersion(
            context=subject.context,
            subject=subject.name,
            version=new.version,
            is_deleted=False,
            created_ms=created_ms,
            schema=stored,
        )


def _filled(draft: Draft, latest: StoredVersion | None, config: Config, next_version: int) -> Draft:
    """The draft with what it takes over from the latest version and from the config."""
    previous = latest.schema if latest is not None else None
    if draft.is_empty:
        if previous is None:
            raise invalid_schema("Empty schema")
        draft = replace(
            draft,
            text=previous.text,
            schema_type=previous.schema_type,
            references=references.as_given(previous.references),
        )
    return effective_contract(draft, previous, config, version=next_version)


def _is_asked_for(draft: Draft, found: StoredVersion) -> bool:
    if draft.version in (0, lookups.LATEST):
        return draft.id in (None, found.schema.id)
    return draft.id == found.schema.id and draft.version == found.version


def _check_mode(mode: Mode, subject: SubjectName, draft: Draft) -> None:
    where = f"Subject {subject.qualified} in context {subject.context}"
    if mode.is_read_only:
        raise not_permitted(f"{where} is in read-only mode")
    if draft.id is not None and not mode.is_import:
        raise not_permitted(f"{where} is not in import mode")
    if draft.id is None and mode is not Mode.READWRITE:
        raise not_permitted(f"{where} is not in read-write mode")


def _existing(
    connection: Connection, subject: SubjectName, draft: Draft, candidate: Candidate
) -> tuple[StoredSchema | None, bool]:
    """The stored content that the candidate is, and whether it must be stored again for the sake of an id."""
    same = schemas.by_content(connection, subject.context, candidate.content.content_hash)
    if draft.id is None:
        return (same[0] if same else None), False
    for stored in same:
        if stored.id == draft.id:
            return stored, False
    if schemas.by_id(connection, subject.context, draft.id) is not None:
        raise not_permitted(f"Overwrite new schema with id {draft.id} in context {subject.context} is not permitted.")
    return None, bool(same)


def _import_content(connection: Connection, subject: SubjectName, new: NewVersion) -> StoredSchema:
    """Store a content under the id that it comes with."""
    stored = _content(subject, new, schema_id=new.explicit_id or 0)
    contexts.raise_last_id(connection, subject.context, stored.id)
    schemas.add(connection, stored, is_copy=new.is_copy)
    return stored


def _content(subject: SubjectName, new: NewVersion, *, schema_id: int) -> StoredSchema:
    content = new.candidate.content
    return StoredSchema(
        context=subject.context,
        id=schema_id,
        guid=content.guid,
        content_hash=content.content_hash,
        meaning_hash=new.candidate.meaning_hash,
        schema_type=content.schema_type,
        text=content.text,
        metadata=json_of(content.metadata),
        rule_set=json_of(content.rule_set),
        references=content.references,
    )


def _forget_older(connection: Connection, subject: SubjectName, schema_id: int, version: int) -> None:
    """Remove deleted versions of the schema that is registered again, unless others mention them."""
    context, name = subject.key
    for usage in versions.using(connection, context, schema_id, subject=name, kind=Kind.DELETED):
        is_mentioned = mentions.first_referenced(connection, context, name, version=usage.version, deleted=True)
        if usage.version < version and is_mentioned is None:
            versions.remove(connection, context, name, usage.version)
