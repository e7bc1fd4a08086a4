"""Moves or copies fields into headers."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import LIST, STRING, Importance, Problem, one_of, option
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.api.record import Header
from connect.api.transform import R, Transform
from connect.transforms.options import FIELD_NAMES, NullConfig
from connect.transforms.sides import BySchema, Side
from connect.transforms.structs import (
    Defaults,
    copied,
    defaults_of,
    rebuilt,
    require_map,
    require_struct,
    require_struct_schema,
)

_MOVE: Final = "move"


class HeaderFromConfig(NullConfig):
    """Options of HeaderFrom."""

    fields: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """The fields that go into headers."""
    headers: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Names of the headers, in the order of the fields."""
    operation: str = option(STRING, check=one_of(_MOVE, "copy"), importance=Importance.HIGH)
    """move: the fields are taken away. copy: they stay."""

    @override
    def problems(self) -> Iterable[Problem]:
        """One header for each field."""
        if len(self.fields) != len(self.headers):
            yield Problem("fields", "'fields' config must have the same number of elements as 'headers' config.")


class _Plan(NamedTuple):
    schema: Schema
    defaults: Defaults
    header_schemas: tuple[Schema, ...]


class HeaderFrom(Transform):
    """Moves or copies fields of a key or value into headers, behind those that are there."""

    config_class = HeaderFromConfig
    is_key = False

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._options = HeaderFromConfig.parse(config)
        self._moves = self._options.operation == _MOVE
        self._purpose = f"header {self._options.operation}"
        self._plans = BySchema(self._plan)

    @override
    def apply(self, record: R) -> R | None:
        if self.is_key:
            (schema, value), headers = self._split(record.key_schema, record.key)
            return replace(record, key_schema=schema, key=value, headers=record.headers + headers)
        (schema, value), headers = self._split(record.value_schema, record.value)
        return replace(record, value_schema=schema, value=value, headers=record.headers + headers)

    def _split(self, schema: Schema | None, value: Value) -> tuple[Side, tuple[Header, ...]]:
        fields, names = self._options.fields, self._options.headers
        if schema is None:
            rest = require_map(value, self._purpose).copy()
            headers = tuple([Header(name, rest.get(field)) for field, name in zip(fields, names, strict=True)])
        else:
            struct = require_struct(value, self._purpose)
            plan = self._plans[schema]
            rest = copied(struct, plan.defaults)
            schema = plan.schema
            typed = zip(fields, names, plan.header_schemas, strict=True)
            headers = tuple([Header(name, rest.get(field), field_schema) for field, name, field_schema in typed])
        if self._moves:
            for field in fields:
                rest.pop(field, None)
        return (schema, rest), headers

    def _plan(self, schema: Schema) -> _Plan:
        require_struct_schema(schema, self._purpose)
        missing = [name for name in self._options.fields if schema.field(name) is None]
        if missing:
            raise DataError(f"Field does not exist: {missing[0]}")
        header_schemas = tuple(schema.by_name[name] for name in self._options.fields)
        kept = [item for item in schema.fields if item.name not in self._options.fields]
        defaults = defaults_of(schema, replace_null=self._options.replace_null_with_default)
        return _Plan(rebuilt(schema, kept) if self._moves else schema, defaults, header_schemas)


class HeaderFromKey(HeaderFrom):
    """Takes fields of keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.HeaderFrom$Key",)


class HeaderFromValue(HeaderFrom):
    """Takes fields of values."""

    aliases = ("org.apache.kafka.connect.transforms.HeaderFrom$Value",)
