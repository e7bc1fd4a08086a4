"""The key registry: data encryption keys (DEKs), wrapped by keys of a key management service (KEKs).

The registry itself may use a shared KEK: it creates DEKs and returns their plain form. As with schemas, a soft delete,
which can be undone, comes before a permanent one.
"""

import base64
import copy
from collections.abc import Callable, Mapping

import msgspec
from sqlalchemy import Connection

from core_broker.service.clock import Clock
from core_broker.web_access.rules import Operation
from schema_registry.errors import RegistryError
from schema_registry.models_deks import Dek, DekAlgorithm, DekCreation
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.dek_rules import (
    already_exists,
    check_name,
    check_subject,
    check_text,
    invalid,
    not_found,
    not_soft_deleted,
    parse_algorithm,
    parse_version,
    soft_deleted,
    too_many,
)
from schema_registry.registry.keks import Keks, lock_kek
from schema_registry.registry.key_wrapping import KeyWrapping
from schema_registry.registry.kms import LOCAL, KmsDriver, LocalKms, new_key
from schema_registry.registry.subject_names import parse, parse_beside
from schema_registry.store import deks as store
from schema_registry.store.database import Database
from schema_registry.store.deks import DekId, StoredDek, StoredKek

_LATEST = -1
_FIRST = 1
_ATTEMPTS = 10


class Deks:
    """The key registry. Thread-safe."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        drivers: Mapping[str, KmsDriver] | None = None,
        max_keys: int = 10_000,
        is_importing: Callable[[str], bool] = lambda _subject: False,
    ) -> None:
        """`drivers` are keyed by type of service; `is_importing` says whether a subject is in mode IMPORT."""
        self._database = database
        self._clock = clock
        self._wrapping = KeyWrapping({LOCAL: LocalKms()} if drivers is None else drivers)
        self._max_keys = max_keys
        self._is_importing = is_importing
        self._access = EVERYTHING
        self.keks = Keks(database, clock, wrapping=self._wrapping, max_keys=max_keys)

    def seen_by(self, access: Access) -> "Deks":
        """The same keys, for a caller that may use those of some subjects."""
        limited = copy.copy(self)
        limited._access = access  # noqa: SLF001 - of the same class
        return limited

    def subjects(self, kek_name: str, *, deleted: bool = False) -> list[str]:
        """The sorted subjects whose DEKs this KEK wraps."""
        self.keks.find(kek_name, deleted=deleted)
        with self._database.read() as connection:
            found = store.dek_subjects(connection, kek_name, with_deleted=deleted)
        return [subject for subject in found if self._access.allows(Operation.READ, parse(subject))]

    def versions(
        self, kek_name: str, subject: str, *, algorithm: str | None = None, deleted: bool = False
    ) -> list[int]:
        """The versions of a subject's DEK, oldest first."""
        wanted = self._parse_id(kek_name, subject, operation=Operation.READ, version=_LATEST, algorithm=algorithm)
        self.keks.find(kek_name, deleted=deleted)
        with self._database.read() as connection:
            return [dek.id.version for dek in _versions(connection, wanted, with_deleted=deleted)]

    def get(
        self,
        kek_name: str,
        subject: str,
        *,
        version: str | int = _FIRST,
        algorithm: str | None = None,
        deleted: bool = False,
    ) -> Dek:
        """A DEK, also in plain form if its KEK is shared; `latest` and -1 mean the highest version."""
        wanted = self._parse_id(kek_name, subject, operation=Operation.READ, version=version, algorithm=algorithm)
        kek = self.keks.find(kek_name, deleted=deleted)
        with self._database.read() as connection:
            found = _find(connection, wanted, with_deleted=deleted)
        return self._to_model_with_key(kek, found)

    def create(self, kek_name: str, body: DekCreation, *, rewrap: bool = False) -> Dek:
        """Create a DEK, restore the same one if it is soft-deleted, or (`rewrap`) wrap an existing one again.

        If the client sends no key material the registry creates the key itself, which needs a shared KEK.
        """
        dek_id = self._parse_id(
            kek_name, body.subject, operation=Operation.WRITE, version=body.version, algorithm=body.algorithm
        )
        check_text("encryptedKeyMaterial", body.encrypted_key_material)
        for _ in range(_ATTEMPTS):
            try:
                kek, dek = self._create_once(dek_id, body, rewrap=rewrap)
            except _ConcurrentChangeError:
                continue
            if not self._is_importing(dek_id.subject):
                return self._to_model_with_key(kek, dek)
            return _to_model(dek)
        raise RegistryError(50002, f"Key '{dek_id.subject}' is being changed by too many requests: try again later")

    def delete(
        self,
        kek_name: str,
        subject: str,
        *,
        version: str | int | None = None,
        algorithm: str | None = None,
        permanent: bool = False,
    ) -> None:
        """Delete one or all (None) versions of a subject's DEK: softly, or permanently if that was done before."""
        asked = _LATEST if version is None else version
        wanted = self._parse_id(kek_name, subject, operation=Operation.DELETE, version=asked, algorithm=algorithm)

        def work(connection: Connection) -> None:
            lock_kek(connection, kek_name)
            found = _find_some(connection, wanted, every=version is None)
            if permanent and any(not dek.is_deleted for dek in found):
                raise not_soft_deleted(found[0].id.subject)
            for dek in found:
                if permanent:
                    store.remove_dek(connection, dek.id)
                else:
                    self._mark_dek(connection, dek, is_deleted=True)

        self._database.write(work)

    def undelete(
        self, kek_name: str, subject: str, *, version: str | int | None = None, algorithm: str | None = None
    ) -> None:
        """Restore one or all (None) soft-deleted versions of a subject's DEK."""
        asked = _LATEST if version is None else version
        wanted = self._parse_id(kek_name, subject, operation=Operation.WRITE, version=asked, algorithm=algorithm)

        def work(connection: Connection) -> None:
            kek = lock_kek(connection, wanted.kek_name)
            found = _find_some(connection, wanted, every=version is None)
            if kek.is_deleted:
                raise soft_deleted(kek.name)
            for dek in found:
                self._mark_dek(connection, dek, is_deleted=False)

        self._database.write(work)

    def _parse_id(
        self,
        kek_name: str,
        subject: str | None,
        *,
        operation: Operation,
        version: str | int | None,
        algorithm: str | None,
    ) -> DekId:
        """The key that a request is about. Raises 40301 unless the caller may do that to its subject."""
        meant = self._follow_alias(check_subject(subject))
        self._access.require_meant(operation, parse(subject or ""), parse(meant))
        return DekId(
            kek_name=check_name(kek_name),
            subject=meant,
            algorithm=parse_algorithm(algorithm),
            version=_FIRST if version is None else parse_version(version),
        )

    def _follow_alias(self, subject: str) -> str:
        """The subject that this one is an alias of for keys, or itself."""
        name = parse(subject)
        with self._database.read() as connection:
            alias = store.find_alias(connection, *name.key)
        return parse_beside(name, alias).qualified if alias else name.qualified

    def _create_once(self, dek_id: DekId, body: DekCreation, *, rewrap: bool) -> tuple[StoredKek, StoredDek]:
        # The key is wrapped before the transaction, which must not wait for a service; the transaction then checks
        # that nothing has changed.
        with self._database.read() as connection:
            kek, old = _check_creation(connection, dek_id, body, rewrap=rewrap)
        dek = StoredDek(
            id=dek_id,
            encrypted_key_material=body.encrypted_key_material or self._new_material(dek_id, kek, old),
            is_deleted=bool(body.deleted),
            updated_ms=self._clock.now_ms(),
        )

        def work(connection: Connection) -> StoredDek:
            lock_kek(connection, dek_id.kek_name)
            if _check_creation(connection, dek_id, body, rewrap=rewrap) != (kek, old):
                raise _ConcurrentChangeError
            if old is None and store.count_deks(connection) >= self._max_keys:
                raise too_many(self._max_keys)
            store.put_dek(connection, dek)
            return dek

        return kek, self._database.write(work)

    def _new_material(self, dek_id: DekId, kek: StoredKek, old: StoredDek | None) -> str:
        if not kek.is_shared:
            raise invalid("encryptedKeyMaterial")
        key = new_key(DekAlgorithm(dek_id.algorithm)) if old is None else self._wrapping.unwrap(kek, old)
        return self._wrapping.wrap(kek, dek_id.subject, key)

    def _mark_dek(self, connection: Connection, dek: StoredDek, *, is_deleted: bool) -> None:
        if dek.is_deleted is not is_deleted:
            marked = msgspec.structs.replace(dek, is_deleted=is_deleted, updated_ms=self._clock.now_ms())
            store.put_dek(connection, marked)

    def _to_model_with_key(self, kek: StoredKek, dek: StoredDek) -> Dek:
        """The DEK, with its plain form if the KEK is shared."""
        if not kek.is_shared:
            return _to_model(dek)
        key = base64.b64encode(self._wrapping.unwrap(kek, dek)).decode()
        return _to_model(dek).model_copy(update={"key_material": key})


