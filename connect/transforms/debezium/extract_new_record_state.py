"""Replaces Debezium's envelope by the new state of the row in it."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, LIST, STRING, Problem, one_of, option, optional
from connect.api.data import OPTIONAL_STRING, Field, Schema, Type, Value
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.record import Header, Record
from connect.api.transform import R, Transform
from connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    DELETE,
    OPERATION,
    TRUNCATE,
    Reference,
    is_envelope,
    references,
    text_field,
)
from connect.transforms.field_path import Path, value_at
from connect.transforms.options import WORD, NullConfig, problems_of, raw_text
from connect.transforms.sides import Memo, Side
from connect.transforms.structs import Defaults, copy_with_defaults, defaults_of, with_fields

_DELETED: Final = "__deleted"


class _Mode(NamedTuple):
    on_delete: str
    """drop, null (the schema stays), tombstone (without schema) or rewrite."""
    keeps_tombstones: bool


_MODES: Final = {
    "drop": _Mode("drop", keeps_tombstones=False),
    "tombstone": _Mode("null", keeps_tombstones=False),
    "rewrite": _Mode("rewrite", keeps_tombstones=False),
    "rewrite-with-tombstone": _Mode("rewrite", keeps_tombstones=True),
    "delete-to-tombstone": _Mode("tombstone", keeps_tombstones=False),
}
_OLD_MODES: Final = {"drop": "drop", "none": "null", "rewrite": "rewrite"}


class ExtractNewRecordStateConfig(NullConfig):
    """Options of ExtractNewRecordState."""

    delete_tombstone_handling_mode: str | None = option(optional(WORD), default=None, check=one_of(*_MODES))
    """How to treat deletions and the tombstones that follow them. drop: both are dropped. tombstone (the default):
    the deletion becomes a record without value, the tombstone is dropped. rewrite: the deletion becomes the last state
    with __deleted=true, the tombstone is dropped. rewrite-with-tombstone: as rewrite, but the tombstone stays.
    delete-to-tombstone: the deletion becomes a tombstone that has no schema either."""
    drop_tombstones: bool | None = option(optional(BOOLEAN), default=None)
    """The old option for dropping tombstones (true)."""
    delete_handling_mode: str | None = option(optional(WORD), default=None, check=one_of(*_OLD_MODES))
    """The old option for deletions: drop (the default), none (a record without value), rewrite."""
    add_fields: tuple[str, ...] = option(LIST, default=())
    """Fields of the envelope to add to the value: op,source.ts_ms,lsn:position."""
    add_fields_prefix: str = option(STRING, default="__")
    """The prefix of their names."""
    add_headers: tuple[str, ...] = option(LIST, default=())
    """Fields of the envelope to add as headers."""
    add_headers_prefix: str = option(STRING, default="__")
    """The prefix of their names."""
    route_by_field: str = option(STRING, default="")
    """A field of the row whose value becomes the topic; empty: the topic stays."""

    drop_fields_header_name: str = option(STRING, default="")
    """The header with a list of fields to drop; empty: none are dropped."""
    drop_fields_from_key: bool = option(BOOLEAN, default=False)
    """Whether they are dropped from the key as well."""
    drop_fields_keep_schema_compatible: bool = option(BOOLEAN, default=True)
    """Whether only optional fields are dropped, so that readers of the old schema can still read the data."""

    @property
    def mode(self) -> _Mode:
        """How deletions are treated; the old options count when they are set without the new one."""
        is_old = self.drop_tombstones is not None or self.delete_handling_mode is not None
        if self.delete_tombstone_handling_mode is None and is_old:
            on_delete = _OLD_MODES[self.delete_handling_mode or "drop"]
            return _Mode(on_delete, keeps_tombstones=self.drop_tombstones is False)
        return _MODES[self.delete_tombstone_handling_mode or "tombstone"]

    def references(self, key: str) -> tuple[Reference, ...]:
        """The fields that `add.fields` or `add.headers` names."""
        texts = self.add_fields if key == "add.fields" else self.add_headers
        return tuple(references(texts, raw_text(self, f"{key}.prefix", default="__")))

    @override
    def problems(self) -> Iterable[Problem]:
        """Names of fields that cannot be parsed."""
        for key in ("add.fields", "add.headers"):
            yield from problems_of(key, partial(self.references, key))


class _Plan(NamedTuple):
    """How rows are extracted from envelopes of one schema."""

    schema: Schema | None
    row: Schema
    defaults: Defaults
    added: tuple[tuple[str, Path], ...]


class ExtractNewRecordState(Transform):
    """Replaces Debezium's envelope by the new state of the row in it; other records pass."""

    config_class = ExtractNewRecordStateConfig
    config: ExtractNewRecordStateConfig
    aliases = ("io.debezium.transforms.ExtractNewRecordState", "io.debezium.transforms.UnwrapFromEnvelope")

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = self.config
        self._mode = options.mode
        self._rewrites = self._mode.on_delete == "rewrite"
        self._fields = options.references("add.fields")
        self._headers = options.references("add.headers")
        self._route_by = options.route_by_field
        self._replace_null = options.replace_null_with_default and self._rewrites
        self._afters = Memo[Schema, _Plan](lambda schema: self._plan(schema, AFTER))
        self._befores = Memo[Schema, _Plan](lambda schema: self._plan(schema, BEFORE))
        self._header_plans = Memo(self._header_plan)
        self._reduced = Memo(self._reduce)

    @override
    def apply(self, record: R) -> R | None:
        if record.value is None:
            if not self._mode.keeps_tombstones:
                return None
            added = tuple(Header(r.name, DELETE, STRING_SCHEMA) for r in self._headers if r.path == (OPERATION,))
            return replace(record, headers=record.headers + added) if added else record
        if not is_envelope(record):
            return record
        row, operation = record.value.get(AFTER), record.value.get(OPERATION)
        if operation == TRUNCATE or (row is None and operation != DELETE and record.value.get(BEFORE) is None):
            return None
        if row is not None:
            schema, value = self._extract(record, row, is_deleted=False)
        elif self._mode.on_delete == "drop":
            return None
        else:
            row, schema, value = record.value.get(BEFORE), None, None
            if self._rewrites and row is not None:
                schema, value = self._extract(record, row, is_deleted=True)
            elif record.value_schema is not None and self._mode.on_delete != "tombstone":
                schema = record.value_schema.field(AFTER)
        topic = (text_field(row, self._route_by) if self._route_by else None) or record.topic
        headers = record.headers + self._added_headers(record)
        result = replace(record, topic=topic, value_schema=schema, value=value, headers=headers)
        return self._drop_fields(result) if self.config.drop_fields_header_name else result

    def _extract(self, record: Record, row: Value, *, is_deleted: bool) -> Side:
        """A row with the fields added to it; a row that is not a struct, such as a document in text, is unchanged."""
        envelope = record.value_schema
        deleted = {_DELETED: "true" if is_deleted else "false"} if self._rewrites else {}
        if envelope is None:
            if not isinstance(row, dict):
                return None, row
            return None, {**row, **deleted, **_values_at(record.value, self._fields)}
        plan = (self._befores if is_deleted else self._afters)[envelope]
        if plan.schema is None or not isinstance(row, dict):
            return plan.row, row
        value = copy_with_defaults(row, plan.defaults)
        value.update(deleted)
        for name, path in plan.added:
            value[name] = value_at(record.value, path)
        return plan.schema, value

    def _plan(self, envelope: Schema, side: str) -> _Plan:
        row = envelope.field(side) or OPTIONAL_STRING
        if row.type is not Type.STRUCT:
            return _Plan(None, row, (), ())
        typed = [(r.name, r.path_in(envelope), r.schema_in(envelope)) for r in self._fields]
        added = [(name, path, schema) for name, path, schema in typed if schema is not None]
        deleted = [Field(_DELETED, OPTIONAL_STRING)] if self._rewrites else []
        fields = (*row.fields, *deleted, *(Field(name, schema) for name, _, schema in added))
        defaults = defaults_of(row, replace_null=self._replace_null)
        return _Plan(with_fields(row, fields), row, defaults, tuple((name, path) for name, path, _ in added))

    def _added_headers(self, record: Record) -> tuple[Header, ...]:
        if not self._headers:
            return ()
        if record.value_schema is None:
            return tuple([Header(name, value) for name, value in _values_at(record.value, self._headers).items()])
        plan = self._header_plans[record.value_schema]
        return tuple([Header(name, value_at(record.value, path), schema) for name, path, schema in plan])

    def _header_plan(self, envelope: Schema) -> tuple[tuple[str, Path, Schema], ...]:
        typed = ((r.name, r.path_in(envelope), r.schema_in(envelope)) for r in self._headers)
        return tuple((name, path, schema) for name, path, schema in typed if schema is not None)

    def _drop_fields(self, record: R) -> R:
        """The record without the fields that the header names."""
        name = self.config.drop_fields_header_name
        found = next((header.value for header in record.headers if header.key == name), None)
        names = frozenset(item for item in found if isinstance(item, str)) if isinstance(found, list) else frozenset()
        if not names:
            return record
        value_schema, value = self._without(record.value_schema, record.value, names=names)
        key_schema, key = record.key_schema, record.key
        if self.config.drop_fields_from_key:
            key_schema, key = self._without(key_schema, key, names=names)
        return replace(record, key_schema=key_schema, key=key, value_schema=value_schema, value=value)

    def _without(self, schema: Schema | None, value: Value, *, names: frozenset[str]) -> Side:
        if not isinstance(value, dict) or (schema is not None and schema.type is not Type.STRUCT):
            return schema, value
        if schema is None:
            return None, {name: item for name, item in value.items() if name not in names}
        reduced = self._reduced[schema, names]
        return reduced, {name: item for name, item in value.items() if name in reduced.by_name}

    def _reduce(self, schema_and_names: tuple[Schema, frozenset[str]]) -> Schema:
        schema, names = schema_and_names
        keeps_required = self.config.drop_fields_keep_schema_compatible
        kept = (f for f in schema.fields if f.name not in names or (keeps_required and not f.schema.optional))
        return with_fields(schema, kept)


def _values_at(envelope: Value, wanted: tuple[Reference, ...]) -> dict[str, Value]:
    return {reference.name: value_at(envelope, reference.path) for reference in wanted}
