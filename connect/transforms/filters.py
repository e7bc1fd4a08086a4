"""Filters by a field's value (Aiven's FilterByFieldValue) and by a JSON path (Confluent's Filter)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, Problem, not_empty, one_of, option, optional
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, DataError
from connect.api.transform import R
from connect.api.values import literal_of, parse
from connect.transforms.expressions import Expression
from connect.transforms.field_path import json_path, schema_at, value_at
from connect.transforms.java.regex import compile_pattern
from connect.transforms.options import problems_of
from connect.transforms.sides import Sided

_CONDITION: Final = re.compile(r"\$\[\?\s*\((?P<condition>.*)\)\s*\]\s*", re.DOTALL)
_FIELD: Final = re.compile(r"\$(?P<path>(?:\.[A-Za-z_]\w*|\['[^']+'\])+)\s*", re.ASCII)
_TOKEN: Final = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<like>@[.\w\[\]']+)\s*=~\s*/(?P<regex>(?:\\.|[^/\\])*)/|(?P<at>@)""",
    re.DOTALL,
)


class FieldValueFilterConfig(Config):
    """Options of FilterByFieldValue."""

    field_name: str = option(STRING, default="", importance=Importance.HIGH)
    """The field, with dots for nested ones; empty: the key or value itself."""
    field_value: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """The value to match; its type follows from the text. Set either this or a pattern."""
    field_value_pattern: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """A pattern (Java's) to find in the field. Set either this or a value."""
    field_value_matches: bool = option(BOOLEAN, default=True)
    """true: records that match are kept. false: the others are."""

    @override
    def problems(self) -> Iterable[Problem]:
        """There is one way to match, and a valid pattern."""
        if (self.field_value is None) == (not self.field_value_pattern):
            message = "Either field.value or field.value.pattern have to be set to apply filter transform"
            yield Problem("field.value", message)
        elif pattern := self.field_value_pattern:
            key = "field.value.pattern"
            yield from problems_of(key, lambda: compile_pattern(pattern, key))


class FieldValueFilter(Sided):
    """Keeps records by the value of one field; null passes."""

    config_class = FieldValueFilterConfig
    config: FieldValueFilterConfig
    aliases = ("io.aiven.kafka.connect.transforms.FilterByFieldValue",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = self.config
        self._path = json_path(options.field_name)
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
        # In Python, True equals 1.
        return isinstance(value, bool) == isinstance(self._expected, bool) and bool(value == self._expected)


class ConditionFilterConfig(Config):
    """Options of a filter by a JSON path."""

    filter_condition: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """A path with a condition, such as $[?(@.status == 'open' && @.amount > 5)], or to a field that must be present:
    $.a.b."""
    filter_type: str = option(STRING, check=one_of("include", "exclude"), importance=Importance.HIGH)
    """Whether records that meet the condition are kept or dropped."""
    missing_or_null_behavior: str = option(STRING, default="fail", check=one_of("fail", "include", "exclude"))
    """Whether to fail at, keep or drop records whose key or value is null."""

    @override
    def problems(self) -> Iterable[Problem]:
        """A condition that cannot be parsed."""
        return problems_of("filter.condition", lambda: _parse_condition(self.filter_condition, "value"))


class ConditionFilter(Sided):
    """Keeps or drops records by a condition on their key or value."""

    config_class = ConditionFilterConfig
    config: ConditionFilterConfig
    aliases = ("io.confluent.connect.transforms.Filter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._condition = _parse_condition(self.config.filter_condition, "key" if self.is_key else "value")
        self._keeps = self.config.filter_type == "include"

    @override
    def apply(self, record: R) -> R | None:
        if (record.key if self.is_key else record.value) is None:
            on_null = self.config.missing_or_null_behavior
            if on_null == "fail":
                side = "key" if self.is_key else "value"
                raise DataError(f"the {side} of a record of topic {record.topic} is null")
            return record if on_null == "include" else None
        return record if self._condition.holds(record) is self._keeps else None


def _parse_condition(path: str, side: str) -> Expression:
    """The condition in our own expression language."""
    if found := _FIELD.fullmatch(path):
        return Expression(f"{side}{found['path']} != null", key="filter.condition")
    found = _CONDITION.fullmatch(path)
    if found is None:
        raise ConfigError(
            f"Invalid value {path} for configuration filter.condition: must be a path to a field ($.a.b) or a"
            " condition on fields ($[?(@.a == 'b')])"
        )

    def translate(token: re.Match[str]) -> str:
        if token["like"] is not None:
            return f"matches({token['like'].replace('@', side)}, {token['regex']!r})"
        return side if token["at"] else token[0]

    return Expression(_TOKEN.sub(translate, found["condition"]), key="filter.condition")
