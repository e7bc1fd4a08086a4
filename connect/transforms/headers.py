"""Transforms of headers: add, drop, and fill them from fields."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import LIST, STRING, Config, Importance, Problem, not_empty, one_of, option
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.api.record import Header
from connect.api.transform import R, Transform
from connect.api.values import parse
from connect.transforms.options import FIELD_NAMES, NullConfig, raw_text
from connect.transforms.sides import Memo, Side, Sided
from connect.transforms.structs import (
    Defaults,
    copy_with_defaults,
    defaults_of,
    require_map,
    require_struct,
    require_struct_schema,
    with_fields,
)

_MOVE: Final = "move"


class InsertHeaderConfig(Config):
    """Options of InsertHeader."""

    header: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The name of the header."""
    value_literal: str = option(STRING, importance=Importance.HIGH)
    """Its value. The type follows from the text: 1, true, 2020-01-31, [1,2], {"a":1}, else a string."""


class InsertHeader(Transform):
    """Adds a header to every record, after the existing ones."""

    config_class = InsertHeaderConfig
    config: InsertHeaderConfig
    aliases = ("org.apache.kafka.connect.transforms.InsertHeader",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        schema, value = parse(raw_text(self.config, "value.literal", default=""))
        self._added = (Header(self.config.header, value, schema),)

    @override
    def apply(self, record: R) -> R | None:
        return replace(record, headers=record.headers + self._added)


class DropHeadersConfig(Config):
    """Options of DropHeaders."""

    headers: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Names of the headers to drop."""


class DropHeaders(Transform):
    """Drops all headers with certain names."""

    config_class = DropHeadersConfig
    config: DropHeadersConfig
    aliases = ("org.apache.kafka.connect.transforms.DropHeaders",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._names = frozenset(self.config.headers)

    @override
    def apply(self, record: R) -> R | None:
        kept = tuple([header for header in record.headers if header.key not in self._names])
        return record if len(kept) == len(record.headers) else replace(record, headers=kept)


class HeaderFromConfig(NullConfig):
    """Options of HeaderFrom."""

    fields: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """The fields to put into headers."""
    headers: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Names of the headers, in the order of the fields."""
    operation: str = option(STRING, check=one_of(_MOVE, "copy"), importance=Importance.HIGH)
    """move: the fields are removed. copy: they stay."""

    @override
    def problems(self) -> Iterable[Problem]:
        """There is one header for each field."""
        if len(self.fields) != len(self.headers):
            yield Problem("fields", "'fields' config must have the same number of elements as 'headers' config.")


class _Plan(NamedTuple):
    schema: Schema
    defaults: Defaults
    header_schemas: tuple[Schema, ...]


class HeaderFrom(Sided):
    """Moves or copies fields of a key or value into headers, after the existing ones."""

    config_class = HeaderFromConfig
    config: HeaderFromConfig
    aliases = ("org.apache.kafka.connect.transforms.HeaderFrom",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._moves = self.config.operation == _MOVE
        self._purpose = f"header {self.config.operation}"
        self._plans = Memo(self._plan)

    @override
    def apply(self, record: R) -> R | None:
        if self.is_key:
            (schema, value), headers = self._split(record.key_schema, record.key)
            return replace(record, key_schema=schema, key=value, headers=record.headers + headers)
        (schema, value), headers = self._split(record.value_schema, record.value)
        return replace(record, value_schema=schema, value=value, headers=record.headers + headers)

    def _split(self, schema: Schema | None, value: Value) -> tuple[Side, tuple[Header, ...]]:
        fields, names = self.config.fields, self.config.headers
        if schema is None:
            rest = require_map(value, self._purpose).copy()
            headers = tuple([Header(name, rest.get(field)) for field, name in zip(fields, names, strict=True)])
        else:
            struct = require_struct(value, self._purpose)
            plan = self._plans[schema]
            rest = copy_with_defaults(struct, plan.defaults)
            schema = plan.schema
            typed = zip(fields, names, plan.header_schemas, strict=True)
            headers = tuple([Header(name, rest.get(field), field_schema) for field, name, field_schema in typed])
        if self._moves:
            for field in fields:
                rest.pop(field, None)
        return (schema, rest), headers

    def _plan(self, schema: Schema) -> _Plan:
        require_struct_schema(schema, self._purpose)
        missing = [name for name in self.config.fields if schema.field(name) is None]
        if missing:
            raise DataError(f"Field does not exist: {missing[0]}")
        header_schemas = tuple(schema.by_name[name] for name in self.config.fields)
        kept = [item for item in schema.fields if item.name not in self.config.fields]
        defaults = defaults_of(schema, replace_null=self.config.replace_null_with_default)
        return _Plan(with_fields(schema, kept) if self._moves else schema, defaults, header_schemas)
