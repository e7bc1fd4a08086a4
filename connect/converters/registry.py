"""The common part of converters with schemas in a registry: options, access to the registry, and its errors.

Only the first record of a schema asks the registry. Its reading is then kept by topic and the id before the data, its
writing by topic and Connect schema.
"""

import math
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, TypeVar

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Config,
    Importance,
    Problem,
    at_least,
    one_of,
    option,
)
from connect.api.converter import Converter, RawHeader, SchemaAndValue
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, ConnectError, DataError, Unavailable
from connect.api.places import Place, path, servers, url
from schema_registry.client.errors import ClientError, NotAllowed, RegistryUnreachable, SchemaNotFound
from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import InvalidSettings
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.errors import SerdeError
from schema_registry.serdes.framing import Frame, header_of, read_frame
from schema_registry.serdes.serializer import Serializer, Writer
from schema_registry.serdes.settings import IdPlace
from schema_registry.serdes.settings import parse as parse_settings

_GROUP: Final = "Schema Registry"
_PREFIX_BYTES: Final = 5
_SOURCES: Final = ("URL", "USER_INFO", "")
_KEY_STORES: Final = ("schema.registry.ssl.keystore.", "schema.registry.ssl.truststore.")
_APICURIO: Final = re.compile(r"/apis/registry/v\d+/?$")
_TOPIC_NAME: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"

C = TypeVar("C", bound="RegistryConfig")


class RegistryConfig(Config):
    """The address of the registry, and how its schemas are used."""

    schema_registry_url: tuple[str, ...] = option(
        LIST, importance=Importance.HIGH, aliases=("apicurio.registry.url",), group=_GROUP
    )
    """Addresses of the schema registry, `http://host:port`, several separated by commas."""
    basic_auth_credentials_source: str = option(
        STRING,
        default="URL",
        check=one_of(*_SOURCES),
        aliases=("schema.registry.basic.auth.credentials.source",),
        group=_GROUP,
    )
    """Where name and password for the registry are: URL or USER_INFO. Either is used if it is set."""
    basic_auth_user_info: str = option(
        PASSWORD, default="", aliases=("schema.registry.basic.auth.user.info",), group=_GROUP
    )
    """`user:password` for the registry."""
    bearer_auth_token: str = option(PASSWORD, default="", aliases=("schema.registry.bearer.auth.token",), group=_GROUP)
    """A token for the registry, instead of name and password."""
    bearer_auth_logical_cluster: str = option(
        STRING, default="", aliases=("schema.registry.bearer.auth.logical.cluster",), group=_GROUP
    )
    """The cluster that the token is for, if the registry asks for one."""
    bearer_auth_identity_pool_id: str = option(
        STRING, default="", aliases=("schema.registry.bearer.auth.identity.pool.id",), group=_GROUP
    )
    """The identity pool that the token is for, if the registry asks for one."""
    schema_registry_ssl_ca_location: str = option(STRING, default="", group=_GROUP)
    """PEM file or directory of the authorities to trust; not set: the system's."""
    schema_registry_ssl_certificate_location: str = option(STRING, default="", group=_GROUP)
    """PEM file of the certificate to show to the registry."""
    schema_registry_ssl_key_location: str = option(STRING, default="", group=_GROUP)
    """PEM file of its key."""
    schema_registry_ssl_key_password: str = option(PASSWORD, default="", group=_GROUP)
    """The password of the key."""
    proxy_host: str = option(STRING, default="", group=_GROUP)
    """A proxy on the way to the registry."""
    proxy_port: int = option(INT, default=-1, group=_GROUP)
    """The port of the proxy."""
    http_read_timeout_ms: int = option(INT, default=10_000, check=at_least(1), group=_GROUP)
    """How long one attempt to ask the registry may take."""
    max_retries: int = option(INT, default=3, check=at_least(0), group=_GROUP)
    """How often the registry is asked again before the record is tried again by the worker."""
    retries_wait_ms: int = option(INT, default=200, check=at_least(1), group=_GROUP)
    """How long to wait before the first of these attempts; each following one waits twice as long."""
    retries_max_wait_ms: int = option(INT, default=5_000, check=at_least(1), group=_GROUP)
    """The longest of these waits."""

    auto_register_schemas: bool = option(BOOLEAN, default=True, group=_GROUP)
    """Register schemas that the registry does not have; otherwise such records are errors."""
    use_latest_version: bool = option(BOOLEAN, default=False, group=_GROUP)
    """Write by the latest schema of the subject, whatever schema records have, if `auto.register.schemas` is false."""
    latest_compatibility_strict: bool = option(BOOLEAN, default=True, group=_GROUP)
    """Accepted for compatibility: every record that does not fit the latest schema is an error here."""
    latest_cache_ttl_sec: int = option(LONG, default=-1, check=at_least(-1), group=_GROUP)
    """How long the latest schema is used before it is fetched again, in seconds; -1: for ever."""
    use_schema_id: int = option(INT, default=-1, check=at_least(-1), group=_GROUP)
    """Write by the schema with this id, whatever schema records have, if `auto.register.schemas` is false; -1: no."""
    id_compatibility_strict: bool = option(BOOLEAN, default=True, group=_GROUP)
    """Accepted for compatibility: every record that does not fit the schema of the id is an error here."""
    normalize_schemas: bool = option(BOOLEAN, default=False, group=_GROUP)
    """Let the registry bring schemas into normal form before it compares them."""
    key_subject_name_strategy: str = option(STRING, default=_TOPIC_NAME, group=_GROUP)
    """The subject of schemas of keys: TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy."""
    value_subject_name_strategy: str = option(STRING, default=_TOPIC_NAME, group=_GROUP)
    """The same for schemas of values."""
    key_schema_id_serializer: str = option(STRING, default="PrefixSchemaIdSerializer", group=_GROUP)
    """How records name their schema; converters can only write an id before the data."""
    value_schema_id_serializer: str = option(STRING, default="PrefixSchemaIdSerializer", group=_GROUP)
    """The same for schemas of values."""
    schemas_cache_config: int = option(INT, default=1_000, check=at_least(1), aliases=("schemas.cache.size",))
    """How many schemas are kept ready."""
    generalized_sum_type_support: bool = option(BOOLEAN, default=False)
    """Mark enums and unions by parameters that are the same for all formats."""
    ignore_default_for_nullables: bool = option(BOOLEAN, default=False)
    """Write null for an optional field without a value, not its default."""

    @override
    def places(self) -> Iterable[Place]:
        for address in self.schema_registry_url:
            yield from url("schema.registry.url", address)
        if self.proxy_host:
            yield from servers("proxy.host", f"{self.proxy_host}:{self.proxy_port}")
        yield from path("schema.registry.ssl.ca.location", self.schema_registry_ssl_ca_location)
        yield from path("schema.registry.ssl.certificate.location", self.schema_registry_ssl_certificate_location)
        yield from path("schema.registry.ssl.key.location", self.schema_registry_ssl_key_location)

    @override
    def problems(self) -> Iterable[Problem]:
        for key in self.given:
            if key.startswith(_KEY_STORES):
                allowed = "schema.registry.ssl.{ca,certificate,key}.location, with PEM files"
                yield Problem(key, f"Invalid configuration {key}: Java's key stores cannot be read; use {allowed}")


