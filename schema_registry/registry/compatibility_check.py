"""Check a schema against the versions of a subject that its config names, and against reserved fields."""

from collections.abc import Iterable

from sqlalchemy import Connection

from schema_registry.compatibility import levels
from schema_registry.compatibility.levels import Earlier
from schema_registry.compatibility.policy import Level, Policy
from schema_registry.models import Config, Metadata
from schema_registry.registry import data_contracts
from schema_registry.registry.answers import read_metadata
from schema_registry.registry.candidates import Candidate, CandidateReader
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import schemas, versions
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.versions import StoredVersion


class CompatibilityCheck:
    """Checks one schema against others, and caches the verdicts, so that repeating a check under a lock is cheap."""

    def __init__(self, reader: CandidateReader) -> None:
        self._reader = reader
        self._verdicts: dict[object, tuple[bool, list[str]]] = {}

    def against_subject(
        self,
        connection: Connection,
        subject: SubjectName,
        candidate: Candidate,
        *,
        config: Config,
        latest: StoredVersion | None,
    ) -> list[str]:
        """The reasons why the candidate cannot be the next version of a subject."""
        level = _level(config)
        if latest is None:
            return _to_messages(self._check_reserved_fields(candidate, None, config), [], config)
        needs_all = level.is_transitive or config.compatibility_group is not None
        if level is Level.NONE:
            numbers: Iterable[tuple[int, int]] = ()
        elif needs_all:
            numbers = versions.alive(connection, *subject.key)
        else:
            numbers = [(latest.version, latest.schema.id)]
        known = {latest.schema.id: latest.schema}
        reserved = self._check_reserved_fields(candidate, read_metadata(latest.schema), config)
        messages = self._find_conflict(connection, subject, candidate, config, numbers, known)
        return _to_messages(reserved, messages, config)

    def against_version(
        self, connection: Connection, candidate: Candidate, config: Config, *, version: int, stored: StoredSchema
    ) -> list[str]:
        """The reasons why the candidate is not compatible with one version."""
        reserved = self._check_reserved_fields(candidate, read_metadata(stored), config)
        _, messages = self._verdict(connection, candidate, config, version, stored)
        return _to_messages(reserved, messages, config)

    def _find_conflict(
        self,
        connection: Connection,
        subject: SubjectName,
        candidate: Candidate,
        config: Config,
        numbers: Iterable[tuple[int, int]],
        known: dict[int, StoredSchema],
    ) -> list[str]:
        """The differences from the first version that is in conflict with the candidate."""
        level = _level(config)
        for version, schema_id in numbers:
            key = (candidate.content.content_hash, schema_id, version, level)
            if key not in self._verdicts:
                stored = known.get(schema_id) or schemas.by_id(connection, subject.context, schema_id)
                if stored is None:
                    continue
                self._verdicts[key] = self._verdict(connection, candidate, config, version, stored)
            counts, messages = self._verdicts[key]
            if messages:
                return messages
            if counts and not level.is_transitive:
                return []
        return []

    def _verdict(
        self, connection: Connection, candidate: Candidate, config: Config, version: int, stored: StoredSchema
    ) -> tuple[bool, list[str]]:
        """Whether a version is in the candidate's compatibility group, and the differences if it is."""
        group = config.compatibility_group
        if group is not None:
            ours = data_contracts.properties(candidate.content.metadata).get(group)
            if ours != data_contracts.properties(read_metadata(stored)).get(group):
                return False, []
        earlier = Earlier(version, self._reader.read_stored(connection, stored))
        return True, levels.check(
            _level(config),
            candidate.schema,
            [earlier],
            policy=Policy(config.compatibility_policy or Policy.STRICT),
            validate_fields=bool(config.validate_fields),
        )

    def _check_reserved_fields(self, candidate: Candidate, previous: Metadata | None, config: Config) -> list[str]:
        """Messages about reserved fields that the candidate has, or that its metadata no longer reserves."""
        if not config.validate_fields:
            return []
        reserved = data_contracts.reserved_fields(candidate.content.metadata)
        removed = [name for name in data_contracts.reserved_fields(previous) if name not in reserved]
        return [
            *(
                f"The new schema has reserved field {name} removed from its metadata "
                "which is present in the old schema's metadata."
                for name in removed
            ),
            *(
                f"The new schema has field that conflicts with the reserved field {name}."
                for name in reserved
                if name in candidate.schema.field_names
            ),
        ]


def _to_messages(reserved: list[str], messages: list[str], config: Config) -> list[str]:
    """All messages; those about reserved fields alone are followed by the config, which the others include."""
    if messages or not reserved:
        return [*reserved, *messages]
    flag = str(bool(config.validate_fields)).lower()
    return [*reserved, f"{{validateFields: '{flag}', compatibility: '{_level(config)}'}}"]


def _level(config: Config) -> Level:
    return Level(config.compatibility_level or Level.BACKWARD)
