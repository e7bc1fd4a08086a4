"""Keeps records by the value of one field (Aiven's FilterByFieldValue)."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, Problem, option, optional
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError
from connect.api.transform import R, Transform
from connect.api.values import literal_of, parse
from connect.transforms.extract_topic import field_path
from connect.transforms.field_path import schema_at, value_at
from connect.transforms.java.regex import compile_pattern


class FieldValueFilterConfig(Config):
    """Options of a filter by the value of a field."""

    field_name: str = option(STRING, default="", importance=Importance.HIGH)
    """The field, nested ones with dots; empty: the key or value itself."""
    field_value: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """What it must be; its type is told by how it looks. Either this or a pattern."""
    field_value_pattern: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """A pattern (Java's) that must be found in it. Either this or a value."""
    field_value_matches: bool = option(BOOLEAN, default=True)
    """true: records that match are kept. false: the others are."""

    @override
    def problems(self) -> Iterable[Problem]:
        """One way to match, and a pattern that is one."""
        if (self.field_value is None) == (not self.field_value_pattern):
            told = "Either field.value or field.value.pattern have to be set to apply filter transform"
            yield Problem("field.value", told)
        elif self.field_value_pattern:
            try:
                compile_pattern(self.field_value_pattern, "field.value.pattern")
            except ConfigError as error:
                yield Problem("field.value.pattern", str(error))


class FieldValueFilter(Transform):
    """Keeps records by the value of one field; null passes."""

    config_class = FieldValueFilterConfig
    is_key: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = FieldValueFilterConfig.parse(config)
        self._path = field_path(options.field_name)
        pattern = options.field_value_pattern
        self._pattern = compile_pattern(pattern, "field.value.pattern") if pattern else None
        self._expected = None if options.field_value is None else parse(options.field_value)[1]
        self._keeps = options.field_value_matches

    @override
    def apply(self, record: R) -> R | None:
        schema, value = (record.key_schema, record.key) if self.is_key else (record.value_schema, record.value)
        if value is None:
            return record
        if self._path:
            schema = None if schema is None else schema_at(schema, self._path)
            value = value_at(value, self._path)
        return record if self._matches(schema, value) is self._keeps else None

    def _matches(self, schema: Schema | None, value: Value) -> bool:
        if value is None:
            return False
        if self._pattern is not None:
            return self._pattern.search(literal_of(schema, value)) is not None
        is_truth = isinstance(value, bool), isinstance(self._expected, bool)
        return is_truth[0] == is_truth[1] and bool(value == self._expected)


class FieldValueFilterKey(FieldValueFilter):
    """Keeps records by a field of their key."""

    is_key = True
    aliases = ("io.aiven.kafka.connect.transforms.FilterByFieldValue$Key",)


class FieldValueFilterValue(FieldValueFilter):
    """Keeps records by a field of their value."""

    aliases = ("io.aiven.kafka.connect.transforms.FilterByFieldValue$Value",)
