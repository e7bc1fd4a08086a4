"""Registering a schema under a subject.

On PostgreSQL the same code decides a registration twice. The first time it holds no lock, so no writer waits while
the schema is parsed and its compatibility checked. The second time it holds the subject's lock, and takes the parsed
schema and the verdicts from caches. Only then is anything written. SQLite has a single writer in a single process, so
one decision is enough. Ids come from a counter in the context's row, which every registration of a new content must
lock: it is updated last.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from core_broker.service.clock import Clock
from core_broker.web_access.rules import Operation
from schema_registry.errors import RegistryError, incompatible, invalid_schema, not_permitted
from schema_registry.metrics import RegistryMetrics
from schema_registry.models import Config, TagBody
from schema_registry.registry import data_contracts, lookups, references, scopes, subject_names, tagging
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.candidates import Candidate, CandidateReader, Draft
from schema_registry.registry.compatibility_check import CompatibilityCheck
from schema_registry.registry.guid import to_json
from schema_registry.registry.scopes import Mode
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import contexts, registrations, schemas, subjects, versions
from schema_registry.store import references as reference_rows
from schema_registry.store.database import Database
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.subjects import DeletionFilter
from schema_registry.store.versions import StoredVersion


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to register, and how."""

    subject: SubjectName
    draft: Draft
    config: Config
    """The subject's config when the request arrived."""
    normalize: bool = False
    skip_compatibility: bool = False
    is_edited: bool = False
    """Whether the registry itself wrote tags into the text; clients do not send such a text again and again."""


class NewVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The decision to store a version."""

    version: int
    candidate: Candidate
    existing: StoredSchema | None
    """The stored schema with this content, if the context has one."""
    explicit_id: int | None
    is_copy: bool
    """Whether an import brings a content that is stored under another id already."""


class Registrar:
    """Registers schemas."""

    def __init__(
        self,
        database: Database,
        reader: CandidateReader,
        clock: Clock,
        *,
        default_level: str,
        reject_empty_subject: bool,
        metrics: RegistryMetrics,
    ) -> None:
        self._metrics = metrics
        self._database = database
        self._reader = reader
        self._clock = clock
        self._default_level = default_level
        self._reject_empty_subject = reject_empty_subject

    def register(
        self,
        subject: str,
        draft: Draft,
        *,
        normalize: bool,
        skip_compatibility: bool,
        access: Access = EVERYTHING,
    ) -> StoredVersion:
        """Register a client's schema; returns the version that has it, an existing one or a new one."""
        check = CompatibilityCheck(self._reader)
        with self._count_refusals():
            with self._database.read() as connection:
                name, config = self._writable_subject(connection, subject, access)
                references.require_readable(access, name, draft.references)
                if draft.is_empty or draft.has_tag_changes:
                    access.require(Operation.READ, name)  # the response has the text of the version before
                if config.validate_rules is not False:
                    data_contracts.check_rules(draft.rule_set)
                if draft.has_tag_changes:
                    draft = tagging.apply_tag_changes(connection, self._reader, name, draft)
                request = Request(
                    subject=name,
                    draft=draft,
                    config=config,
                    normalize=normalize,
                    skip_compatibility=skip_compatibility,
                    is_edited=draft.has_tag_changes,
                )
                existing = self._find_existing(connection, request)
                if existing is not None:
                    return existing
                self._decide_early(connection, request, check)
            return self._write(request, check)

    def tag(self, subject: str, number: int, body: TagBody, *, access: Access = EVERYTHING) -> StoredVersion:
        """Register one version of a subject again, with other tags, metadata or rules."""
        check = CompatibilityCheck(self._reader)
        with self._count_refusals():
            with self._database.read() as connection:
                name, config = self._writable_subject(connection, subject, access)
                access.require(Operation.READ, name)
                found = lookups.get_version(connection, name, number, deleted=False, access=access)
                draft = tagging.edit_version(connection, self._reader, name, found, body)
                request = Request(subject=name, draft=draft, config=config, is_edited=True)
                self._decide_early(connection, request, check)
            return self._write(request, check)

    @contextmanager
    def _count_refusals(self) -> Iterator[None]:
        try:
            yield
        except RegistryError as error:
            self._metrics.count_refused(error.code)
            raise

    def _writable_subject(self, connection: Connection, subject: str, access: Access) -> tuple[SubjectName, Config]:
        """The subject to write to, with aliases followed, and its config. Raises 40301."""
        asked = name = subject_names.parse_for_write(subject, reject_empty=self._reject_empty_subject)
        config = scopes.effective_config(connection, name, default_level=self._default_level)
        if config.alias:
            name = subject_names.parse_for_write(subject_names.parse_beside(name, config.alias).qualified)
            config = scopes.effective_config(connection, name, default_level=self._default_level)
        access.require_meant(Operation.WRITE, asked, name)
        return name, config

    def _find_existing(self, connection: Connection, request: Request) -> StoredVersion | None:
        """The version that a client registers again: it is found in every mode, since nothing is written."""
        subject, draft, config = request.subject, request.draft, request.config
        added = (config.default_metadata, config.override_metadata, config.default_rule_set, config.override_rule_set)
        if request.is_edited or draft.is_empty or any(part is not None for part in added):
            return None
        normalize = request.normalize or bool(config.normalize)
        candidate = self._reader.read(connection, subject, draft, normalize=normalize, is_new=False, strict=False)
        if draft.version == lookups.LATEST:
            latest = versions.latest(connection, *subject.key)
            found = latest if latest is not None and lookups.is_same(candidate, latest) else None
        else:
            found = lookups.find_candidate(connection, subject, candidate, deleted=False)
        return found if found is not None and _matches_request(draft, found) else None

    def _decide_early(self, connection: Connection, request: Request, check: CompatibilityCheck) -> None:
        """Refuse what can be refused without a lock, and fill the caches for the decision under the lock."""
        if not self._database.is_sqlite:
            self._decide(connection, request, check, config=request.config)

    def _write(self, request: Request, check: CompatibilityCheck) -> StoredVersion:
        subject = request.subject

        def work(connection: Connection) -> tuple[StoredVersion, bool]:
            contexts.ensure(connection, subject.context)
            subjects.lock_or_create(connection, *subject.key)
            # The referenced subjects must still exist when this transaction commits.
            targets = references.targets(subject, request.draft.references)
            subjects.lock_against_deletion(connection, [target.key for target in targets if target != subject])
            config = scopes.effective_config(connection, subject, default_level=self._default_level)
            decision = self._decide(connection, request, check, config=config)
            if isinstance(decision, StoredVersion):
                return decision, False
            return self._store(connection, subject, decision), True

        version, is_new = self._database.write(work)
        if is_new:
            self._metrics.count_registered(version.schema.schema_type)
        return version

    def _decide(
        self, connection: Connection, request: Request, check: CompatibilityCheck, *, config: Config
    ) -> StoredVersion | NewVersion:
        """Decide on an existing version, a new one, or a refusal."""
        subject, draft = request.subject, request.draft
        mode = scopes.effective_mode(connection, subject)
        _check_mode(mode, subject, draft)
        next_version = versions.newest_number(connection, *subject.key) + 1
        latest = versions.latest(connection, *subject.key) if next_version > 1 else None
        if not mode.is_import:
            draft = _complete_draft(draft, latest, config, next_version)
        if draft.is_empty:
            raise invalid_schema("Empty schema")
        is_new = draft.id is None
        candidate = self._reader.read(
            connection,
            subject,
            draft,
            normalize=request.normalize or bool(config.normalize),
            is_new=is_new,
            strict=is_new and config.validate_new_schemas is not False,
        )
        if draft.version == 0 and latest is not None:
            existing_version = lookups.find_candidate(connection, subject, candidate, deleted=False)
            if existing_version is not None and draft.id in (None, existing_version.schema.id):
                return existing_version
        if not mode.is_import and not request.skip_compatibility:
            messages = check.against_subject(connection, subject, candidate, config=config, latest=latest)
            if messages:
                raise incompatible(subject.qualified, messages)
        version = draft.version if draft.version > 0 else next_version
        if version != next_version and not mode.is_import:
            raise invalid_schema("Version is not one more than previous version")
        existing, is_copy = _find_content(connection, subject, draft, candidate)
        return NewVersion(
            version=version, candidate=candidate, existing=existing, explicit_id=draft.id, is_copy=is_copy
        )

    def _store(self, connection: Connection, subject: SubjectName, new: NewVersion) -> StoredVersion:
        created_ms = self._clock.now_ms()
        versions.raise_latest(connection, *subject.key, new.version)
        if new.existing is None and new.explicit_id is None:
            stored = registrations.add(
                connection,
                _to_stored(subject, new, schema_id=0),
                subject=subject.name,
                version=new.version,
                created_ms=created_ms,
            )
        else:
            stored = new.existing or _import_content(connection, subject, new)
            add_version = versions.add if new.explicit_id is None else versions.add_or_replace
            add_version(connection, *subject.key, version=new.version, schema_id=stored.id, created_ms=created_ms)
            _remove_superseded(connection, subject, stored.id, new.version)
        return StoredVersion(
            context=subject.context,
            subject=subject.name,
            version=new.version,
            is_deleted=False,
            created_ms=created_ms,
            schema=stored,
        )


