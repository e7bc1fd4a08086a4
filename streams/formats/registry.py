"""The schemas of sources at the schema registry: columns that are inferred from them, and those that are registered."""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import msgspec

from schema_registry.client.errors import (
    ClientError,
    IncompatibleSchema,
    NotAllowed,
    Refused,
    RegistryUnreachable,
    SchemaNotFound,
)
from schema_registry.client.models import RegisteredSchema
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import InvalidSettings, RegistryClientSettings
from schema_registry.formats import protobuf
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.errors import SerdeError, UnknownSchema
from schema_registry.serdes.schemas import ParsedSchema
from schema_registry.serdes.serializer import writer_by
from streams.formats.errors import SchemaProblem, SchemasMissing
from streams.formats.layout import Layout, layout_of
from streams.formats.matching import check_fits
from streams.formats.protobuf_schemas import message_of
from streams.formats.schemas import SCHEMA_TYPES, columns_of, schema_of, type_of
from streams.model.sources import REGISTRY_FORMATS, Column, Format, Source
from streams.model.types import SqlType

T = TypeVar("T")

_WRITINGS_MAX: Final = 1_000


class RegistrySettings(msgspec.Struct, frozen=True):
    """How the registry is reached, in the names that Confluent's clients use for properties."""

    url: str = ""
    """Empty if there is no registry."""
    properties: dict[str, str] = {}


class Writing(NamedTuple):
    """What keys or values are written with."""

    schema: ParsedSchema
    message: str | None
    """The message of a Protobuf schema."""
    prefix: bytes
    """What names the schema before the data."""
    type: SqlType
    """The type of what is written, with the names that its fields have there."""


