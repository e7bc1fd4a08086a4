import base64
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock
from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate
from schema_registry.models_deks import Dek, DekCreation, KekChange, KekCreation
from schema_registry.registry.deks import Deks
from schema_registry.registry.kms import KmsAccessDenied, KmsDriver, LocalKms, Wrapper
from schema_registry.registry.scopes import update_config
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store.database import Database
from tests.support.registry_database import new_database, new_database_of

MATERIAL = base64.b64encode(b"wrapped by a client").decode()


def denying(_key_id: str, _properties: Mapping[str, str]) -> Wrapper:
    raise KmsAccessDenied("not authorized to use the key")


DRIVERS: Mapping[str, KmsDriver] = {"local-kms": LocalKms("mysecret"), "denying-kms": denying}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = new_database(tmp_path)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def deks_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deks]:
    """Keys, once on each kind of database."""
    database = new_database_of(request.param, request, tmp_path)
    yield Deks(database, ManualClock(now_ms=1_000), drivers=DRIVERS)
    database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now_ms=1_000)


@pytest.fixture
def deks(database: Database, clock: ManualClock) -> Deks:
    return Deks(database, clock, drivers=DRIVERS)


def kek(name: str = "kek1", **values: object) -> KekCreation:
    return KekCreation.model_validate({"name": name, "kmsType": "local-kms", "kmsKeyId": "mykey", **values})


def dek(subject: str = "orders-value", **values: object) -> DekCreation:
    return DekCreation.model_validate({"subject": subject, **values})


def wrapped(subject: str = "orders-value", **values: object) -> DekCreation:
    return dek(subject, encryptedKeyMaterial=MATERIAL, **values)


def refused(code: int) -> "pytest.RaisesExc[RegistryError]":
    return pytest.RaisesExc(RegistryError, check=lambda error: error.code == code)


# --- KEKs ---


def test_a_kek_is_returned_as_it_was_created(deks: Deks) -> None:
    created = deks.keks.create(kek(kmsProps={"region": "here"}, doc="for orders"))

    assert created == deks.keks.get("kek1")
    assert json.loads(created.to_json()) == {
        "name": "kek1",
        "kmsType": "local-kms",
        "kmsKeyId": "mykey",
        "kmsProps": {"region": "here"},
        "doc": "for orders",
        "shared": False,
        "ts": 1_000,
    }


@pytest.mark.parametrize(
    ("given", "stored"),
    [("AWS", "aws-kms"), ("azure-key-vault", "azure-kms"), ("gcp-kms", "gcp-kms"), ("hcvault", "hcvault")],
)
def test_types_of_clouds_have_one_name(deks: Deks, given: str, stored: str) -> None:
    assert deks.keks.create(kek(kmsType=given)).kms_type == stored


@pytest.mark.parametrize(
    "creation",
    [
        KekCreation(kms_type="local-kms", kms_key_id="mykey"),
        kek(""),
        kek("1kek"),
        kek("-kek"),
        kek("kek 1"),
        kek("kek/1"),
        kek("k" * 257),
        kek(kmsType=None),
        kek(kmsType=""),
        kek(kmsKeyId=None),
        kek(kmsKeyId=""),
        kek(doc="nul\0"),
        kek(kmsProps={"half": "\ud800"}),
    ],
)
def test_an_incomplete_or_unusable_kek_is_refused(deks: Deks, creation: KekCreation) -> None:
    with refused(42271):
        deks.keks.create(creation)


def test_a_name_can_be_used_only_once(deks: Deks) -> None:
    deks.keks.create(kek())

    with refused(40971):
        deks.keks.create(kek())


def test_names_come_in_order_and_deleted_ones_only_when_asked_for(deks: Deks) -> None:
    for name in ("b", "a", "c"):
        deks.keks.create(kek(name))
    deks.keks.delete("a")

    assert deks.keks.names() == ["b", "c"]
    assert deks.keks.names(deleted=True) == ["a", "b", "c"]


def test_names_by_prefixes_of_subjects(deks_on_each: Deks) -> None:
    deks = deks_on_each
    for name in ("a", "b", "c"):
        deks.keks.create(kek(name))
    deks.create("a", wrapped("orders-value"))
    deks.create("b", wrapped("Orders-value"))
    deks.create("c", wrapped("payments%_value"))

    assert deks.keks.names(subject_prefixes=["orders"]) == ["a"]
    assert deks.keks.names(subject_prefixes=["orders", "payments%_"]) == ["a", "c"]
    assert deks.keks.names(subject_prefixes=["%"]) == []
    assert deks.keks.names(subject_prefixes=["\0", "\ud800"]) == []
    assert deks.keks.names(subject_prefixes=[""]) == ["a", "b", "c"]


