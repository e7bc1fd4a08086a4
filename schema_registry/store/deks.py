"""Keys in SQL: plain reads and writes; the rules are in the registry package."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, delete, false, func, insert, or_, select, update

from schema_registry.store.tables import configs, deks, keks

_HIGHEST = "\U0010ffff"


class StoredKek(msgspec.Struct, frozen=True, kw_only=True):
    """A key encryption key (KEK): it wraps other keys."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: Mapping[str, str]
    doc: str | None
    is_shared: bool
    is_deleted: bool
    updated_ms: int

    def __repr__(self) -> str:
        """Leaves out the properties, which may contain secrets."""
        return f"StoredKek({self.name!r})"


class DekId(msgspec.Struct, frozen=True, kw_only=True):
    """The primary key of a data encryption key."""

    kek_name: str
    subject: str
    algorithm: str
    version: int


class StoredDek(msgspec.Struct, frozen=True, kw_only=True):
    """A data encryption key (DEK), wrapped."""

    id: DekId
    encrypted_key_material: str
    is_deleted: bool
    updated_ms: int


# --- KEKs ---


def find_kek(connection: Connection, name: str, *, lock: bool = False) -> StoredKek | None:
    """A KEK by name, deleted or not; `lock` makes other writers wait until the transaction ends."""
    query = select(keks).where(keks.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    if row is None:
        return None
    values = dict(row)
    values["kms_props"] = msgspec.json.decode(values["kms_props"], type=dict[str, str])
    return StoredKek(**values)


def kek_names(connection: Connection, *, with_deleted: bool) -> list[str]:
    """All names, sorted."""
    query = select(keks.c.name).order_by(keks.c.name)
    return list(connection.scalars(query if with_deleted else query.where(~keks.c.is_deleted)))


def kek_names_by_subject(connection: Connection, prefixes: Sequence[str], *, with_deleted: bool) -> list[str]:
    """The sorted names of the KEKs that wrap a key of a subject with one of these prefixes."""
    # A range instead of LIKE, because SQLite's LIKE ignores case.
    found = or_(false(), *((deks.c.subject >= prefix) & (deks.c.subject <= prefix + _HIGHEST) for prefix in prefixes))
    query = select(deks.c.kek_name).distinct().where(found).order_by(deks.c.kek_name)
    return list(connection.scalars(query if with_deleted else query.where(~deks.c.is_deleted)))


def count_keks(connection: Connection) -> int:
    """The number of KEKs, deleted ones included."""
    return connection.execute(select(func.count()).select_from(keks)).scalar_one()


def put_kek(connection: Connection, kek: StoredKek) -> None:
    """Add a KEK, or replace the one with the same name."""
    values = {**msgspec.structs.asdict(kek), "kms_props": msgspec.json.encode(kek.kms_props, order="sorted").decode()}
    replaced = connection.execute(update(keks).where(keks.c.name == kek.name).values(values))
    if replaced.rowcount == 0:
        connection.execute(insert(keks).values(values))


def remove_kek(connection: Connection, name: str) -> None:
    """Remove a KEK permanently."""
    connection.execute(delete(keks).where(keks.c.name == name))


# --- DEKs ---


def find_dek(connection: Connection, dek_id: DekId) -> StoredDek | None:
    """A DEK, deleted or not."""
    row = connection.execute(select(deks).where(_is_dek(dek_id))).mappings().one_or_none()
    return None if row is None else _to_dek(row)


def deks_of_subject(
    connection: Connection, kek_name: str, subject: str, *, algorithm: str, with_deleted: bool
) -> list[StoredDek]:
    """All versions of a subject's DEK, oldest first."""
    query = (
        select(deks)
        .where(deks.c.kek_name == kek_name, deks.c.subject == subject, deks.c.algorithm == algorithm)
        .order_by(deks.c.version)
    )
    rows = connection.execute(query if with_deleted else query.where(~deks.c.is_deleted)).mappings()
    return [_to_dek(row) for row in rows]


def dek_subjects(connection: Connection, kek_name: str, *, with_deleted: bool) -> list[str]:
    """The sorted subjects whose DEKs this KEK wraps."""
    query = select(deks.c.subject).distinct().where(deks.c.kek_name == kek_name).order_by(deks.c.subject)
    return list(connection.scalars(query if with_deleted else query.where(~deks.c.is_deleted)))


def wraps_any(connection: Connection, kek_name: str, *, with_deleted: bool) -> bool:
    """Whether a KEK wraps a DEK."""
    query = select(deks.c.version).where(deks.c.kek_name == kek_name).limit(1)
    return connection.execute(query if with_deleted else query.where(~deks.c.is_deleted)).first() is not None


def find_alias(connection: Connection, context: str, subject: str) -> str | None:
    """The subject that a subject is an alias of: the alias for keys, or else the general one."""
    query = select(configs.c.alias_for_deks, configs.c.alias)
    row = connection.execute(query.where(configs.c.context == context, configs.c.subject == subject)).one_or_none()
    if row is None:
        return None
    alias: str | None = row.alias_for_deks or row.alias
    return alias


def count_deks(connection: Connection) -> int:
    """The number of DEKs, deleted ones included."""
    return connection.execute(select(func.count()).select_from(deks)).scalar_one()


def put_dek(connection: Connection, dek: StoredDek) -> None:
    """Add a DEK, or replace it."""
    values = {
        "encrypted_key_material": dek.encrypted_key_material,
        "is_deleted": dek.is_deleted,
        "updated_ms": dek.updated_ms,
    }
    if connection.execute(update(deks).where(_is_dek(dek.id)).values(values)).rowcount == 0:
        connection.execute(insert(deks).values(**values, **msgspec.structs.asdict(dek.id)))


def remove_dek(connection: Connection, dek_id: DekId) -> None:
    """Remove a DEK permanently."""
    connection.execute(delete(deks).where(_is_dek(dek_id)))


def _is_dek(dek_id: DekId) -> ColumnElement[bool]:
    return (
        (deks.c.kek_name == dek_id.kek_name)
        & (deks.c.subject == dek_id.subject)
        & (deks.c.algorithm == dek_id.algorithm)
        & (deks.c.version == dek_id.version)
    )


def _to_dek(row: RowMapping) -> StoredDek:
    values = dict(row)
    dek_id = DekId(**{name: values.pop(name) for name in DekId.__struct_fields__})
    return StoredDek(id=dek_id, **values)