class Schemas:
    """The schemas of topics. Thread-safe, but not fork-safe.

    Raises SchemasMissing, SchemaProblem, or ClientError when the registry does not answer.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._client: RegistryClient | None = None
        self._deserializer: Deserializer | None = None
        self._writings: dict[Layout, Writing] = {}

    @property
    def is_configured(self) -> bool:
        """Whether there is a registry."""
        return bool(self.settings.url)

    def infer(self, topic: str, *, is_key: bool, format: Format) -> tuple[Column, ...]:  # noqa: A002 - as in WITH
        """The columns of keys or values, by the latest schema of the topic or the one that the format names."""
        subject = _subject(topic, is_key=is_key)
        if format.name not in REGISTRY_FORMATS:
            raise SchemaProblem(f"The format {format.name} has no schemas: name the columns in the statement.")
        registered = self._found(subject, format)
        columns = columns_of(self._parsed(registered, subject, format), "key" if is_key else "value", format)
        names = [column.name for column in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise SchemaProblem(f"The schema of {subject} has two fields called {twice}.")
        return columns

    def register(self, source: Source) -> None:
        """Register the schemas of keys and values, as far as their formats need any.

        A source that no query fills leaves a subject alone that has a schema already: others write the topic.
        """
        self._writings.clear()
        for layout in (layout_of(source, "key"), layout_of(source, "value")):
            if layout.format.name in REGISTRY_FORMATS and layout.columns:
                self._register(layout, is_declared=source.query_id is None)

    def forget(self, topic: str) -> None:
        """Delete the subjects of a topic, softly."""
        self._writings.clear()
        for is_key in (True, False):
            try:
                self._open().delete_subject(_subject(topic, is_key=is_key))
            except SchemaNotFound:
                pass

    def exists(self, *, subject: str | None = None, schema_id: int | None = None) -> bool:
        """Whether there is a subject, a schema with an id, or a version of the subject with that schema."""
        client = self._open()
        try:
            if schema_id is None:
                client.latest(str(subject))
                return True
            versions = client.versions_of(schema_id)
        except SchemaNotFound:
            return False
        return bool(versions) and (subject is None or any(found.subject == subject for found in versions))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = self._deserializer = None

    # --- for codecs --------------------------------------------------------------------------------------------------

    def reading(self, schema: int | str) -> ParsedSchema:
        """The schema that data names; raises SerdeError if there is none that can be used."""
        self._open()
        assert self._deserializer is not None
        try:
            return self._deserializer.reader(schema).schema
        except (RegistryUnreachable, NotAllowed):
            raise  # That is not a problem of the data.
        except ClientError as error:
            raise UnknownSchema(f"the registry has no schema {schema}: {error.message}") from error

    def writing(self, layout: Layout) -> Writing:
        """What to write keys or values with: the schema that the format names, or that of the columns.

        If the topic has another schema, that has all the columns, the latest is used.
        """
        found = self._writings.get(layout)
        if found is None:
            is_own = layout.format.name == "PROTOBUF_NOSR"
            found = columns_writing(layout) if is_own else self._writing(self._registered(layout), layout)
            if len(self._writings) >= _WRITINGS_MAX:
                self._writings.clear()
            self._writings[layout] = found
        return found

    def _registered(self, layout: Layout) -> RegisteredSchema:
        subject = _subject(layout.topic, is_key=layout.is_key)
        client = self._open()
        if layout.format.schema_id is not None:
            return self._found(subject, layout.format)
        definition = schema_of(layout)
        try:
            return client.lookup(subject, definition, normalize=True)
        except SchemaNotFound:
            pass
        try:
            latest = client.latest(subject)
            self._writing(latest, layout)
            return latest
        except (SchemaNotFound, SchemaProblem):
            return self._added(subject, layout)

    def _writing(self, registered: RegisteredSchema, layout: Layout) -> Writing:
        subject = _subject(layout.topic, is_key=layout.is_key)
        parsed = self._parsed(registered, subject, layout.format)
        is_protobuf = layout.format.name == "PROTOBUF"
        message = None
        if is_protobuf and isinstance(parsed, protobuf.ProtobufSchema):
            message = str(message_of(parsed, layout.format.full_name).full_name)
        try:
            writer = writer_by(registered, self._open(), message=message)
        except SerdeError as error:
            raise SchemaProblem(f"The schema of {subject} cannot be used: {error}") from error
        kind = type_of(writer.schema, message)
        check_fits(layout, kind)
        return Writing(writer.schema, message, writer.prefix, kind)

    def _register(self, layout: Layout, *, is_declared: bool) -> None:
        subject = _subject(layout.topic, is_key=layout.is_key)
        client = self._open()
        if layout.format.schema_id is not None:
            self._register_given(subject, layout)
            return
        if is_declared:
            try:
                client.latest(subject)
                return
            except SchemaNotFound:
                pass
        self._added(subject, layout)

    def _register_given(self, subject: str, layout: Layout) -> None:
        given = self._found(subject, layout.format)
        self._writing(given, layout)
        registered = self._changed(subject, lambda: self._open().register(subject, given.definition))
        if registered.id != layout.format.schema_id:
            raise SchemaProblem(
                f"The schema {layout.format.schema_id} got the id {registered.id} when it was registered for {subject}."
            )

    def _added(self, subject: str, layout: Layout) -> RegisteredSchema:
        definition = schema_of(layout)
        return self._changed(subject, lambda: self._open().register(subject, definition))

    def _changed(self, subject: str, change: Callable[[], T]) -> T:
        try:
            return change()
        except IncompatibleSchema as error:
            raise SchemaProblem(
                f"Could not register schema for topic: {subject}. It is not compatible with earlier versions: "
                f"{'; '.join(error.messages)}"
            ) from error
        except Refused as error:
            raise SchemaProblem(f"Could not register schema for topic: {subject}. {error.message}") from error

    def _found(self, subject: str, written_as: Format) -> RegisteredSchema:
        """The schema that the format names, or the latest; raises SchemaProblem."""
        client = self._open()
        try:
            return client.latest(subject) if written_as.schema_id is None else client.by_id(written_as.schema_id)
        except SchemaNotFound as error:
            part = "keys" if subject.endswith("-key") else "values"
            wanted = f"Subject: {subject}" if written_as.schema_id is None else f"Schema id: {written_as.schema_id}"
            raise SchemaProblem(
                f"Schema for message {part} does not exist in the Schema Registry. {wanted}. "
                "Register one, name the columns in the statement, or use a format that needs no schema."
            ) from error

    def _parsed(self, registered: RegisteredSchema, subject: str, written_as: Format) -> ParsedSchema:
        """The schema, which must be one of the format; raises SchemaProblem."""
        has, wanted = registered.definition.schema_type, SCHEMA_TYPES[written_as.name]
        if has != wanted:
            raise SchemaProblem(f"The schema of {subject} is {has}, which does not match the format {written_as.name}.")
        if registered.id is None:
            raise SchemaProblem(f"The registry did not say which id the schema of {subject} has.")
        try:
            return self.reading(registered.id)
        except SerdeError as error:
            raise SchemaProblem(f"The schema of {subject} cannot be used: {error}") from error

    def _open(self) -> RegistryClient:
        with self._lock:
            if self._client is None:
                if not self.is_configured:
                    raise SchemasMissing(
                        "The format needs the schema registry, but none is configured: set ksql.schema.registry.url."
                    )
                try:
                    given = {"url": self.settings.url, **self.settings.properties}
                    self._client = RegistryClient(RegistryClientSettings.parse(given))
                except InvalidSettings as error:
                    raise SchemasMissing(f"The settings of the schema registry cannot work: {error}") from error
                self._deserializer = Deserializer(self._client)
            return self._client


def _subject(topic: str, *, is_key: bool) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def columns_writing(layout: Layout) -> Writing:
    """What to write with if there is no registry: the Protobuf schema of the columns themselves."""
    schema = _compiled(schema_of(layout).text)
    message = message_of(schema, layout.format.full_name)
    return Writing(schema, str(message.full_name), b"", type_of(schema, str(message.full_name)))


@lru_cache(maxsize=200)
def _compiled(text: str) -> protobuf.ProtobufSchema:
    try:
        return protobuf.parse(text, (), strict=False)
    except InvalidSchema as error:
        raise SchemaProblem(f"The columns make no Protobuf schema: {error}") from error
