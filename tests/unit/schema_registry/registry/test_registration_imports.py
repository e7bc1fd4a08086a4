"""Schemas that come with their ids and versions from elsewhere."""

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import ModeBody
from tests.support.registry_world import RegistryWorld, record


@pytest.fixture
def importing(world_on_each: RegistryWorld) -> RegistryWorld:
    """A registry that imports."""
    world_on_each.registry.set_mode(None, ModeBody(mode="IMPORT"), force=False)
    return world_on_each


def test_an_import_keeps_ids_and_versions(importing: RegistryWorld) -> None:
    answer = importing.register("orders", record("a"), id=100, version=7)
    assert (answer.id, answer.version) == (100, 7)
    assert importing.versions("orders") == [7]


def test_ids_go_on_behind_an_import(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=100, version=1)
    importing.registry.set_mode(None, ModeBody(mode="READWRITE"), force=False)
    assert importing.id_of("orders", record("a", "b")) == 101


def test_incompatible_schemas_are_imported(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=1, version=1)
    assert importing.register("orders", record(b=""), id=2, version=2).version == 2


def test_one_content_may_be_imported_with_two_ids(importing: RegistryWorld) -> None:
    assert importing.id_of("orders", record("a"), id=100, version=1) == 100
    assert importing.id_of("orders", record("a"), id=200, version=2) == 200
    assert importing.id_of("payments", record("a"), id=300, version=1) == 300
    assert importing.registry.schema_by_id(200).schema_ == record("a")


def test_an_id_never_means_two_contents(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=100, version=1)
    with pytest.raises(RegistryError, match="Overwrite new schema with id 100") as refused:
        importing.register("orders", record("b"), id=100, version=2)
    assert refused.value.code == 42205


def test_importing_the_same_again_changes_nothing(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=100, version=3)
    assert importing.id_of("orders", record("a"), id=100, version=3) == 100
    assert importing.id_of("orders", record("a")) == 100
    assert importing.versions("orders") == [3]


def test_a_deleted_version_can_be_imported_again(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=1, version=1)
    importing.registry.delete_subject("orders", permanent=False)
    assert importing.id_of("orders", record("a"), id=1, version=1) == 1
    assert importing.versions("orders") == [1]


def test_an_import_replaces_a_version(importing: RegistryWorld) -> None:
    importing.register("orders", record("a"), id=1, version=1)
    importing.register("orders", record("b"), id=2, version=1)
    assert importing.registry.version("orders", "1").id == 2
    with pytest.raises(RegistryError):
        importing.registry.schema_by_id(1)


def test_an_import_begins_with_nothing(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    with pytest.raises(RegistryError, match="Cannot import since found existing subjects") as refused:
        world_on_each.registry.set_mode(None, ModeBody(mode="IMPORT"), force=False)
    assert refused.value.code == 42205
    world_on_each.registry.delete_subject("orders", permanent=False)
    world_on_each.registry.set_mode(None, ModeBody(mode="IMPORT"), force=False)
    assert world_on_each.subjects(deleted=True) == []
    assert world_on_each.id_of("orders", record("a"), id=2, version=1) == 2


def test_an_import_can_be_forced_upon_what_is_there(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.registry.set_mode("orders", ModeBody(mode="IMPORT"), force=True)
    assert world_on_each.id_of("orders", record("b"), id=9, version=2) == 9


@pytest.fixture
def referenced(world_on_each: RegistryWorld) -> RegistryWorld:
    """A registry where the subject `user` references the first version of `base`."""
    world_on_each.register("base", record("a", name="Base"))
    world_on_each.register(
        "user",
        '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}',
        references=[{"name": "Base", "subject": "base", "version": 1}],
    )
    return world_on_each


def test_an_import_does_not_remove_what_soft_deleted_schemas_elsewhere_reference(referenced: RegistryWorld) -> None:
    referenced.registry.delete_subject("user", permanent=False)
    referenced.registry.delete_subject("base", permanent=False)
    with pytest.raises(RegistryError) as refused:
        referenced.registry.set_mode("base", ModeBody(mode="IMPORT"), force=False)
    assert refused.value.code == 42206
    assert referenced.versions("base", deleted=True) == [1]


def test_an_import_clears_referrers_together_with_what_they_reference(referenced: RegistryWorld) -> None:
    referenced.registry.delete_subject("user", permanent=False)
    referenced.registry.delete_subject("base", permanent=False)
    referenced.registry.set_mode(None, ModeBody(mode="IMPORT"), force=False)
    assert referenced.subjects(deleted=True) == []


def test_an_import_does_not_remove_what_other_schemas_reference(referenced: RegistryWorld) -> None:
    with pytest.raises(RegistryError):
        referenced.registry.set_mode("base", ModeBody(mode="IMPORT"), force=False)