class Reading(NamedTuple):
    """How data of one schema is read."""

    schema: Schema | None
    read: Callable[[bytes, int], Value]
    """Reads the value that begins at a position of the data."""


class Writing(NamedTuple):
    """How data of one schema is written."""

    prefix: bytes
    write: Callable[[Value], bytes]


_FAULTS: Final = (ClientError, SerdeError, DataError, RecursionError)


def _connect_error(what: str, error: Exception) -> ConnectError:
    """An error of the registry or of the data as one of Connect."""
    if isinstance(error, RegistryUnreachable):
        return Unavailable(f"{what}: {error}")
    if isinstance(error, NotAllowed):
        return ConfigError(f"{what}: the schema registry refuses access: {error}")
    if isinstance(error, RecursionError):
        return DataError(f"{what}: the schema or the data nests too deep")
    return DataError(f"{what}: {error}")


class RegistryConverter(Converter):
    """A converter whose schemas are in a registry."""

    config_class: ClassVar[type[RegistryConfig]]
    form: ClassVar[str]
    """The name of the format in messages."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self.config = self.config_class.parse(config)
        self._is_key = is_key
        try:
            settings, self.settings = parse_settings(_properties(self.config), is_key=is_key)
            if self.settings.id_place is not IdPlace.PREFIX:
                raise InvalidSettings("converters can only write the id of a schema before the data")
            self._client = RegistryClient(settings)
        except InvalidSettings as error:
            raise ConfigError(f"Invalid configuration of the schema registry: {error}") from error
        self.deserializer = Deserializer(self._client)
        self._serializer = Serializer(self._client, settings=self.settings)
        self._readings: dict[tuple[str, bytes], Reading] = {}
        self._writings: dict[tuple[str, Schema | None], Writing] = {}
        is_lasting = self.config.latest_cache_ttl_sec < 0 or not self.config.use_latest_version
        self._lifetime = math.inf if is_lasting else self.config.latest_cache_ttl_sec
        self._fresh_until = math.inf

    @abstractmethod
    def new_reading(self, topic: str, frame: Frame) -> tuple[Reading, int]:
        """The reading of a frame's schema, and where the data begins after its name."""

    @abstractmethod
    def new_writing(self, topic: str, schema: Schema | None, value: Value) -> Writing:
        """The writing of a Connect schema; `value` is the first one."""

    def version_in_subject(self, topic: str, registered: RegisteredSchema, *, name: str | None) -> int | None:
        """The version of a schema in the topic's subject; None if it is in another one, or access is not allowed."""
        strategy = self.settings.strategy
        if strategy.needs_record_name and not name:
            return None
        subject = strategy.subject(topic, is_key=self._is_key, record_name=name)
        try:
            return self._client.lookup(subject, registered.definition).version
        except (NotAllowed, SchemaNotFound):
            return None

    def writer(self, topic: str, definition: SchemaDefinition | None, *, message: str | None = None) -> Writer:
        """The writer of a schema, which is registered if that is allowed."""
        return self._serializer.writer(topic, is_key=self._is_key, definition=definition, message=message)

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        if data is None:
            return None, None
        try:
            if headers and (header := header_of(headers, is_key=self._is_key)) is not None:
                return self._by_header(topic, data, header)
            end = self.prefix_end(data)
            reading = self._readings.get((topic, data[:end]))
            if reading is None:
                reading = self._read_first(topic, data)
            return reading.schema, reading.read(data, end)
        except _FAULTS as error:
            what = f"Failed to deserialize data for topic {topic} to {self.form}"
            raise _connect_error(what, error) from error

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        """A value as the bytes of a record; None makes a tombstone."""
        if value is None:
            return self.null(topic, schema)
        if self._lifetime != math.inf and self._writings and time.monotonic() >= self._fresh_until:
            self._writings.clear()
        try:
            writing = self._writings.get((topic, schema))
            if writing is None:
                writing = self._write_first(topic, schema, value)
            return writing.prefix + writing.write(value)
        except _FAULTS as error:
            raise _connect_error(f"Failed to serialize {self.form} data from topic {topic}", error) from error

    def prefix_end(self, data: bytes) -> int:  # noqa: ARG002 - Protobuf needs it
        """Where the part that names the schema ends."""
        return _PREFIX_BYTES

    def null(self, topic: str, schema: Schema | None) -> bytes | None:  # noqa: ARG002 - Avro needs them
        """What is written for null."""
        return None

    @override
    def close(self) -> None:
        self._client.close()

    def _read_first(self, topic: str, data: bytes) -> Reading:
        reading, start = self.new_reading(topic, read_frame(data))
        if start != self.prefix_end(data):  # A guid, which is longer than the keys of the cache.
            return Reading(reading.schema, lambda data, _: reading.read(data, start))
        self._keep_reading((topic, data[:start]), reading)
        return reading

    def _by_header(self, topic: str, data: bytes, header: bytes) -> SchemaAndValue:
        key = (topic, b"header" + header)
        reading = self._readings.get(key)
        if reading is None:
            reading, _ = self.new_reading(topic, read_frame(data, header))
            self._keep_reading(key, reading)
        return reading.schema, reading.read(data, 0)

    def _keep_reading(self, key: tuple[str, bytes], reading: Reading) -> None:
        if len(self._readings) >= self.config.schemas_cache_config:
            self._readings.clear()
        self._readings[key] = reading

    def _write_first(self, topic: str, schema: Schema | None, value: Value) -> Writing:
        writing = self.new_writing(topic, schema, value)
        if len(self._writings) >= self.config.schemas_cache_config:
            self._writings.clear()
        if not self._writings:
            self._fresh_until = time.monotonic() + self._lifetime
        self._writings[topic, schema] = writing
        return writing


