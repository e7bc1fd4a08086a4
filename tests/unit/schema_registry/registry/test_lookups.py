"""Finding schemas by content, version, id and guid."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate, ContextId, SchemaResponse, SubjectVersion
from tests.support.registry_world import RegistryWorld, record, schema_body

ADDRESS = '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
PERSON = '{"type":"record","name":"Person","fields":[{"name":"home","type":"Address"}]}'
PERSON_INLINE = f'{{"type":"record","name":"Person","fields":[{{"name":"home","type":{ADDRESS}}}]}}'
TO_ADDRESS = [{"name": "Address", "subject": "address", "version": 1}]


def look_up(world: RegistryWorld, subject: str, text: str, *, deleted: bool = False) -> SchemaResponse:
    return world.registry.look_up(subject, schema_body(text), deleted=deleted)


def test_a_schema_is_found_by_its_content(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.register("orders", record("a", "b"))
    found = look_up(world_on_each, "orders", record("a"))
    assert (found.subject, found.version, found.id, found.schema_) == ("orders", 1, 1, record("a"))


def test_deleted_versions_are_found_only_if_asked_for(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.register("orders", record("a", "b"))
    world.registry.delete_version("orders", "1", permanent=False)
    with pytest.raises(RegistryError) as refused:
        look_up(world, "orders", record("a"))
    assert refused.value.code == 40403
    found = look_up(world, "orders", record("a"), deleted=True)
    assert (found.version, found.deleted) == (1, True)


def test_a_schema_with_its_references_inline_is_found(world_on_each: RegistryWorld) -> None:
    world_on_each.register("address", ADDRESS)
    stored = world_on_each.register("person", PERSON, references=TO_ADDRESS)
    assert look_up(world_on_each, "person", PERSON_INLINE).id == stored.id
    assert world_on_each.register("person", PERSON_INLINE).id == stored.id


@pytest.mark.parametrize("normalize", [False, True])
def test_a_schema_with_its_references_inline_is_found_whatever_the_order_of_its_properties(
    world: RegistryWorld, normalize: bool
) -> None:
    world.register("address", ADDRESS)
    with_reference = PERSON[:-1] + ',"z":{"b":1,"a":2},"y":true}'
    stored = world.registry.register("person", schema_body(with_reference, references=TO_ADDRESS), normalize=normalize)
    inline = PERSON_INLINE[:-1] + ',"y":true,"z":{"a":2,"b":1}}'
    found = world.registry.look_up("person", schema_body(inline), normalize=normalize)
    assert found.id == stored.id


def test_a_schema_by_id_has_its_registration_time_and_whether_it_is_deleted(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    guid = world.registry.schema_by_id(1).guid
    assert guid is not None
    found = (world.registry.schema_by_id(1), world.registry.schema_by_guid(guid))
    assert [(answer.ts, answer.deleted) for answer in found] == [(1_000, False)] * 2
    world.registry.delete_subject("orders", permanent=False)
    assert world.registry.schema_by_id(1).deleted is True
    world.register("payments", record("a"))
    assert world.registry.schema_by_id(1).deleted is False


def test_metadata_of_the_latest_version_are_added_to_a_look_up(world: RegistryWorld) -> None:
    world.register("orders", record("a"), properties={"owner": "me"})
    assert look_up(world, "orders", record("a")).version == 1


def test_a_name_without_a_context_is_looked_for_in_all(world: RegistryWorld) -> None:
    world.register(":.b:orders", record("a"))
    assert look_up(world, "orders", record("a")).subject == ":.b:orders"
    assert world.registry.version("orders", "latest").subject == ":.b:orders"
    with pytest.raises(RegistryError):
        look_up(world, ":.c:orders", record("a"))


@pytest.mark.parametrize(("subject", "code"), [("nowhere", 40401), ("orders", 40403)])
def test_what_is_not_found(world: RegistryWorld, subject: str, code: int) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        look_up(world, subject, record("z"))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("subject", "version", "code"),
    [
        ("nowhere", "1", 40401),
        ("nowhere", "latest", 40401),
        ("orders", "2", 40402),
        ("orders", "0", 42202),
        ("orders", "-2", 42202),
        ("orders", "first", 42202),
        ("orders", "2147483648", 42202),
        ("orders", "", 42202),
        ("orders", "١", 42202),
    ],
)
def test_versions_that_are_not_there(world: RegistryWorld, subject: str, version: str, code: int) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        world.registry.version(subject, version)
    assert refused.value.code == code


@pytest.mark.parametrize("version", ["2", "latest", "LATEST", "-1", " 2 "])
def test_a_version_is_named_in_many_ways(world: RegistryWorld, version: str) -> None:
    world.register("orders", record("a"))
    world.register("orders", record("a", "b"))
    assert world.registry.version("orders", version).id == 2


def test_the_latest_version_is_never_a_deleted_one(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.register("orders", record("a", "b"))
    world_on_each.registry.delete_version("orders", "2", permanent=False)
    assert world_on_each.registry.version("orders", "latest", deleted=True).version == 1
    assert world_on_each.registry.version("orders", "2", deleted=True).deleted is True


def test_a_schema_by_its_id(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    found = world_on_each.registry.schema_by_id(1, fetch_max_id=True)
    assert (found.schema_, found.max_id, found.subject, found.version) == (record("a"), 1, None, None)
    named = world_on_each.registry.schema_by_id(1, subject="orders")
    assert (named.subject, named.version, named.id) == ("orders", 1, 1)


@pytest.mark.parametrize("schema_id", [2, 0, -1, 2**31, 2**70])
def test_unknown_ids(world_on_each: RegistryWorld, schema_id: int) -> None:
    world_on_each.register("orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        world_on_each.registry.schema_by_id(schema_id)
    assert (refused.value.code, refused.value.message) == (40403, f"Schema {schema_id} not found")


def test_an_id_means_another_schema_in_another_context(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.register(":.b:orders", record("b"))
    world.register(":.b:items", record("c"))
    by_id = world.registry.schema_by_id
    assert by_id(1).schema_ == record("a")
    assert by_id(1, subject=":.b:").schema_ == record("b")
    assert by_id(1, subject=":.b:orders").schema_ == record("b")
    assert by_id(2, subject="items").schema_ == record("c")
    assert by_id(1, subject="unknown").schema_ == record("a")
    for subject in (":.b:items", ":.c:"):
        with pytest.raises(RegistryError):
            by_id(1, subject=subject)


def test_where_an_id_is_used(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.register("items", record("a"))
    world.registry.delete_subject("items", permanent=False)
    asked: dict[str, Any] = {"subject": None, "offset": 0, "limit": -1}
    assert world.registry.subjects_of_id(1, deleted=False, **asked) == ["orders"]
    assert world.registry.versions_of_id(1, deleted=True, **asked) == [
        SubjectVersion(subject="items", version=1),
        SubjectVersion(subject="orders", version=1),
    ]
    with pytest.raises(RegistryError) as refused:
        world.registry.subjects_of_id(9, deleted=False, **asked)
    assert refused.value.code == 40403


def test_a_guid_is_the_same_in_all_contexts(world_on_each: RegistryWorld) -> None:
    first = world_on_each.register("orders", record("a"))
    world_on_each.register(":.b:other", record("b"))
    second = world_on_each.register(":.b:orders", record("a"))
    assert first.guid == second.guid
    assert first.guid is not None
    assert world_on_each.registry.ids_of_guid(first.guid) == [
        ContextId(context=".", id=1),
        ContextId(context=".b", id=2),
    ]
    assert world_on_each.registry.schema_by_guid(first.guid.upper()).schema_ == record("a")


@pytest.mark.parametrize("guid", ["00000000-0000-0000-0000-000000000000", "nonsense", "\x00", ""])
def test_unknown_guids(world_on_each: RegistryWorld, guid: str) -> None:
    with pytest.raises(RegistryError) as refused:
        world_on_each.registry.schema_by_guid(guid)
    assert refused.value.code == 40403


def test_the_latest_version_with_metadata(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"), properties={"major": "1"})
    world_on_each.register("orders", record("a", "b"), properties={"major": "1", "minor": "2"})
    world_on_each.register("orders", record("a", "b", "c"), properties={"major": "2"})
    find = world_on_each.registry.latest_with_metadata
    assert find("orders", {"major": "1"}, style="", deleted=False).version == 2
    assert find("orders", {}, style="", deleted=False).version == 3
    for subject, code in (("orders", 40403), ("nowhere", 40401)):
        with pytest.raises(RegistryError) as refused:
            find(subject, {"major": "9"}, style="", deleted=False)
        assert refused.value.code == code


def test_an_alias_means_another_subject(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    world.registry.update_config("bestellungen", ConfigUpdate(alias="orders"))
    assert world.registry.version("bestellungen", "1").subject == "orders"
    assert world.versions("bestellungen") == [1]
    assert look_up(world, "bestellungen", record("a")).subject == "orders"
    assert world.registry.schema_by_id(1, subject="bestellungen").subject == "orders"
    assert world.register("bestellungen", record("a", "b")).version == 2
    assert world.registry.delete_version("bestellungen", "2", permanent=False) == 2
    assert world.versions("orders") == [1]


def test_styles_change_the_text_only(world: RegistryWorld) -> None:
    world.register("address", ADDRESS)
    world.register("person", PERSON, references=TO_ADDRESS)
    assert world.registry.version("person", "1").schema_ == PERSON
    assert world.registry.version("person", "1", style="resolved").schema_ == PERSON_INLINE
    assert world.registry.schema_by_id(2, style="resolved").schema_ == PERSON_INLINE
    assert world.registry.version("person", "1", style="unknown").schema_ == PERSON


@pytest.mark.parametrize("subject", ["a\x00b", "\ud800"])
def test_names_that_no_database_takes_are_refused(world_on_each: RegistryWorld, subject: str) -> None:
    with pytest.raises(RegistryError) as refused:
        world_on_each.registry.version(subject, "1")
    assert refused.value.code == 42208


def test_a_language_that_is_not_spoken_is_refused_and_unknown_styles_change_nothing(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    assert world.registry.version("orders", "1", style="pretty").schema_ == record("a")
    with pytest.raises(RegistryError) as refused:
        world.registry.version("orders", "1", style="logical")
    assert refused.value.code == 42201
