"""`confluent:version`: versions that tell their number in their metadata."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from tests.support.registry_world import RegistryWorld, record, schema_body


@pytest.fixture
def two_versions(world: RegistryWorld) -> RegistryWorld:
    """One schema twice: a version that does not state its number, and one that does."""
    world.register("orders", record("a"))
    world.register("orders", record("a"), version=2)
    return world


def register(world: RegistryWorld, *, stated: str | None = None, **body: Any) -> tuple[int | None, str | None]:
    """Register the schema again; gives the id and the number that the metadata tell."""
    if stated is not None:
        body["properties"] = {"confluent:version": stated}
    answer = world.register("orders", record("a"), **body)
    properties = (answer.metadata.properties if answer.metadata is not None else None) or {}
    return answer.id, properties.get("confluent:version")


def found(world: RegistryWorld, **body: Any) -> int | None:
    return world.registry.look_up("orders", schema_body(record("a"), **body)).version


def test_the_next_version_is_a_new_one_if_asked_for_by_number(two_versions: RegistryWorld) -> None:
    assert two_versions.versions("orders") == [1, 2]
    assert register(two_versions, version=3) == (3, "3")
    with pytest.raises(RegistryError) as refused:
        register(two_versions, version=3)
    assert refused.value.code == 42201


def test_the_latest_version_is_kept_if_it_is_the_same(two_versions: RegistryWorld) -> None:
    assert register(two_versions, version=-1) == (2, "2")
    assert register(two_versions, version=-1) == (2, "2")
    assert two_versions.versions("orders") == [1, 2]


def test_a_first_version_without_a_number_is_the_latest_too(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    assert register(world, version=-1) == (1, None)


def test_a_look_up_finds_the_stated_version(two_versions: RegistryWorld) -> None:
    assert found(two_versions) == 1
    assert found(two_versions, properties={"confluent:version": "1"}) == 1
    assert found(two_versions, properties={"confluent:version": "2"}) == 2


def test_a_look_up_without_a_number_finds_one_with_it(two_versions: RegistryWorld) -> None:
    two_versions.registry.delete_version("orders", "1", permanent=False)
    assert found(two_versions) == 2
    assert register(two_versions) == (2, "2")


@pytest.mark.parametrize("stated", ["-1", "0", "9"])
def test_a_number_that_no_version_has_makes_a_new_one(two_versions: RegistryWorld, stated: str) -> None:
    assert register(two_versions, stated=stated) == (3, "3")


def test_a_number_that_a_version_has_finds_it(two_versions: RegistryWorld) -> None:
    register(two_versions, version=3)
    assert register(two_versions, stated="2") == (2, "2")
    assert two_versions.versions("orders") == [1, 2, 3]


def test_other_metadata_do_not_inherit_the_number(two_versions: RegistryWorld) -> None:
    answer = two_versions.register("orders", record("a"), properties={"k": "v"})
    assert answer.metadata is not None
    assert answer.metadata.properties == {"k": "v"}
    assert found(two_versions, properties={"k": "v"}) == 3
