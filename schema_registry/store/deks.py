"""Keys in SQL: plain reads and writes, the rules are the registry's."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, RowMapping, delete, false, func, insert, or_, select, update

from schema_registry.store.dek_tables import deks, keks
from schema_registry.store.tables import configs

_HIGHEST = "\U0010ffff"


class StoredKek(msgspec.Struct, frozen=True, kw_only=True):
    """A key that wraps others."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: Mapping[str, str]
    doc: str | None
    is_shared: bool
    is_deleted: bool
    updated_ms: int

    def __repr__(self) -> str:
        """Without the properties, which may hold secrets."""
        return f"StoredKek({self.name!r})"


class DekId(msgspec.Struct, frozen=True, kw_only=True):
    """What tells a key for records from all others."""

    kek_name: str
    subject: str
    algorithm: str
    version: int


class StoredDek(msgspec.Struct, frozen=True, kw_only=True):
    """A key for records, wrapped."""

    id: DekId
    encrypted_key_material: str
    is_deleted: bool
    updated_ms: int


# --- keys that wrap others ---


def find_kek(connection: Connection, name: str, *, lock: bool = False) -> StoredKek | None:
    """A key by its name, deleted or not; `lock` keeps other writers off until the transaction ends."""
    query = select(keks).where(keks.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else _kek(row)


def kek_names(connection: Connection, *, with_deleted: bool) -> list[str]:
    """All names in order."""
    query = select(keks.c.name).order_by(keks.c.name)
    return list(connection.scalars(query if with_deleted else query.where(~keks.c.is_deleted)))


def kek_names_by_subject(connection: Connection, prefixes: Sequence[str], *, with_deleted: bool) -> list[str]:
    """Names of keys that wrap a key of a subject that begins with one of these, in order."""
    # A range, not LIKE: SQLite's LIKE overlooks the case of letters.
    found = or_(false(), *((deks.c.subject >= prefix) & (deks.c.subject <= prefix + _HIGHEST) for prefix in prefixes))
    query = select(deks.c.kek_name).distinct().where(found).order_by(deks.c.kek_name)
    return list(connection.scalars(query if with_deleted else query.where(~deks.c.is_deleted)))


def count_keks(connection: Connection) -> int:
    """How many there are, deleted ones included."""
    return connection.execute(select(func.count()).select_from(keks)).scalar_one()


def put_kek(connection: Connection, kek: StoredKek) -> None:
    """Add a key, or replace the one of the same name."""
    values = {**msgspec.structs.asdict(kek), "kms_props": msgspec.json.encode(kek.kms_props, order="sorted").decode()}
    replaced = connection.execute(update(keks).where(keks.c.name == kek.name).values(values))
    if replaced.rowcount == 0:
        connection.execute(insert(keks).values(values))


def remove_kek(connection: Connection, name: str) -> None:
    """Remove a key for good."""
    connection.execute(delete(keks).where(keks.c.name == name))


# --- keys for records ---


def find_dek(connection: Connection, dek_id: DekId) -> StoredDek | None:
    """One key, deleted or not."""
    row = connection.execute(select(deks).where(_is_dek(dek_id))).mappings().one_or_none()
    return None if row is None else _dek(row)


def deks_of_subject(
    connection: Connection, kek_name: str, subject: str, *, algorithm: str, with_deleted: bool
) -> list[StoredDek]:
    """All versions in order."""
    query = (
        select(deks)
        .where(deks.c.kek_name == kek_name, deks.c.subject == subject, deks.c.algorithm == algorithm)
        .order_by(deks.c.version)
    )
    rows = connection.execute(query if with_deleted else query.where(~deks.c.is_deleted)).mappings()
    return [_dek(row) for row in rows]


def dek_subjects(connection: Connection, kek_name: str, *, with_deleted: bool) -> list[str]:
    """Subjects that have a key wrapped by this one, in order."""
    query = select(deks.c.subject).distinct().where(deks.c.kek_name == kek_name).order_by(deks.c.subject)
    return list(connection.scalars(query if with_deleted else query.where(~deks.c.is_deleted)))


def wraps_any(connection: Connection, kek_name: str, *, with_deleted: bool) -> bool:
    """Whether a key is in use."""
    query = select(deks.c.version).where(deks.c.kek_name == kek_name).limit(1)
    return connection.execute(query if with_deleted else query.where(~deks.c.is_deleted)).first() is not None


def find_alias(connection: Connection, context: str, subject: str) -> str | None:
    """What was set as the subject that this one stands for: for keys, or else in general."""
    query = select(configs.c.alias_for_deks, configs.c.alias)
    row = connection.execute(query.where(configs.c.context == context, configs.c.subject == subject)).one_or_none()
    if row is None:
        return None
    alias: str | None = row.alias_for_deks or row.alias
    return alias


def count_deks(connection: Connection) -> int:
    """How many there are, deleted ones included."""
    return connection.execute(select(func.count()).select_from(deks)).scalar_one()


def put_dek(connection: Connection, dek: StoredDek) -> None:
    """Add a key, or replace it."""
    values = {
        "encrypted_key_material": dek.encrypted_key_material,
        "is_deleted": dek.is_deleted,
        "updated_ms": dek.updated_ms,
    }
    if connection.execute(update(deks).where(_is_dek(dek.id)).values(values)).rowcount == 0:
        connection.execute(insert(deks).values(**values, **msgspec.structs.asdict(dek.id)))


def remove_dek(connection: Connection, dek_id: DekId) -> None:
    """Remove a key for good."""
    connection.execute(delete(deks).where(_is_dek(dek_id)))


def _is_dek(dek_id: DekId) -> ColumnElement[bool]:
    return (
        (deks.c.kek_name == dek_id.kek_name)
        & (deks.c.subject == dek_id.subject)
        & (deks.c.algorithm == dek_id.algorithm)
        & (deks.c.version == dek_id.version)
    )


def _kek(row: RowMapping) -> StoredKek:
    values = dict(row)
    values["kms_props"] = msgspec.json.decode(values["kms_props"], type=dict[str, str])
    return StoredKek(**values)


def _dek(row: RowMapping) -> StoredDek:
    values = dict(row)
    dek_id = DekId(**{name: values.pop(name) for name in DekId.__struct_fields__})
    return StoredDek(id=dek_id, **values)