def test_an_unknown_kek_is_not_found(deks: Deks) -> None:
    with refused(40470):
        deks.keks.get("kek1")
    with refused(40470):
        deks.keks.change("kek1", KekChange(doc="x"))
    with refused(40470):
        deks.keks.delete("kek1")
    with refused(40470):
        deks.keks.undelete("kek1")
    with refused(40470):
        deks.keks.test("kek1")


def test_a_deleted_kek_is_found_when_asked_for_and_can_come_back(deks: Deks, clock: ManualClock) -> None:
    deks.keks.create(kek())
    clock.advance(5)
    deks.keks.delete("kek1")

    with refused(40470):
        deks.keks.get("kek1")
    assert deks.keks.get("kek1", deleted=True).deleted is True
    assert deks.keks.get("kek1", deleted=True).ts == 1_005
    deks.keks.undelete("kek1")
    assert deks.keks.get("kek1").deleted is None


def test_creating_a_deleted_kek_again_brings_it_back_only_if_it_is_the_same(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.keks.delete("kek1")

    with refused(40971):
        deks.keks.create(kek(kmsKeyId="another"))
    assert deks.keks.create(kek()).deleted is None


def test_a_kek_can_be_created_as_deleted(deks: Deks) -> None:
    assert deks.keks.create(kek(deleted=True)).deleted is True
    assert deks.keks.names() == []


def test_a_permanent_delete_needs_a_soft_delete_before(deks: Deks) -> None:
    deks.keks.create(kek())

    with refused(40471):
        deks.keks.delete("kek1", permanent=True)
    deks.keks.delete("kek1")
    deks.keks.delete("kek1", permanent=True)
    with refused(40470):
        deks.keks.get("kek1", deleted=True)


def test_a_kek_that_wraps_deks_stays(deks_on_each: Deks) -> None:
    deks = deks_on_each
    deks.keks.create(kek())
    deks.create("kek1", wrapped())

    with refused(42272):
        deks.keks.delete("kek1")
    deks.delete("kek1", "orders-value")
    deks.keks.delete("kek1")
    with refused(42272):
        deks.keks.delete("kek1", permanent=True)
    deks.delete("kek1", "orders-value", permanent=True)
    deks.keks.delete("kek1", permanent=True)


def test_a_change_leaves_alone_what_it_does_not_name(deks: Deks) -> None:
    deks.keks.create(kek(kmsProps={"region": "here"}, doc="for orders"))

    changed = deks.keks.change("kek1", KekChange.model_validate({"shared": True}))

    assert (changed.shared, changed.doc, changed.kms_props) == (True, "for orders", {"region": "here"})


def test_a_null_clears_what_it_names(deks: Deks) -> None:
    deks.keks.create(kek(kmsProps={"region": "here"}, doc="for orders"))

    changed = deks.keks.change("kek1", KekChange.model_validate({"doc": None, "kmsProps": None}))

    assert (changed.doc, changed.kms_props) == (None, {})


def test_a_change_to_the_same_does_not_count_as_one(deks: Deks, clock: ManualClock) -> None:
    deks.keks.create(kek(doc="for orders"))
    clock.advance(5)

    assert deks.keks.change("kek1", KekChange(doc="for orders")).ts == 1_000
    assert deks.keks.change("kek1", KekChange(doc="for payments")).ts == 1_005


def test_a_deleted_kek_cannot_be_changed(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.keks.delete("kek1")

    with refused(40470):
        deks.keks.change("kek1", KekChange(doc="x"))


def test_a_full_registry_takes_no_more_keks(database: Database, clock: ManualClock) -> None:
    deks = Deks(database, clock, max_keys=1)
    deks.keks.create(kek("a"))

    with refused(40972):
        deks.keks.create(kek("b"))
    deks.keks.delete("a")
    deks.keks.create(kek("a"))


# --- secrets ---


def test_secrets_of_a_kek_are_used_but_not_returned(deks: Deks) -> None:
    created = deks.keks.create(kek(kmsProps={"secret": "own", "region": "here"}, shared=True))

    assert created.kms_props == {"region": "here"}
    assert deks.create("kek1", dek()).key_material is not None


def test_secrets_that_a_change_does_not_name_stay(deks: Deks) -> None:
    deks.keks.create(kek(kmsProps={"secret": "own", "region": "here"}, shared=True))
    made = deks.create("kek1", dek())

    deks.keks.change("kek1", KekChange(kms_props={"region": "there", "secret": "[hidden]"}))
    assert deks.get("kek1", "orders-value").key_material == made.key_material
    deks.keks.change("kek1", KekChange(kms_props={"secret": "another"}))
    with refused(50070):
        deks.get("kek1", "orders-value")


def test_no_secret_is_in_messages_or_logs(deks: Deks, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    deks.keks.create(kek(kmsProps={"secret": "top-secret"}, shared=True))
    made = deks.create("kek1", dek())
    deks.keks.change("kek1", KekChange(kms_props={"secret": "next-secret"}))

    with pytest.raises(RegistryError) as error:
        deks.get("kek1", "orders-value")

    output = f"{error.value.message} {error.value.__cause__!r} {caplog.text}"
    assert "secret" not in output.replace("another secret", "")
    assert str(made.key_material) not in output


# --- testing whether a KEK can be used ---


def test_a_shared_kek_can_be_tried(deks: Deks) -> None:
    deks.keks.create(kek(shared=True), test_sharing=True)

    assert deks.keks.test("kek1").name == "kek1"


def test_a_kek_that_is_not_shared_cannot_be_tried(deks: Deks) -> None:
    with refused(42271):
        deks.keks.create(kek(), test_sharing=True)
    deks.keks.create(kek())
    with refused(42271):
        deks.keks.test("kek1")


def test_a_kek_that_fails_the_trial_is_not_created_or_changed(deks: Deks) -> None:
    with refused(50070):
        deks.keks.create(kek(kmsType="aws-kms", shared=True), test_sharing=True)
    assert deks.keks.names(deleted=True) == []
    deks.keks.create(kek(kmsType="aws-kms"))
    with refused(50070):
        deks.keks.change("kek1", KekChange(shared=True), test_sharing=True)
    assert deks.keks.get("kek1").shared is False


def test_a_service_that_denies_access_is_reported_as_forbidden(deks: Deks) -> None:
    deks.keks.create(kek(kmsType="denying-kms", shared=True))

    with refused(40370):
        deks.keks.test("kek1")
    with refused(40370):
        deks.create("kek1", dek())


def test_a_service_that_is_not_installed_is_named(deks: Deks) -> None:
    deks.keks.create(kek(kmsType="gcp-kms", shared=True))

    with pytest.raises(RegistryError, match="'gcp-kms'") as error:
        deks.create("kek1", dek())
    assert error.value.code == 50070


def test_local_kms_needs_a_secret(database: Database, clock: ManualClock) -> None:
    deks = Deks(database, clock)
    deks.keks.create(kek(shared=True))

    with pytest.raises(RegistryError, match="cannot load secret") as error:
        deks.keks.test("kek1")
    assert error.value.code == 50070


# --- DEKs ---


def test_a_dek_is_returned_as_it_was_created(deks: Deks) -> None:
    deks.keks.create(kek())
    created = deks.create("kek1", wrapped())

    assert created == deks.get("kek1", "orders-value")
    assert json.loads(created.to_json()) == {
        "kekName": "kek1",
        "subject": "orders-value",
        "version": 1,
        "algorithm": "AES256_GCM",
        "encryptedKeyMaterial": MATERIAL,
        "ts": 1_000,
    }


def test_a_dek_needs_its_kek(deks: Deks) -> None:
    with refused(40470):
        deks.create("kek1", wrapped())
    deks.keks.create(kek())
    deks.keks.delete("kek1")
    with refused(40470):
        deks.create("kek1", wrapped())
    assert deks.create("kek1", wrapped(deleted=True)).deleted is True


def test_without_material_a_kek_must_be_shared(deks: Deks) -> None:
    deks.keks.create(kek())

    with refused(42271):
        deks.create("kek1", dek())


@pytest.mark.parametrize(
    ("code", "creation"),
    [
        (42271, DekCreation(encrypted_key_material=MATERIAL)),
        (42271, wrapped("")),
        (42271, wrapped("bell\a")),
        (42271, wrapped("s" * 1025)),
        (42271, wrapped(algorithm="ROT13")),
        (42202, wrapped(version=0)),
        (42202, wrapped(version=2**31)),
    ],
)
def test_an_unusable_dek_is_refused(deks: Deks, code: int, creation: DekCreation) -> None:
    deks.keks.create(kek())

    with refused(code):
        deks.create("kek1", creation)


def test_a_dek_can_be_created_only_once(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.create("kek1", wrapped())

    with refused(40971):
        deks.create("kek1", wrapped())
    deks.create("kek1", wrapped(algorithm="AES256_SIV"))
    deks.create("kek1", wrapped(version=2))


def test_creating_a_deleted_dek_again_brings_it_back_only_if_it_is_the_same(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.create("kek1", wrapped())
    deks.delete("kek1", "orders-value")

    with refused(40971):
        deks.create("kek1", dek(encryptedKeyMaterial="other"))
    assert deks.create("kek1", wrapped()).deleted is None


def test_a_full_registry_takes_no_more_deks(database: Database, clock: ManualClock) -> None:
    deks = Deks(database, clock, max_keys=1)
    deks.keks.create(kek())
    deks.create("kek1", wrapped("a"))

    with refused(40972):
        deks.create("kek1", wrapped("b"))


@pytest.mark.parametrize(("algorithm", "size"), [("AES128_GCM", 18), ("AES256_GCM", 34), ("AES256_SIV", 66)])
def test_with_a_shared_kek_the_registry_creates_and_returns_keys(deks: Deks, algorithm: str, size: int) -> None:
    deks.keks.create(kek(shared=True))
    made = deks.create("kek1", dek(algorithm=algorithm))

    assert len(base64.b64decode(made.key_material or "")) == size
    assert deks.get("kek1", "orders-value", algorithm=algorithm) == made
    wrapper = LocalKms("mysecret")("mykey", {})
    assert wrapper.unwrap(base64.b64decode(made.encrypted_key_material)) == base64.b64decode(made.key_material or "")


def test_a_dek_that_a_client_wrapped_is_returned_in_plain_once_its_kek_is_shared(deks: Deks) -> None:
    deks.keks.create(kek())
    material = base64.b64encode(LocalKms("mysecret")("mykey", {}).wrap(b"a key")).decode()
    assert deks.create("kek1", dek(encryptedKeyMaterial=material)).key_material is None

    deks.keks.change("kek1", KekChange(shared=True))

    assert deks.get("kek1", "orders-value").key_material == base64.b64encode(b"a key").decode()


def test_in_import_mode_a_new_key_is_not_returned_in_plain(database: Database, clock: ManualClock) -> None:
    deks = Deks(database, clock, drivers=DRIVERS, is_importing=lambda subject: subject == "orders-value")
    deks.keks.create(kek(shared=True))

    assert deks.create("kek1", dek()).key_material is None
    assert deks.create("kek1", dek("payments-value")).key_material is not None


def test_an_alias_has_the_keys_of_its_subject(database: Database, deks: Deks) -> None:
    deks.keks.create(kek())
    alias = SubjectName(".staging", "old-value")
    database.write(lambda connection: update_config(connection, alias, ConfigUpdate(alias="orders-value")))

    assert deks.create("kek1", wrapped(":.staging:old-value")).subject == ":.staging:orders-value"
    assert deks.versions("kek1", ":.staging:old-value") == [1]
    assert deks.get("kek1", ":.staging:orders-value") == deks.get("kek1", ":.staging:old-value")


def test_the_default_context_need_not_be_named(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.create("kek1", wrapped(":.:orders-value"))

    assert deks.subjects("kek1") == ["orders-value"]


def test_material_that_is_not_base64_cannot_be_returned_in_plain(deks: Deks) -> None:
    deks.keks.create(kek(shared=True))
    deks.keks.change("kek1", KekChange(shared=False))
    deks.create("kek1", dek(encryptedKeyMaterial="no base64!"))
    deks.keks.change("kek1", KekChange(shared=True))

    with pytest.raises(RegistryError, match="not Base64") as error:
        deks.get("kek1", "orders-value")
    assert error.value.code == 50070


def test_rewrapping_replaces_what_a_client_wrapped(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.create("kek1", wrapped())

    assert deks.create("kek1", dek(encryptedKeyMaterial="b3RoZXI="), rewrap=True).encrypted_key_material == "b3RoZXI="


def test_rewrapping_with_a_shared_kek_keeps_the_key(deks: Deks) -> None:
    deks.keks.create(kek(shared=True))
    made = deks.create("kek1", dek())

    again = deks.create("kek1", dek(), rewrap=True)

    assert again.key_material == made.key_material
    assert again.encrypted_key_material != made.encrypted_key_material
    with refused(40971):
        deks.create("kek1", wrapped(), rewrap=True)


def test_versions_and_the_latest_of_them(deks: Deks) -> None:
    deks.keks.create(kek())
    for version in (1, 3, 2):
        deks.create("kek1", wrapped(version=version))

    assert deks.versions("kek1", "orders-value") == [1, 2, 3]
    assert deks.get("kek1", "orders-value").version == 1
    assert deks.get("kek1", "orders-value", version="latest").version == 3
    assert deks.get("kek1", "orders-value", version="-1").version == 3
    assert deks.get("kek1", "orders-value", version="2").version == 2
    assert deks.versions("kek1", "orders-value", algorithm="AES256_SIV") == []


@pytest.mark.parametrize("version", ["0", "-2", "two", "2147483648", "1.0", "٣", ""])
def test_a_version_must_be_a_number_or_latest(deks: Deks, version: str) -> None:
    deks.keks.create(kek())

    with refused(42202):
        deks.get("kek1", "orders-value", version=version)


def test_an_unknown_dek_is_not_found(deks: Deks) -> None:
    deks.keks.create(kek())

    with refused(40470):
        deks.get("kek1", "orders-value")
    with refused(40470):
        deks.get("kek1", "orders-value", version="latest")
    with refused(40470):
        deks.delete("kek1", "orders-value")
    with refused(40470):
        deks.delete("kek1", "orders-value", version=1)
    with refused(40470):
        deks.undelete("kek1", "orders-value")
    with refused(40470):
        deks.undelete("kek1", "orders-value", version=1)


def test_deleting_and_undeleting_one_version(deks: Deks) -> None:
    deks.keks.create(kek())
    for version in (1, 2):
        deks.create("kek1", wrapped(version=version))

    deks.delete("kek1", "orders-value", version="latest")

    assert deks.versions("kek1", "orders-value") == [1]
    assert deks.versions("kek1", "orders-value", deleted=True) == [1, 2]
    deks.undelete("kek1", "orders-value", version=2)
    assert deks.versions("kek1", "orders-value") == [1, 2]
    with refused(40471):
        deks.delete("kek1", "orders-value", version=2, permanent=True)
    deks.delete("kek1", "orders-value", version=2)
    deks.delete("kek1", "orders-value", version=2, permanent=True)
    assert deks.versions("kek1", "orders-value", deleted=True) == [1]


def test_deleting_and_undeleting_all_versions(deks_on_each: Deks) -> None:
    deks = deks_on_each
    deks.keks.create(kek())
    for version in (1, 2):
        deks.create("kek1", wrapped(version=version))
    with refused(40471):
        deks.delete("kek1", "orders-value", permanent=True)

    deks.delete("kek1", "orders-value")

    assert deks.subjects("kek1") == []
    assert deks.subjects("kek1", deleted=True) == ["orders-value"]
    deks.undelete("kek1", "orders-value")
    assert deks.versions("kek1", "orders-value") == [1, 2]
    deks.delete("kek1", "orders-value")
    deks.delete("kek1", "orders-value", permanent=True)
    assert deks.subjects("kek1", deleted=True) == []


def test_a_dek_comes_back_only_after_its_kek(deks: Deks) -> None:
    deks.keks.create(kek())
    deks.create("kek1", wrapped())
    deks.delete("kek1", "orders-value")
    deks.keks.delete("kek1")

    with refused(40472):
        deks.undelete("kek1", "orders-value")
    with refused(40472):
        deks.undelete("kek1", "orders-value", version=1)


def test_of_many_creations_at_once_one_succeeds(deks_on_each: Deks) -> None:
    deks = deks_on_each
    deks.keks.create(kek(shared=True))
    created: list[Dek] = []
    codes: list[int] = []

    def create() -> None:
        try:
            created.append(deks.create("kek1", dek()))
        except RegistryError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(created) == 1
    assert codes == [40971] * 7
