"""Checks whether rows and staged files fit into a table."""

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from streams.errors import SchemaConflict
from streams.spark.tables.model import StagedFile, pack_schema, unpack_schema
from streams.spark.types import Change, changes, check_names, merged_schema, stored_schema, stored_type, without_nulls


def plan_growth(
    table: str, has: pa.Schema | None, schemas: Sequence[pa.Schema], *, allowed: frozenset[Change]
) -> tuple[pa.Schema, list[SchemaConflict | None]]:
    """The columns that a table needs for all schemas that fit, and for each schema its conflict, if any."""
    columns = pa.schema([]) if has is None else has
    verdicts: list[SchemaConflict | None] = []
    for schema in schemas:
        try:
            grown = merged_schema(table, columns, _stored(table, schema))
            if has is not None:
                _check_allowed(table, has, grown, allowed)
        except SchemaConflict as conflict:
            verdicts.append(conflict)
        else:
            columns = grown
            verdicts.append(None)
    return without_nulls(columns), verdicts


def check_fits(table: str, has: pa.Schema, files: Sequence[StagedFile], *, aside: frozenset[str] = frozenset()) -> None:
    """SchemaConflict if a file has columns or types that the table lacks, except those in `aside`."""
    packed = pack_schema(has)
    for schema in {file.schema_bytes for file in files}:
        _check_fits(table, packed, schema, aside)


@lru_cache(maxsize=256)
def must_be_rewritten(schema_bytes: bytes) -> bool:
    """Whether a file has types that readers do not know, or read as something else."""
    return any(not is_readable(field.type) for field in unpack_schema(schema_bytes))


def is_readable(kind: pa.DataType) -> bool:
    """Whether all readers can read a parquet column of this Arrow type as the stored type."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_readable(kind.value_type)
    if pa.types.is_map(kind):
        return is_readable(kind.item_type)
    if pa.types.is_struct(kind):
        return all(is_readable(field.type) for field in kind)
    if pa.types.is_null(kind):
        return False
    return bool(stored_type(kind) == kind or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


@lru_cache(maxsize=256)
def _check_fits(table: str, has_bytes: bytes, schema_bytes: bytes, aside: frozenset[str]) -> None:
    has = unpack_schema(has_bytes)
    columns = [field for field in unpack_schema(schema_bytes) if field.name in has.names or field.name not in aside]
    given = without_nulls(_stored(table, pa.schema(columns)))
    grown = merged_schema(table, has, given)
    if grown != has:
        wanted = next(field for field in grown if has.get_field_index(field.name) < 0 or has.field(field.name) != field)
        known = str(has.field(wanted.name).type) if wanted.name in has.names else "missing"
        raise SchemaConflict(table, wanted.name, has=known, given=str(wanted.type))


def _stored(table: str, schema: pa.Schema) -> pa.Schema:
    for field in schema:
        try:
            stored_type(field.type)
        except TypeError as error:
            raise SchemaConflict(table, field.name, has="unsupported", given=f"{field.type}: {error}") from error
    stored = stored_schema(schema)
    check_names(table, stored)
    return stored


def _check_allowed(table: str, has: pa.Schema, grown: pa.Schema, allowed: frozenset[Change]) -> None:
    for field in grown:
        before = has.field(field.name) if field.name in has.names else None
        wanted = changes(pa.schema([] if before is None else [before]), pa.schema([field]))
        if not wanted <= allowed and not pa.types.is_null(field.type):
            known = "missing" if before is None else str(before.type)
            raise SchemaConflict(table, field.name, has=known, given=str(field.type))