def _complete_draft(draft: Draft, latest: StoredVersion | None, config: Config, next_version: int) -> Draft:
    """Add what the draft inherits from the latest version and from the config."""
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
    return draft.with_contract(previous, config, version=next_version)


def _matches_request(draft: Draft, found: StoredVersion) -> bool:
    """Whether a version has the id and the number that the client asked for, if any."""
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


def _find_content(
    connection: Connection, subject: SubjectName, draft: Draft, candidate: Candidate
) -> tuple[StoredSchema | None, bool]:
    """The stored schema with the candidate's content, and whether an import stores that content a second time."""
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
    """Store a content under the id that the import gives it."""
    stored = _to_stored(subject, new, schema_id=new.explicit_id or 0)
    contexts.raise_last_id(connection, subject.context, stored.id)
    schemas.add(connection, stored, is_copy=new.is_copy)
    return stored


def _to_stored(subject: SubjectName, new: NewVersion, *, schema_id: int) -> StoredSchema:
    content = new.candidate.content
    return StoredSchema(
        context=subject.context,
        id=schema_id,
        guid=content.guid,
        content_hash=content.content_hash,
        meaning_hash=new.candidate.meaning_hash,
        schema_type=content.schema_type,
        text=content.text,
        metadata=to_json(content.metadata),
        rule_set=to_json(content.rule_set),
        references=content.references,
    )


def _remove_superseded(connection: Connection, subject: SubjectName, schema_id: int, version: int) -> None:
    """Remove the soft-deleted versions of a schema that is registered again, unless other schemas reference them."""
    context, name = subject.key
    for usage in versions.usages(connection, context, schema_id, subject=name, which=DeletionFilter.DELETED):
        referenced = reference_rows.first_referenced(connection, context, name, version=usage.version, deleted=True)
        if usage.version < version and referenced is None:
            versions.remove(connection, context, name, usage.version)