def _properties(config: RegistryConfig) -> dict[str, object]:
    """The options under the names of the registry's client and serializer."""
    given: dict[str, object] = {
        "basic.auth.user.info": config.basic_auth_user_info,
        "bearer.auth.token": config.bearer_auth_token,
        "bearer.auth.logical.cluster": config.bearer_auth_logical_cluster,
        "bearer.auth.identity.pool.id": config.bearer_auth_identity_pool_id,
        "ssl.ca.location": config.schema_registry_ssl_ca_location,
        "ssl.certificate.location": config.schema_registry_ssl_certificate_location,
        "ssl.key.location": config.schema_registry_ssl_key_location,
        "ssl.key.password": config.schema_registry_ssl_key_password,
        "proxy": f"http://{config.proxy_host}:{config.proxy_port}" if config.proxy_host else "",
    }
    return {
        **{key: value for key, value in given.items() if value},
        # Apicurio has different addresses for its native API and for Confluent's.
        "schema.registry.url": ",".join(_APICURIO.sub("/apis/ccompat/v7", url) for url in config.schema_registry_url),
        "request.timeout.ms": config.http_read_timeout_ms,
        "max.retries": config.max_retries,
        "retries.wait.ms": config.retries_wait_ms,
        "retries.max.wait.ms": config.retries_max_wait_ms,
        "cache.capacity": config.schemas_cache_config,
        "cache.latest.ttl.sec": max(config.latest_cache_ttl_sec, 0),
        "auto.register.schemas": config.auto_register_schemas,
        "use.latest.version": config.use_latest_version and not config.auto_register_schemas,
        "use.schema.id": -1 if config.auto_register_schemas else config.use_schema_id,
        "normalize.schemas": config.normalize_schemas,
        "key.subject.name.strategy": config.key_subject_name_strategy,
        "value.subject.name.strategy": config.value_subject_name_strategy,
        "key.schema.id.serializer": config.key_schema_id_serializer,
        "value.schema.id.serializer": config.value_schema_id_serializer,
    }
