"""Deletes: soft and permanent ones, and what prevents them."""

import pytest

from core_broker.service.clock import ManualClock
from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate, ModeBody
from schema_registry.registry.registry import Registry
from schema_registry.settings import RegistrySettings
from schema_registry.store.database import Database
from tests.support.registry_world import RegistryWorld, record, schema_body

USER = '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}'
TO_BASE = [{"name": "Base", "subject": "base", "version": 1}]


@pytest.fixture
def referenced(world_on_each: RegistryWorld) -> RegistryWorld:
    """A registry where the subject `user` references the first version of `base`."""
    world_on_each.register("base", record("a", name="Base"))
    world_on_each.register("user", USER, references=TO_BASE)
    return world_on_each


def test_a_soft_delete_hides_a_version_but_not_its_id(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.register("orders", record("a", "b"))
    assert world_on_each.registry.delete_version("orders", "1", permanent=False) == 1
    assert world_on_each.versions("orders") == [2]
    assert world_on_each.versions("orders", deleted=True) == [1, 2]
    assert world_on_each.versions("orders", deleted_only=True) == [1]
    assert world_on_each.versions("orders", deleted_as_negative=True) == [-1, 2]
    assert world_on_each.registry.schema_by_id(1).schema_ == record("a")


def test_a_permanent_delete_forgets_a_version_and_its_id(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.register("orders", record("a", "b"))
    world_on_each.registry.delete_version("orders", "1", permanent=False)
    assert world_on_each.registry.delete_version("orders", "1", permanent=True) == 1
    assert world_on_each.versions("orders", deleted=True) == [2]
    with pytest.raises(RegistryError) as refused:
        world_on_each.registry.schema_by_id(1)
    assert refused.value.code == 40403


def test_an_id_lives_as_long_as_one_subject_has_it(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.register("items", record("a"))
    world_on_each.delete_permanently("orders")
    assert world_on_each.registry.schema_by_id(1).schema_ == record("a")


def test_deleting_a_subject_deletes_what_is_left_of_it(world_on_each: RegistryWorld) -> None:
    for fields in ("a", "ab", "abc"):
        world_on_each.register("orders", record(*fields))
    world_on_each.registry.delete_version("orders", "2", permanent=False)
    assert world_on_each.registry.delete_subject("orders", permanent=False) == [1, 3]
    assert world_on_each.subjects() == []
    assert world_on_each.subjects(deleted=True) == ["orders"]
    assert world_on_each.subjects(deleted_only=True) == ["orders"]
    assert world_on_each.registry.delete_subject("orders", permanent=True) == [1, 2, 3]
    assert world_on_each.subjects(deleted=True) == []


@pytest.mark.parametrize(
    ("version", "permanent", "code"),
    [("9", False, 40402), ("9", True, 40402), ("x", False, 42202), ("1", False, 40406), ("2", True, 40407)],
)
def test_versions_that_cannot_be_deleted(world: RegistryWorld, version: str, permanent: bool, code: int) -> None:
    world.register("orders", record("a"))
    world.register("orders", record("a", "b"))
    world.registry.delete_version("orders", "1", permanent=False)
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_version("orders", version, permanent=permanent)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("subject", "permanent", "code"),
    [("nowhere", False, 40401), ("nowhere", True, 40401), ("orders", False, 40404), ("items", True, 40405)],
)
def test_subjects_that_cannot_be_deleted(world: RegistryWorld, subject: str, permanent: bool, code: int) -> None:
    world.register("orders", record("a"))
    world.register("items", record("a"))
    world.registry.delete_subject("orders", permanent=False)
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_subject(subject, permanent=permanent)
    assert refused.value.code == code


def test_a_second_soft_delete_is_refused_in_the_words_of_confluent(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.registry.delete_subject("orders", permanent=False)
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_subject("orders", permanent=False)
    assert refused.value.message == "Subject 'orders' was soft deleted.Set permanent=true to delete permanently"
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_version("orders", "1", permanent=False)
    assert (
        refused.value.message == "Subject 'orders' Version 1 was soft deleted.Set permanent=true to delete permanently"
    )


def test_nothing_is_deleted_in_a_read_only_registry(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.registry.set_mode(None, ModeBody(mode="READONLY"), force=False)
    for delete in (
        lambda: world.registry.delete_subject("orders", permanent=False),
        lambda: world.registry.delete_version("orders", "1", permanent=False),
    ):
        with pytest.raises(RegistryError) as refused:
            delete()
        assert refused.value.code == 42205


def test_a_referenced_schema_cannot_be_deleted(referenced: RegistryWorld) -> None:
    for delete in (
        lambda: referenced.registry.delete_subject("base", permanent=False),
        lambda: referenced.registry.delete_version("base", "1", permanent=False),
    ):
        with pytest.raises(RegistryError) as refused:
            delete()
        assert refused.value.code == 42206
        assert refused.value.message == (
            "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=base,version=1}."
        )


def test_a_soft_deleted_referrer_does_not_prevent_a_soft_delete(referenced: RegistryWorld) -> None:
    referenced.registry.delete_subject("user", permanent=False)
    assert referenced.registry.delete_version("base", "1", permanent=False) == 1
    assert referenced.registry.version("user", "1", deleted=True).deleted is True


def test_what_a_soft_deleted_schema_references_cannot_be_deleted_permanently(referenced: RegistryWorld) -> None:
    before = referenced.registry.version("user", "1", style="resolved").schema_
    referenced.registry.delete_subject("user", permanent=False)
    referenced.registry.delete_subject("base", permanent=False)
    for delete in (
        lambda: referenced.registry.delete_subject("base", permanent=True),
        lambda: referenced.registry.delete_version("base", "1", permanent=True),
    ):
        with pytest.raises(RegistryError) as refused:
            delete()
        assert refused.value.code == 42206
    assert referenced.registry.version("user", "1", style="resolved", deleted=True).schema_ == before


def test_a_referenced_schema_can_be_deleted_permanently_after_its_referrers(referenced: RegistryWorld) -> None:
    referenced.delete_permanently("user")
    referenced.delete_permanently("base")
    assert referenced.subjects(deleted=True) == []


def test_a_subject_that_references_itself_can_be_deleted(world: RegistryWorld) -> None:
    world.register("all", record("a", name="Base"))
    world.registry.update_config("all", ConfigUpdate(compatibility="NONE"))
    world.register("all", USER, references=[{"name": "Base", "subject": "all", "version": 1}])
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_version("all", "1", permanent=False)
    assert refused.value.code == 42206
    world.delete_permanently("all")
    assert world.subjects(deleted=True) == []


@pytest.fixture
def configured(world_on_each: RegistryWorld) -> RegistryWorld:
    """A registry where the subject `orders` has two versions, a config and a mode."""
    world_on_each.register("orders", record("a"))
    world_on_each.register("orders", record("a", "b"))
    world_on_each.registry.update_config("orders", ConfigUpdate(compatibility="FORWARD"))
    world_on_each.registry.set_mode("orders", ModeBody(mode="READWRITE"), force=False)
    return world_on_each


def test_a_soft_delete_keeps_config_and_mode(configured: RegistryWorld) -> None:
    configured.registry.delete_version("orders", "2", permanent=False)
    configured.registry.delete_subject("orders", permanent=False)
    configured.registry.delete_version("orders", "2", permanent=True)
    assert configured.registry.config("orders", default_to_global=False).compatibility_level == "FORWARD"
    assert configured.registry.mode("orders", default_to_global=False).mode == "READWRITE"
    configured.register("orders", record("a"))
    # A field without a default may be added by the subject's level, not by the global one.
    assert configured.register("orders", record("a", c="")).version is not None


@pytest.mark.parametrize("version_by_version", [False, True])
def test_config_and_mode_go_with_the_last_version(configured: RegistryWorld, version_by_version: bool) -> None:
    configured.registry.delete_subject("orders", permanent=False)
    if version_by_version:
        for version in ("1", "2"):
            configured.registry.delete_version("orders", version, permanent=True)
    else:
        configured.registry.delete_subject("orders", permanent=True)
    for ask in (configured.registry.config, configured.registry.mode):
        with pytest.raises(RegistryError) as refused:
            ask("orders", default_to_global=False)
        assert refused.value.code in (40408, 40409)


def test_every_delete_calls_on_schemas_removed_and_a_registration_does_not(database: Database) -> None:
    calls: list[str] = []
    registry = Registry(
        database, RegistrySettings.parse({}), ManualClock(), on_schemas_removed=lambda: calls.append("removed")
    )
    registry.register("orders", schema_body(record("a")))
    assert calls == []
    registry.delete_subject("orders", permanent=False)
    registry.delete_subject("orders", permanent=True)
    assert calls == ["removed", "removed"]


def test_an_empty_context_can_be_deleted(world_on_each: RegistryWorld) -> None:
    world_on_each.register(":.b:orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        world_on_each.registry.delete_context(".b")
    assert (refused.value.code, refused.value.message) == (42211, "The specified context '.b' is not empty.")
    world_on_each.delete_permanently(":.b:orders")
    assert world_on_each.registry.contexts(prefix="", offset=0, limit=-1) == [".", ".b"]
    world_on_each.registry.delete_context("b")
    assert world_on_each.registry.contexts(prefix="", offset=0, limit=-1) == ["."]


@pytest.mark.parametrize(("context", "code"), [(".nowhere", 40401), (".", 42205), ("a:b", 400)])
def test_contexts_that_cannot_be_deleted(world: RegistryWorld, context: str, code: int) -> None:
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_context(context)
    assert refused.value.code == code