class _ConcurrentChangeError(Exception):
    """The keys have changed since they were read before the transaction."""


def _find_some(connection: Connection, wanted: DekId, *, every: bool) -> list[StoredDek]:
    """One version, or all of them, deleted or not."""
    if not every:
        return [_find(connection, wanted, with_deleted=True)]
    found = _versions(connection, wanted, with_deleted=True)
    if not found:
        raise not_found(wanted.subject)
    return found


def _find(connection: Connection, wanted: DekId, *, with_deleted: bool) -> StoredDek:
    if wanted.version == _LATEST:
        found = _versions(connection, wanted, with_deleted=with_deleted)
        dek = found[-1] if found else None
    else:
        dek = store.find_dek(connection, wanted)
    if dek is None or (dek.is_deleted and not with_deleted):
        raise not_found(wanted.subject)
    return dek


def _versions(connection: Connection, wanted: DekId, *, with_deleted: bool) -> list[StoredDek]:
    return store.deks_of_subject(
        connection, wanted.kek_name, wanted.subject, algorithm=wanted.algorithm, with_deleted=with_deleted
    )


def _check_creation(
    connection: Connection, dek_id: DekId, body: DekCreation, *, rewrap: bool
) -> tuple[StoredKek, StoredDek | None]:
    """The KEK and the existing DEK, if any; raises if the DEK must not be created."""
    kek = store.find_kek(connection, dek_id.kek_name)
    if kek is None or (kek.is_deleted and not body.deleted):
        raise not_found(dek_id.kek_name)
    old = store.find_dek(connection, dek_id)
    if old is None:
        return kek, None
    material = body.encrypted_key_material
    is_same = material is None or material == old.encrypted_key_material
    may_replace = rewrap or (bool(body.deleted) is not old.is_deleted and is_same)
    if not may_replace or (kek.is_shared and material is not None):
        raise already_exists(dek_id.subject)
    return kek, old


def _to_model(dek: StoredDek) -> Dek:
    return Dek(
        kek_name=dek.id.kek_name,
        subject=dek.id.subject,
        version=dek.id.version,
        algorithm=DekAlgorithm(dek.id.algorithm),
        encrypted_key_material=dek.encrypted_key_material,
        ts=dek.updated_ms,
        deleted=dek.is_deleted or None,
    )
