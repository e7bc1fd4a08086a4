"""Lists of subjects, versions, schemas and contexts."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate, SchemaResponse
from schema_registry.registry.listings import SchemaFilter
from tests.support.registry_world import RegistryWorld, record


def schemas(
    world: RegistryWorld, prefix: str = "", *, aliases: bool = False, offset: int = 0, limit: int = -1, **wanted: Any
) -> list[SchemaResponse]:
    return world.registry.schemas(prefix, SchemaFilter(**wanted), aliases=aliases, offset=offset, limit=limit)


def search(world: RegistryWorld, **asked: Any) -> list[tuple[str | None, int | None]]:
    return [(found.subject, found.version) for found in schemas(world, **asked)]


@pytest.fixture
def filled(world_on_each: RegistryWorld) -> RegistryWorld:
    """Subjects in two contexts."""
    for subject in ("b", "a", "ab", "Z", "é", "😀", ":.x:a", ":.x:b"):
        world_on_each.register(subject, record("f"))
    world_on_each.register("a", record("f", "g"))
    return world_on_each


def test_subjects_come_by_their_bytes_on_every_database(filled: RegistryWorld) -> None:
    assert filled.subjects() == [":.x:a", ":.x:b", "Z", "a", "ab", "b", "é", "😀"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", ["Z", "a", "ab", "b", "é", "😀"]),
        ("a", ["a", "ab"]),
        ("😀", ["😀"]),
        (":.x:", [":.x:a", ":.x:b"]),
        (":.x:b", [":.x:b"]),
        (":*:a", [":.x:a", "a", "ab"]),
        (":.nowhere:", []),
        ("%", []),
        ("_", []),
    ],
)
def test_subjects_by_prefix(filled: RegistryWorld, prefix: str, expected: list[str]) -> None:
    assert filled.subjects(prefix) == expected


def test_lists_come_in_pieces(filled: RegistryWorld) -> None:
    ask = filled.registry.subjects
    assert ask(prefix="", deleted=False, deleted_only=False, offset=1, limit=2) == ["a", "ab"]
    assert ask(prefix="", deleted=False, deleted_only=False, offset=5, limit=-1) == ["😀"]
    assert ask(prefix="", deleted=False, deleted_only=False, offset=50, limit=5) == []
    numbers = filled.registry.versions
    flags = {"deleted": False, "deleted_only": False, "deleted_as_negative": False}
    assert numbers("a", **flags, offset=1, limit=1) == [2]
    assert numbers("a", **flags, offset=9, limit=1) == []


@pytest.mark.parametrize("flags", [{}, {"deleted": True}, {"deleted_only": True}, {"deleted_as_negative": True}])
def test_versions_of_an_unknown_subject(world: RegistryWorld, flags: dict[str, bool]) -> None:
    with pytest.raises(RegistryError) as refused:
        world.versions("nowhere", **flags)
    assert refused.value.code == 40401


def test_the_deleted_versions_of_a_subject_without_any_are_an_empty_list(filled: RegistryWorld) -> None:
    assert filled.versions("a", deleted_only=True) == []


def test_contexts_begin_with_the_default_one(filled: RegistryWorld) -> None:
    assert filled.registry.contexts(prefix="", offset=0, limit=-1) == [".", ".x"]
    assert filled.registry.contexts(prefix=".x", offset=0, limit=-1) == [".x"]
    assert filled.registry.contexts(prefix="", offset=1, limit=1) == [".x"]


def test_a_context_is_known_once_something_is_in_it(world: RegistryWorld) -> None:
    with pytest.raises(RegistryError):
        world.register(":.x:a", "{")
    assert world.registry.contexts(prefix="", offset=0, limit=-1) == ["."]


def test_schemas_by_subject_and_version(filled: RegistryWorld) -> None:
    assert search(filled, prefix="a") == [("a", 1), ("a", 2), ("ab", 1)]
    assert search(filled, prefix="a", latest_only=True) == [("a", 2), ("ab", 1)]
    assert search(filled, prefix=":*:a", latest_only=True) == [(":.x:a", 1), ("a", 2), ("ab", 1)]
    assert search(filled, prefix="a", offset=1, limit=1) == [("a", 2)]


def test_deleted_schemas_are_listed_if_asked_for(filled: RegistryWorld) -> None:
    filled.registry.delete_version("a", "2", permanent=False)
    assert search(filled, prefix="a", latest_only=True) == [("a", 1), ("ab", 1)]
    assert search(filled, prefix="a", latest_only=True, deleted=True) == [("a", 2), ("ab", 1)]


def test_a_search_is_bounded(database: Any) -> None:
    world = RegistryWorld(database, {"schema.search.default.limit": "2", "schema.search.max.limit": "3"})
    for subject in "abcde":
        world.register(subject, record("f"))
    assert [len(search(world, limit=limit)) for limit in (-1, 0, 1, 3, 4)] == [2, 2, 1, 3, 2]


def test_schemas_by_the_type_of_their_rules(world: RegistryWorld) -> None:
    world.register("a", record("f"))
    world.register("b", record("f"), ruleSet={"domainRules": [{"name": "r", "type": "ENCRYPT"}]})
    world.register("c", record("f"), ruleSet={"domainRules": [{"name": "r", "type": "CEL"}]})
    assert search(world, rule_type="ENCRYPT") == [("b", 1)]


def test_schemas_with_their_aliases(world: RegistryWorld) -> None:
    world.register("orders", record("f"))
    world.register("zebras", record("f"))
    world.registry.update_config("bestellungen", ConfigUpdate(alias="orders"))
    found = schemas(world, "b", aliases=True)
    assert [(one.subject, one.aliases) for one in found] == [("orders", ["bestellungen"])]
    everything = schemas(world, aliases=True)
    assert [(one.subject, one.aliases) for one in everything] == [("orders", ["bestellungen"]), ("zebras", None)]
