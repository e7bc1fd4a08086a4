"""Options of Datagen."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from connect.api.config import INT, LONG, STRING, Config, Importance, Problem, between, not_empty, option, optional
from connect.api.errors import ConfigError
from connect.api.places import Place, path
from connectors.datagen.generator import generator_of
from connectors.datagen.quickstarts import KEYS, quickstart_key, quickstart_schema

SCHEMA_BYTES_MAX = 1 << 20
_SOURCES = ("schema.string", "schema.filename", "quickstart")


class DatagenConfig(Config):
    """Options of DatagenConnector; exactly one of quickstart, schema.string and schema.filename is set."""

    kafka_topic: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic of the records."""
    quickstart: str = option(STRING, default="", importance=Importance.HIGH, recommended=tuple(sorted(KEYS)))
    """The name of a schema that comes with the connector, such as users or pageviews."""
    schema_string: str = option(STRING, default="", importance=Importance.HIGH)
    """An Avro schema as JSON, with arg.properties that describe the values."""
    schema_filename: str = option(STRING, default="", importance=Importance.HIGH)
    """A file on the worker with such a schema."""
    schema_keyfield: str = option(STRING, default="", importance=Importance.HIGH)
    """The field that becomes the key; not set: the quickstart's, or none."""
    max_interval: int = option(LONG, default=500, check=between(0, 86_400_000), importance=Importance.HIGH)
    """The longest random pause between two records, in milliseconds; 0: as fast as possible."""
    iterations: int = option(INT, default=-1, importance=Importance.HIGH)
    """How many records each task makes; less than 1: no limit."""
    random_seed: int | None = option(optional(LONG), default=None, importance=Importance.LOW)
    """The same seed makes the same records, different ones in each task; not set: random, and stored in the offsets."""
    batch_size: int = option(INT, default=500, check=between(1, 100_000), importance=Importance.LOW)
    """Most records of one poll, with max.interval=0."""

    @override
    def places(self) -> Iterable[Place]:
        return path("schema.filename", self.schema_filename)

    @override
    def problems(self) -> Iterable[Problem]:
        """There must be exactly one schema, which is valid, and has the key."""
        chosen = [key for key in _SOURCES if self.given.get(key, "").strip()]
        if len(chosen) != 1:
            text = f"Set exactly one of {', '.join(_SOURCES)}; set: {', '.join(chosen) or 'none'}"
            for key in chosen or _SOURCES:
                yield Problem(key, text)
            return
        try:
            schema = self.schema()
            generator_of(schema)
        except ConfigError as error:
            yield Problem(chosen[0], str(error))
            return
        names = [field.get("name") for field in schema.get("fields", []) if isinstance(field, dict)]
        if self.schema_keyfield and self.schema_keyfield not in names:
            yield Problem.invalid("schema.keyfield", self.schema_keyfield, f"must be one of {names}")

    @property
    def key_field(self) -> str:
        """The field that becomes the key; empty when there is none."""
        return self.schema_keyfield or quickstart_key(self.quickstart)

    def schema(self) -> dict[str, Any]:
        """The configured schema; ConfigError when it is not valid."""
        if self.quickstart:
            return quickstart_schema(self.quickstart)
        if self.schema_string:
            return _parse(self.schema_string.encode(), "schema.string")
        name = self.schema_filename
        try:
            with Path(name).open("rb") as stream:
                return _parse(stream.read(SCHEMA_BYTES_MAX + 1), "schema.filename")
        except OSError as error:
            raise ConfigError(f"Invalid value {name} for configuration schema.filename: {error.strerror}") from error


def _parse(text: bytes, key: str) -> dict[str, Any]:
    if len(text) > SCHEMA_BYTES_MAX:
        raise ConfigError(f"Invalid value for configuration {key}: must have at most {SCHEMA_BYTES_MAX} bytes")
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"Invalid value for configuration {key}: must be an Avro schema as JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigError(f"Invalid value for configuration {key}: must be an Avro schema of a record")
    return schema
