"""Routes the changes of several tables, such as shards, to one topic (Debezium's ByLogicalTableRouter)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, Problem, not_empty, option, optional
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.data import Field, Schema, Value
from connect.api.record import Record
from connect.api.transform import R, Transform
from connect.transforms.debezium.envelope import AFTER, BEFORE, is_envelope
from connect.transforms.java.regex import Rename
from connect.transforms.options import problems_of, raw_text
from connect.transforms.sides import Memo, Side
from connect.transforms.structs import require_struct, require_struct_schema

_PURPOSE: Final = "Updating schema"


class ByLogicalTableRouterConfig(Config):
    """Options of ByLogicalTableRouter."""

    topic_regex: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The pattern (Java's) of the topics to merge."""
    topic_replacement: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic for their records; $1 stands for the first group."""
    key_enforce_uniqueness: bool = option(BOOLEAN, default=True)
    """Whether a field that identifies the table is added to keys."""
    key_field_name: str = option(STRING, default="__dbz__physicalTableIdentifier", check=not_empty())
    """The name of that field."""
    key_field_regex: str | None = option(optional(STRING), default=None)
    """A pattern on the old topic, to derive that field's value from; not set: the old topic itself."""
    key_field_replacement: str | None = option(optional(STRING), default=None)
    """The value to derive; $1 stands for the first group."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid pattern or replacement."""
        if self.key_field_regex and not self.key_field_replacement:
            message = "key.field.replacement must be non-empty if key.field.regex is set."
            return [Problem("key.field.replacement", message)]
        return problems_of("topic.regex", lambda: _renames(self))


class ByLogicalTableRouter(Transform):
    """Routes the changes of several tables to one topic."""

    config_class = ByLogicalTableRouterConfig
    config: ByLogicalTableRouterConfig
    aliases = ("io.debezium.transforms.ByLogicalTableRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._rename, self._identify = _renames(self.config)
        self._key_field = self.config.key_field_name if self.config.key_enforce_uniqueness else None
        self._key_schemas = Memo(self._key_schema)
        self._envelope_schemas = Memo(_envelope_schema)

    @override
    def apply(self, record: R) -> R | None:
        topic = self._rename(record.topic)
        if not topic:
            return record
        key_schema, key = self._key(record, topic)
        value_schema = record.value_schema
        if record.value is not None and value_schema is not None and is_envelope(record):
            value_schema = self._envelope_schemas[value_schema, topic]
        return replace(record, topic=topic, key_schema=key_schema, key=key, value_schema=value_schema)

    def _key(self, record: Record, topic: str) -> Side:
        if record.key is None:
            return None, None
        key: dict[str, Value] = require_struct(record.key, _PURPOSE)
        if self._key_field is not None:
            key = {**key, self._key_field: self._identify(record.topic) or record.topic}
        if record.key_schema is None:
            return None, key
        return self._key_schemas[record.key_schema, topic], key

    def _key_schema(self, schema_and_topic: tuple[Schema, str]) -> Schema:
        schema, topic = schema_and_topic
        require_struct_schema(schema, _PURPOSE)
        added = () if self._key_field is None else (Field(self._key_field, STRING_SCHEMA),)
        return schema.but(name=f"{topic}.Key", fields=(*schema.fields, *added))


def _renames(options: ByLogicalTableRouterConfig) -> tuple[Rename, Callable[[str], str | None]]:
    topic_replacement = raw_text(options, "topic.replacement", default="")
    rename = Rename(options.topic_regex, topic_replacement, key="topic.regex", replacement_key="topic.replacement")
    if not options.key_field_regex:
        return rename, lambda topic: topic
    replacement = raw_text(options, "key.field.replacement", default="")
    keys = ("key.field.regex", "key.field.replacement")
    return rename, Rename(options.key_field_regex, replacement, key=keys[0], replacement_key=keys[1])


def _envelope_schema(schema_and_topic: tuple[Schema, str]) -> Schema:
    schema, topic = schema_and_topic
    fields = (
        Field(f.name, f.schema.but(name=f"{topic}.Value")) if f.name in {BEFORE, AFTER} else f for f in schema.fields
    )
    return schema.but(name=f"{topic}.Envelope", fields=tuple(fields))
