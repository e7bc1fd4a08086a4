"""Brings the changes of many tables, such as shards, into one topic (Debezium's ByLogicalTableRouter)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, Problem, not_empty, option, optional
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.data import Field, Schema, Value
from connect.api.errors import ConfigError
from connect.api.record import Record
from connect.api.transform import R, Transform
from connect.transforms.debezium.envelope import AFTER, BEFORE, is_envelope
from connect.transforms.java.regex import Rename
from connect.transforms.options import as_given
from connect.transforms.sides import Side
from connect.transforms.structs import require_struct, require_struct_schema

_PURPOSE: Final = "Updating schema"
_MOST: Final = 1_000


class ByLogicalTableRouterConfig(Config):
    """Options of ByLogicalTableRouter."""

    topic_regex: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The pattern (Java's) of the topics that are brought together."""
    topic_replacement: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic they go to; $1 stands for the first group."""
    key_enforce_uniqueness: bool = option(BOOLEAN, default=True)
    """Whether a field that tells the table is added to keys."""
    key_field_name: str = option(STRING, default="__dbz__physicalTableIdentifier", check=not_empty())
    """The name of that field."""
    key_field_regex: str | None = option(optional(STRING), default=None)
    """A pattern over the old topic, to make that field's value; not set: the old topic itself."""
    key_field_replacement: str | None = option(optional(STRING), default=None)
    """The value made of it; $1 stands for the first group."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Patterns that are some, and replacements that fit."""
        if self.key_field_regex and not self.key_field_replacement:
            yield Problem("key.field.replacement", "key.field.replacement must be non-empty if key.field.regex is set.")
            return
        try:
            _renames(self)
        except ConfigError as error:
            yield Problem("topic.regex", str(error))


class ByLogicalTableRouter(Transform):
    """Brings the changes of many tables into one topic."""

    config_class = ByLogicalTableRouterConfig
    aliases = ("io.debezium.transforms.ByLogicalTableRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ByLogicalTableRouterConfig.parse(config)
        self._rename, self._identify = _renames(options)
        self._key_field = options.key_field_name if options.key_enforce_uniqueness else None
        self._schemas: dict[tuple[Schema, str], Schema] = {}

    @override
    def apply(self, record: R) -> R | None:
        topic = self._rename(record.topic)
        if not topic:
            return record
        key_schema, key = self._key(record, topic)
        value_schema = record.value_schema
        if record.value is not None and value_schema is not None and is_envelope(record):
            value_schema = self._cached(value_schema, topic, make=_envelope_schema)
        return replace(record, topic=topic, key_schema=key_schema, key=key, value_schema=value_schema)

    def _key(self, record: Record, topic: str) -> Side:
        if record.key is None:
            return None, None
        key: dict[str, Value] = require_struct(record.key, _PURPOSE)
        if self._key_field is not None:
            key = {**key, self._key_field: self._identify(record.topic) or record.topic}
        if record.key_schema is None:
            return None, key
        return self._cached(record.key_schema, topic, make=self._key_schema), key

    def _key_schema(self, schema: Schema, topic: str) -> Schema:
        require_struct_schema(schema, _PURPOSE)
        added = () if self._key_field is None else (Field(self._key_field, STRING_SCHEMA),)
        return schema.but(name=f"{topic}.Key", fields=(*schema.fields, *added))

    def _cached(self, schema: Schema, topic: str, *, make: Callable[[Schema, str], Schema]) -> Schema:
        found = self._schemas.get((schema, topic))
        if found is None:
            if len(self._schemas) >= _MOST:
                self._schemas.clear()
            found = self._schemas[schema, topic] = make(schema, topic)
        return found


def _renames(options: ByLogicalTableRouterConfig) -> tuple[Rename, Callable[[str], str | None]]:
    topic_replacement = as_given(options, "topic.replacement", default="")
    rename = Rename(options.topic_regex, topic_replacement, key="topic.regex", replacement_key="topic.replacement")
    if not options.key_field_regex:
        return rename, lambda topic: topic
    replacement = as_given(options, "key.field.replacement", default="")
    keys = ("key.field.regex", "key.field.replacement")
    return rename, Rename(options.key_field_regex, replacement, key=keys[0], replacement_key=keys[1])


def _envelope_schema(schema: Schema, topic: str) -> Schema:
    fields = (
        Field(f.name, f.schema.but(name=f"{topic}.Value")) if f.name in {BEFORE, AFTER} else f for f in schema.fields
    )
    return schema.but(name=f"{topic}.Envelope", fields=tuple(fields))
