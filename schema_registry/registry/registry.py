"""The registry itself, as the routes call it."""

import copy
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from core_broker.service.clock import Clock
from core_broker.web_access.rules import Operation
from schema_registry.errors import (
    RegistryError,
    context_not_empty,
    invalid_schema,
    not_permitted,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from schema_registry.formats.schema import Limits
from schema_registry.metrics import RegistryMetrics
from schema_registry.models import (
    Compatibility,
    Config,
    ConfigUpdate,
    ContextId,
    ModeBody,
    SchemaBody,
    SchemaResponse,
    SubjectVersion,
    TagBody,
)
from schema_registry.registry import answers, deletes, listings, lookups, references, scopes, subject_names
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.candidates import CandidateReader
from schema_registry.registry.compatibility_check import CompatibilityCheck
from schema_registry.registry.listings import SchemaFilter
from schema_registry.registry.parsing import Parser
from schema_registry.registry.registration import Registrar
from schema_registry.registry.scopes import TOP
from schema_registry.registry.subject_names import SubjectName
from schema_registry.settings import RegistrySettings
from schema_registry.store import contexts, schemas, subjects, versions
from schema_registry.store import scopes as scope_rows
from schema_registry.store.database import Database
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.subjects import DeletionFilter
from schema_registry.store.versions import StoredVersion


class Registry:
    """Versioned schemas. All methods block, are thread-safe and raise RegistryError.

    `subject` may name its context (`:.context:name`); `version` is a number, `-1` or `latest`. `style` is the query
    parameter `format`.
    """

    def __init__(
        self,
        database: Database,
        settings: RegistrySettings,
        clock: Clock,
        *,
        on_schemas_removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_schemas_removed` is called after an id may have lost its schema, by a delete or by an import."""
        self.metrics = RegistryMetrics()
        self._on_schemas_removed = on_schemas_removed
        self._database = database
        self._settings = settings
        self._access = EVERYTHING
        limits = Limits(max_depth=settings.schema_max_depth, max_elements=settings.schema_max_elements)
        self._reader = CandidateReader(Parser(limits), schema_bytes_max=settings.schema_max_bytes)
        self._default_level = settings.schema_compatibility_level
        self._registrar = Registrar(
            database,
            self._reader,
            clock,
            default_level=self._default_level,
            reject_empty_subject=settings.schema_reject_empty_subject,
            metrics=self.metrics,
        )

    def seen_by(self, access: Access) -> "Registry":
        """The same registry, which does what this caller may do and nothing else."""
        limited = copy.copy(self)
        limited._access = access  # noqa: SLF001 - of the same class
        return limited

    # --- register, look up ---

    def register(
        self, subject: str, body: SchemaBody, *, normalize: bool = False, style: str = "", force: bool = False
    ) -> SchemaResponse:
        """Register a schema as the next version of a subject, unless it is a version already; `force` skips the
        compatibility check.
        """
        draft = self._reader.draft(body)
        found = self._registrar.register(
            subject, draft, normalize=normalize, skip_compatibility=force, access=self._access
        )
        if draft.id is not None:
            self._on_schemas_removed()  # an import may replace versions
        if style.strip():
            with self._database.read() as connection:
                answer = self._describe(connection, found, style)
        else:
            answer = answers.describe_version(found)
        return answer.model_copy(update={"subject": None})

    def look_up(
        self, subject: str, body: SchemaBody, *, normalize: bool = False, style: str = "", deleted: bool = False
    ) -> SchemaResponse:
        """The version of a subject that has this schema."""
        draft = self._reader.draft(body)
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject)
            references.require_readable(self._access, name, draft.references)
            config = self._config(connection, name)
            found = lookups.look_up(
                connection,
                self._reader,
                name,
                draft,
                config=config,
                normalize=normalize or bool(config.normalize),
                deleted=deleted,
                access=self._access,
            )
            return self._describe(connection, found, style)

    def check(
        self, subject: str, version: str | None, body: SchemaBody, *, normalize: bool, verbose: bool
    ) -> Compatibility:
        """Whether a schema is compatible with a version, or without one with those that the subject's level names."""
        number = None if version is None else lookups.parse_version(version)
        try:
            with self._database.read() as connection:
                name = self._follow_alias(connection, subject)
                messages = self._differences(connection, name, number, body, normalize=normalize)
        except RegistryError as error:
            if not verbose or error.code != invalid_schema("").code:
                raise
            messages = [error.message]
        return Compatibility(is_compatible=not messages, messages=messages if verbose else None)

    # --- by id and guid ---

    def schema_by_id(
        self,
        schema_id: int,
        *,
        subject: str | None = None,
        style: str = "",
        reference_style: str = "",
        fetch_max_id: bool = False,
        find_tags: Sequence[str] = (),
    ) -> SchemaResponse:
        """The schema with an id, in the context of the subject if one is given."""
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject) if subject else None
            schema, version = lookups.find_by_id(connection, schema_id, name, self._access)
            usage = version or versions.find_usage(connection, schema.context, schema.id)
            text = self._format(connection, schema, style)
            max_id = contexts.last_id(connection, schema.context) if fetch_max_id else None
            found_tags = answers.find_tags(connection, self._reader, schema, find_tags)
        if version is None:
            answer = answers.describe_schema(schema, usage, text=text, reference_style=reference_style)
        else:
            # Confluent's Python client caches this answer as that version; without the id it would write none.
            answer = answers.describe_version(version, text=text, reference_style=reference_style)
        return answer.model_copy(update={"schema_tags": found_tags, "max_id": max_id})

    def schema_by_guid(self, guid: str, *, style: str = "") -> SchemaResponse:
        """The schema with a guid."""
        with self._database.read() as connection:
            ids = lookups.find_ids_by_guid(connection, guid, self._access)
            schema = schemas.by_id(connection, *next((item for item in ids if item[0] == contexts.DEFAULT), ids[0]))
            if schema is None:  # deleted between the two queries
                raise schema_not_found(guid)
            usage = versions.find_usage(connection, schema.context, schema.id)
            return answers.describe_schema(schema, usage, text=self._format(connection, schema, style))

    def ids_of_guid(self, guid: str) -> list[ContextId]:
        """The ids of a schema in all contexts."""
        with self._database.read() as connection:
            return [
                ContextId(context=context, id=found)
                for context, found in lookups.find_ids_by_guid(connection, guid, self._access)
            ]

    def subjects_of_id(
        self, schema_id: int, *, subject: str | None, deleted: bool, offset: int, limit: int
    ) -> list[str]:
        """The subjects that use a schema."""
        used = self.versions_of_id(schema_id, subject=subject, deleted=deleted, offset=0, limit=-1)
        return listings.page(dict.fromkeys(version.subject for version in used), offset=offset, limit=limit)

    def versions_of_id(
        self, schema_id: int, *, subject: str | None, deleted: bool, offset: int, limit: int
    ) -> list[SubjectVersion]:
        """The versions that have this schema."""
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject) if subject else None
            used = listings.usages(connection, schema_id, name, deleted=deleted, access=self._access)
        return listings.page(used, offset=offset, limit=limit)

    # --- lists ---

    def schemas(
        self, prefix: str, wanted: SchemaFilter, *, aliases: bool, offset: int, limit: int
    ) -> list[SchemaResponse]:
        """The versions of subjects whose names begin with a prefix."""
        find = listings.schema_list_with_aliases if aliases else listings.schema_list
        if not 0 < limit <= self._settings.schema_search_max_limit:
            limit = self._settings.schema_search_default_limit
        with self._database.read() as connection:
            return find(connection, prefix, wanted, offset=offset, limit=limit, access=self._access)

    def subjects(self, *, prefix: str, deleted: bool, deleted_only: bool, offset: int, limit: int) -> list[str]:
        """The subjects whose names begin with a prefix."""
        which = DeletionFilter.of(deleted=deleted, deleted_only=deleted_only)
        with self._database.read() as connection:
            return listings.subject_list(
                connection, prefix, which=which, offset=offset, limit=limit or -1, access=self._access
            )

    def versions(
        self, subject: str, *, deleted: bool, deleted_only: bool, deleted_as_negative: bool, offset: int, limit: int
    ) -> list[int]:
        """The version numbers of a subject."""
        with self._database.read() as connection:
            return listings.version_list(
                connection,
                self._follow_alias(connection, subject),
                which=DeletionFilter.of(deleted=deleted, deleted_only=deleted_only),
                deleted_as_negative=deleted_as_negative,
                offset=offset,
                limit=limit or -1,
            )

    def contexts(self, *, prefix: str, offset: int, limit: int) -> list[str]:
        """The contexts whose names begin with a prefix."""
        with self._database.read() as connection:
            return listings.context_list(connection, prefix, offset=offset, limit=limit or -1, access=self._access)

    # --- versions of subjects ---

    def version(
        self,
        subject: str,
        version: str,
        *,
        style: str = "",
        reference_style: str = "",
        deleted: bool = False,
        find_tags: Sequence[str] = (),
    ) -> SchemaResponse:
        """A version of a subject; with `find_tags` also the records and fields that have one of these tags."""
        number = lookups.parse_version(version)
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject)
            found = lookups.get_version(connection, name, number, deleted=deleted, access=self._access)
            text = self._format(connection, found.schema, style)
            found_tags = answers.find_tags(connection, self._reader, found.schema, find_tags)
        answer = answers.describe_version(found, text=text, reference_style=reference_style)
        return answer.model_copy(update={"schema_tags": found_tags})

    def referenced_by(self, subject: str, version: str, *, deleted: bool, offset: int, limit: int) -> list[int]:
        """The ids of the schemas that reference a version."""
        number = lookups.parse_version(version)
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject)
            found = lookups.get_version(connection, name, number, deleted=True, access=self._access)
            target = (found.context, found.subject, found.version)
            return listings.referrer_list(
                connection, target, deleted=deleted, offset=offset, limit=limit or -1, access=self._access
            )

    def latest_with_metadata(
        self, subject: str, properties: Mapping[str, str], *, style: str, deleted: bool
    ) -> SchemaResponse:
        """The newest version whose metadata has all these properties."""
        with self._database.read() as connection:
            name = self._follow_alias(connection, subject)
            found = lookups.find_latest_with_properties(connection, name, properties, deleted=deleted)
            return self._describe(connection, found, style)

    def tag(self, subject: str, version: str, body: TagBody) -> SchemaResponse:
        """Write tags into a version and register the result as the next one."""
        found = self._registrar.tag(subject, lookups.parse_version(version), body, access=self._access)
        return answers.describe_version(found).model_copy(update={"subject": None})

    # --- delete ---

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete all versions of a subject: softly, or permanently if that was done before."""

        def work(connection: Connection) -> list[int]:
            name = self._follow_alias(connection, subject, Operation.DELETE)
            return deletes.delete_subject(connection, name, permanent=permanent)

        deleted = self._database.write(work)
        self.metrics.count_deleted(versions=len(deleted), permanent=permanent)
        self._on_schemas_removed()
        return deleted

    def delete_version(self, subject: str, version: str, *, permanent: bool) -> int:
        """Delete one version: softly, or permanently if that was done before."""
        number = lookups.parse_version(version)

        def work(connection: Connection) -> int:
            name = self._follow_alias(connection, subject, Operation.DELETE)
            return deletes.delete_version(connection, name, number, permanent=permanent)

        deleted = self._database.write(work)
        self.metrics.count_deleted(versions=1, permanent=permanent)
        self._on_schemas_removed()
        return deleted

    def delete_context(self, context: str) -> None:
        """Remove a context that has no subjects."""
        name = subject_names.context_name(context)

        def work(connection: Connection) -> None:
            if name == contexts.DEFAULT:
                raise not_permitted("The default context cannot be deleted")
            if not contexts.exists(connection, name):
                raise subject_not_found(SubjectName(name, "").qualified)
            if subjects.any_in(connection, name, deleted=True):
                raise context_not_empty(name)
            contexts.remove(connection, name)

        self._database.write(work)
        self._on_schemas_removed()

    # --- config and mode ---

    def config(self, subject: str | None, *, default_to_global: bool) -> Config:
        """The config set for a subject; with `default_to_global` the one in effect there, inherited values included."""
        scope = self._scope(subject)
        find = scopes.effective_config if default_to_global else scopes.own_config
        with self._database.read() as connection:
            return find(connection, scope, default_level=self._default_level)

    def update_config(self, subject: str | None, update: ConfigUpdate) -> ConfigUpdate:
        """Change the keys that the update has; returns the whole config that is set afterwards."""
        scope = self._scope(subject)
        return self._database.write(lambda connection: scopes.update_config(connection, scope, update))

    def delete_config(self, subject: str | None) -> Config:
        """Inherit the config again; returns the config that was set."""
        scope, level = self._scope(subject), self._default_level
        return self._database.write(lambda connection: scopes.delete_config(connection, scope, default_level=level))

    def mode(self, subject: str | None, *, default_to_global: bool) -> ModeBody:
        """The mode set for a subject; with `default_to_global` the one in effect there."""
        scope = self._scope(subject)
        find = scopes.effective_mode if default_to_global else scopes.own_mode
        with self._database.read() as connection:
            return ModeBody(mode=find(connection, scope))

    def set_mode(self, subject: str | None, body: ModeBody, *, force: bool) -> ModeBody:
        """Set the mode; a body without one makes the subject inherit it again."""
        self._refuse_fixed_modes()
        scope = self._scope(subject)
        if body.mode is None:
            self._database.write(lambda connection: scope_rows.remove_mode(connection, scope.key))
            return body
        mode = scopes.parse_mode(body.mode, scope)
        within = None if subject is None else scope
        self._database.write(lambda connection: deletes.set_mode(connection, within, mode, force=force))
        if mode.is_import:
            self._on_schemas_removed()
        return body

    def delete_mode(self, subject: str | None, *, recursive: bool) -> ModeBody:
        """Inherit the mode again, with `recursive` for all subjects of a context too; returns the mode that was set."""
        self._refuse_fixed_modes()
        scope = self._scope(subject)
        return self._database.write(lambda connection: scopes.delete_mode(connection, scope, recursive=recursive))

    def _describe(self, connection: Connection, found: StoredVersion, style: str) -> SchemaResponse:
        return answers.describe_version(found, text=self._format(connection, found.schema, style))

    def _format(self, connection: Connection, schema: StoredSchema, style: str) -> str:
        if style.strip():
            references.require_stored_readable(connection, self._access, schema)
        return answers.format_text(connection, self._reader, schema, style)

    def _scope(self, subject: str | None) -> SubjectName:
        return TOP if subject is None else subject_names.parse_for_write(subject, allow_global=True)

    def _refuse_fixed_modes(self) -> None:
        if not self._settings.mode_mutability:
            raise not_permitted("Mode changes are not allowed")

    def _follow_alias(self, connection: Connection, subject: str, operation: Operation = Operation.READ) -> SubjectName:
        """The subject that is meant; an alias gives no rights to it. Raises 40301."""
        asked = subject_names.parse(subject)
        name = scopes.follow_alias(connection, asked)
        if asked.name or name != asked:  # a context alone stands for the schemas that the caller may see there
            self._access.require_meant(operation, asked, name)
        return name

    def _config(self, connection: Connection, subject: SubjectName) -> Config:
        return scopes.effective_config(connection, subject, default_level=self._default_level)

    def _differences(
        self, connection: Connection, subject: SubjectName, number: int | None, body: SchemaBody, *, normalize: bool
    ) -> list[str]:
        earlier = None
        if number is not None:
            earlier = lookups.find_version(connection, subject, number, deleted=False)
            if earlier is None and number != lookups.LATEST:
                raise version_not_found(number)
        config = self._config(connection, subject)
        draft = self._reader.draft(body)
        references.require_readable(self._access, subject, draft.references)
        if draft.is_empty:
            raise invalid_schema("Empty schema")
        candidate = self._reader.read(
            connection,
            subject,
            draft,
            normalize=normalize or bool(config.normalize),
            is_new=True,
            strict=config.validate_new_schemas is not False,
        )
        check = CompatibilityCheck(self._reader)
        if number is None or earlier is None:
            latest = lookups.find_version(connection, subject, lookups.LATEST, deleted=False)
            return check.against_subject(connection, subject, candidate, config=config, latest=latest)
        return check.against_version(connection, candidate, config, version=earlier.version, stored=earlier.schema)
