"""Finds the schema that a request chooses: by text, id or version, or else the latest one."""

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import NO_CHOICE, Format, SchemaChoice
from rest_proxy.formats.rules import Rules
from schema_registry.client.errors import ClientError, IncompatibleSchema, Refused, SchemaNotFound
from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.schemas import parse
from schema_registry.serdes.subject_names import SubjectNameStrategy

MAX_TEXT_CHARACTERS = 1 << 20
_MAX_ID = 2**31 - 1
_INVALID_SCHEMA = 42201
"""The registry's code for a schema that it cannot parse."""


class Target(msgspec.Struct, frozen=True):
    """The data that a schema is needed for, and what the request says about the schema."""

    format: Format | None
    """None if the schema determines it."""
    topic: str
    is_key: bool
    choice: SchemaChoice = NO_CHOICE

    @property
    def strategy(self) -> SubjectNameStrategy:
        """How the subject is named, unless the request gives its name."""
        return self.choice.strategy or SubjectNameStrategy.TOPIC_NAME

    def subject(self, record_name: str | None) -> str:
        """The subject of the data; raises UnusableSchema if the strategy needs a record name and there is none."""
        return self.choice.subject or self.strategy.subject(self.topic, is_key=self.is_key, record_name=record_name)

    def subject_without_schema(self) -> str:
        """The subject before the schema is known; raises ProxyError if it depends on the schema."""
        if self.choice.subject is None and self.strategy.needs_record_name:
            raise ProxyError(400, f"Cannot use subject_name_strategy={self.strategy} without schema_id or schema.")
        return self.subject(None)


def check(target: Target, rules: Rules) -> None:
    """Refuse contradictory choices before the registry is called."""
    choice = target.choice
    if choice.subject is not None and choice.strategy is not None:
        raise ProxyError(400, "Only one of 'subject_name_strategy' or 'subject' can be used.")
    if sum(named is not None for named in (choice.schema_id, choice.schema_version, choice.schema)) > 1:
        raise ProxyError(400, "Only one of 'schema_id', 'schema_version' or 'schema' can be used.")
    _check_format(target.format, choice, rules)
    if choice.schema_id is not None and not 0 <= choice.schema_id <= _MAX_ID:
        raise ProxyError(400, f"schema_id={choice.schema_id} is not a valid schema id: expected 0 to {_MAX_ID}.")
    if choice.schema is not None and len(choice.schema) > MAX_TEXT_CHARACTERS:
        raise ProxyError(42205, f"Invalid schema: it is longer than {MAX_TEXT_CHARACTERS} characters.")


def _check_format(format_: Format | None, choice: SchemaChoice, rules: Rules) -> None:
    if format_ is None:
        if choice.schema is not None:
            raise ProxyError(400, "'schema' cannot be used without 'type', one of AVRO, JSONSCHEMA or PROTOBUF.")
        return
    if not format_.has_schema:
        for name in ("subject_name_strategy", "subject", "schema_id", "schema_version", "schema"):
            if getattr(choice, "strategy" if name == "subject_name_strategy" else name) is not None:
                raise ProxyError(400, f"'type={format_.upper()}' cannot be used with '{name}'.")
    elif rules.format_names_schema and choice.schema is None:
        named = "schema_id" if choice.schema_id is not None else "schema_version"
        raise ProxyError(400, f"'type={format_.upper()}' needs a 'schema': with '{named}', leave out the type.")


def find_schema(target: Target, registry: RegistryClient) -> RegisteredSchema:
    """The chosen schema in the registry; one that is given by its text is registered if it is new."""
    choice = target.choice
    if choice.schema_id is not None:
        found = _by_id(choice.schema_id, target, registry)
    elif choice.schema is not None:
        found = _by_text(choice.schema, target, registry)
    elif choice.schema_version is not None:
        found = _by_version(choice.schema_version, target, registry)
    else:
        found = _latest(target, registry)
    wanted = None if target.format is None else target.format.schema_type
    # With an id, as in Karapace, the media type may be that of another format with schemas: the id decides.
    if choice.schema_id is None and wanted not in (None, found.definition.schema_type):
        raise ProxyError(
            42205, f"Invalid schema: id {found.id} is of type {found.definition.schema_type}, not {wanted}"
        )
    return found


def _by_id(schema_id: int, target: Target, registry: RegistryClient) -> RegisteredSchema:
    try:
        schema = registry.by_id(schema_id)
    except (SchemaNotFound, Refused) as error:
        raise _map_error(error, f"Error when fetching schema by id. schemaId = {schema_id}") from error
    subject = target.subject(parse(schema.definition, registry).name)
    try:
        found = registry.lookup(subject, schema.definition)
    except (SchemaNotFound, Refused) as error:
        raise _map_error(
            error, f"Error when fetching schema version. subject = {subject}, schemaId = {schema_id}"
        ) from error
    return msgspec.structs.replace(schema, subject=subject, version=found.version)


def _by_text(text: str, target: Target, registry: RegistryClient) -> RegisteredSchema:
    schema_type = None if target.format is None else target.format.schema_type
    assert schema_type is not None
    definition = SchemaDefinition(text, schema_type)
    subject = target.subject(parse(definition, registry).name)
    failed = f"Error when registering schema. subject = {subject}"
    # Look the schema up first: a proxy that may not register schemas can still use those that exist.
    try:
        return registry.lookup(subject, definition)
    except SchemaNotFound:
        pass
    except Refused as error:
        raise _map_error(error, failed) from error
    try:
        new = registry.register(subject, definition)
        return new if new.version is not None else registry.lookup(subject, definition)
    except IncompatibleSchema as error:
        raise ProxyError(42207, f"{failed}: {'; '.join(error.messages)}") from error
    except (SchemaNotFound, Refused) as error:
        raise _map_error(error, failed) from error


def _by_version(version: int | str, target: Target, registry: RegistryClient) -> RegisteredSchema:
    subject = target.subject_without_schema()
    if version == "latest":
        return _latest(target, registry)
    if not isinstance(version, int) or not 0 < version <= _MAX_ID:
        raise ProxyError(400, f"schema_version={version!r} is not a version: expected a number from 1, or 'latest'.")
    try:
        return registry.version(subject, version)
    except SchemaNotFound as error:
        raise ProxyError(400, f"Schema does not exist for subject: {subject}, version: {version}") from error


def _latest(target: Target, registry: RegistryClient) -> RegisteredSchema:
    subject = target.subject_without_schema()
    try:
        return registry.latest(subject)
    except (SchemaNotFound, Refused) as error:
        raise _map_error(error, f"Error when fetching latest schema version. subject = {subject}") from error


def _map_error(error: ClientError, failed: str) -> ProxyError:
    """Confluent's message, followed by the registry's reason."""
    if isinstance(error, Refused) and error.code == _INVALID_SCHEMA:
        return ProxyError(42205, f"Invalid schema: {error.message}")
    return ProxyError(42207, f"{failed}: {error.message}")
