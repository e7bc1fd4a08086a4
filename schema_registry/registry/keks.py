"""Key encryption keys (KEKs): keys of key management services that wrap data encryption keys."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from core_broker.service.clock import Clock
from schema_registry.models_deks import Kek, KekChange, KekCreation
from schema_registry.registry.dek_rules import (
    already_exists,
    check_name,
    check_properties,
    check_text,
    invalid,
    normalize_kms_type,
    not_found,
    not_soft_deleted,
    references_exist,
    replace_properties,
    too_many,
    without_secrets,
)
from schema_registry.registry.key_wrapping import KeyWrapping
from schema_registry.registry.subject_names import is_storable
from schema_registry.store import deks as store
from schema_registry.store.database import Database
from schema_registry.store.deks import StoredKek


class Keks:
    """All KEKs. Thread-safe."""

    def __init__(self, database: Database, clock: Clock, *, wrapping: KeyWrapping, max_keys: int) -> None:
        self._database = database
        self._clock = clock
        self._wrapping = wrapping
        self._max_keys = max_keys

    def names(self, *, subject_prefixes: Sequence[str] = (), deleted: bool = False) -> list[str]:
        """The sorted names; with prefixes only of the KEKs that wrap a key of such a subject."""
        prefixes = [prefix for prefix in subject_prefixes if prefix and prefix != ":*:"]
        with self._database.read() as connection:
            if prefixes:
                storable = [prefix for prefix in prefixes if is_storable(prefix)]
                return store.kek_names_by_subject(connection, storable, with_deleted=deleted)
            return store.kek_names(connection, with_deleted=deleted)

    def get(self, name: str, *, deleted: bool = False) -> Kek:
        """A KEK by name; with `deleted` even if it is soft-deleted."""
        return _to_model(self.find(name, deleted=deleted))

    def find(self, name: str, *, deleted: bool) -> StoredKek:
        """A KEK with its secrets; raises 40470 if there is none."""
        check_name(name)
        with self._database.read() as connection:
            kek = store.find_kek(connection, name)
        if kek is None or (kek.is_deleted and not deleted):
            raise not_found(name)
        return kek

    def create(self, body: KekCreation, *, test_sharing: bool = False) -> Kek:
        """Create a KEK, or restore the same one if it is soft-deleted."""
        kek = _to_stored(body, self._clock.now_ms())
        if test_sharing:
            self._wrapping.test(kek)

        def work(connection: Connection) -> StoredKek:
            old = store.find_kek(connection, kek.name, lock=True)
            if old is None:
                if store.count_keks(connection) >= self._max_keys:
                    raise too_many(self._max_keys)
            elif kek.is_deleted == old.is_deleted or not _is_same(kek, old):
                raise already_exists(kek.name)
            store.put_kek(connection, kek)
            return kek

        return _to_model(self._database.write(work))

    def change(self, name: str, change: KekChange, *, test_sharing: bool = False) -> Kek:
        """Change the properties, the description or the sharing of a KEK."""
        check_name(name)
        check_text("doc", change.doc)
        check_properties(change.kms_props)
        now_ms = self._clock.now_ms()
        if test_sharing:
            self._wrapping.test(_apply(change, self.find(name, deleted=False), now_ms))

        def work(connection: Connection) -> StoredKek:
            old = store.find_kek(connection, name, lock=True)
            if old is None or old.is_deleted:
                raise not_found(name)
            new = _apply(change, old, now_ms)
            if _is_same(new, old):
                return old
            store.put_kek(connection, new)
            return new

        return _to_model(self._database.write(work))

    def test(self, name: str) -> Kek:
        """Test whether the registry can use a shared KEK; raises if it cannot."""
        kek = self.find(name, deleted=False)
        self._wrapping.test(kek)
        return _to_model(kek)

    def delete(self, name: str, *, permanent: bool = False) -> None:
        """Delete a KEK that wraps no keys: softly, or permanently if that was done before."""
        check_name(name)

        def work(connection: Connection) -> None:
            kek = lock_kek(connection, name)
            if store.wraps_any(connection, name, with_deleted=permanent):
                raise references_exist(name)
            if not permanent:
                self._mark(connection, kek, is_deleted=True)
            elif kek.is_deleted:
                store.remove_kek(connection, name)
            else:
                raise not_soft_deleted(name)

        self._database.write(work)

    def undelete(self, name: str) -> None:
        """Restore a soft-deleted KEK."""
        check_name(name)
        self._database.write(lambda connection: self._mark(connection, lock_kek(connection, name), is_deleted=False))

    def _mark(self, connection: Connection, kek: StoredKek, *, is_deleted: bool) -> None:
        if kek.is_deleted is not is_deleted:
            marked = msgspec.structs.replace(kek, is_deleted=is_deleted, updated_ms=self._clock.now_ms())
            store.put_kek(connection, marked)


def lock_kek(connection: Connection, name: str) -> StoredKek:
    """A KEK, deleted or not, locked against other writers until the transaction ends; raises 40470 if there is none."""
    kek = store.find_kek(connection, name, lock=True)
    if kek is None:
        raise not_found(name)
    return kek


def _to_stored(body: KekCreation, now_ms: int) -> StoredKek:
    name = check_name(body.name)
    kms_key_id = check_text("kmsKeyId", body.kms_key_id)
    kms_type = check_text("kmsType", body.kms_type)
    if not kms_key_id:
        raise invalid("kmsKeyId")
    if not kms_type:
        raise invalid("kmsType")
    return StoredKek(
        name=name,
        kms_type=normalize_kms_type(kms_type),
        kms_key_id=kms_key_id,
        kms_props=check_properties(body.kms_props),
        doc=check_text("doc", body.doc),
        is_shared=bool(body.shared),
        is_deleted=bool(body.deleted),
        updated_ms=now_ms,
    )


def _apply(change: KekChange, old: StoredKek, now_ms: int) -> StoredKek:
    given = change.model_fields_set
    properties = old.kms_props
    if "kms_props" in given:
        properties = {} if change.kms_props is None else replace_properties(change.kms_props, old.kms_props)
    return msgspec.structs.replace(
        old,
        kms_props=properties,
        doc=change.doc if "doc" in given else old.doc,
        is_shared=bool(change.shared) if "shared" in given else old.is_shared,
        updated_ms=now_ms,
    )


def _is_same(kek: StoredKek, other: StoredKek) -> bool:
    return msgspec.structs.replace(kek, is_deleted=other.is_deleted, updated_ms=other.updated_ms) == other


def _to_model(kek: StoredKek) -> Kek:
    return Kek(
        name=kek.name,
        kms_type=kek.kms_type,
        kms_key_id=kek.kms_key_id,
        kms_props=without_secrets(kek.kms_props),
        doc=kek.doc,
        shared=kek.is_shared,
        ts=kek.updated_ms,
        deleted=kek.is_deleted or None,
    )
