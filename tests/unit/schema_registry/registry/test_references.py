"""References: resolved at registration, stored, returned."""

import json
import time

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import Reference
from tests.support.patience import PATIENCE_S
from tests.support.registry_world import RegistryWorld, record


def user(*names: str, name: str = "User") -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": n.lower(), "type": n} for n in names]})


def to(name: str, subject: str, version: int = 1) -> dict[str, object]:
    return {"name": name, "subject": subject, "version": version}


def test_the_latest_version_is_stored_as_it_was_found(world_on_each: RegistryWorld) -> None:
    world_on_each.register("base", record("a", name="Base"))
    world_on_each.register("base", record("a", "b", name="Base"))
    answer = world_on_each.register("user", user("Base"), references=[to("Base", "base", -1)])
    assert answer.references == [Reference(name="Base", subject="base", version=2)]
    world_on_each.register("base", record("a", "b", "c", name="Base"))
    assert world_on_each.registry.version("user", "1").references == answer.references


def test_references_of_references_are_followed(world_on_each: RegistryWorld) -> None:
    world_on_each.register("a", record("f", name="A"))
    world_on_each.register("b", user("A", name="B"), references=[to("A", "a")])
    world_on_each.register("c", user("B", "A", name="C"), references=[to("B", "b"), to("A", "a")])
    resolved = world_on_each.registry.version("c", "1", style="resolved").schema_
    assert resolved is not None
    assert resolved.count('"name":"A"') == 1


def test_a_reference_is_meant_in_the_context_of_its_subject(world: RegistryWorld) -> None:
    world.register(":.x:base", record("a", name="Base"))
    world.register(":.x:user", user("Base"), references=[to("Base", "base")])
    with pytest.raises(RegistryError):
        world.register("user", user("Base"), references=[to("Base", "base")])
    answer = world.register("user", user("Base"), references=[to("Base", ":.x:base")])
    assert answer.references == [Reference(name="Base", subject=":.x:base", version=1)]


def test_reference_subjects_can_be_returned_with_their_contexts(world: RegistryWorld) -> None:
    world.register(":.x:base", record("a", name="Base"))
    world.register(":.x:user", user("Base"), references=[to("Base", "base")])
    found = world.registry.version(":.x:user", "1", reference_style="qualified").references
    assert found == [Reference(name="Base", subject=":.x:base", version=1)]


def test_a_new_schema_cannot_reference_a_deleted_version(world_on_each: RegistryWorld) -> None:
    world_on_each.register("base", record("a", name="Base"))
    world_on_each.registry.delete_subject("base", permanent=False)
    with pytest.raises(RegistryError, match='No schema reference found for subject "base" and version 1') as refused:
        world_on_each.register("user", user("Base"), references=[to("Base", "base")])
    assert refused.value.code == 42201


def test_the_referrers_of_a_version(world_on_each: RegistryWorld) -> None:
    world_on_each.register("base", record("a", name="Base"))
    world_on_each.register("one", user("Base", name="One"), references=[to("Base", "base")])
    world_on_each.register("two", user("Base", name="Two"), references=[to("Base", "base")])
    ask = world_on_each.registry.referenced_by
    assert ask("base", "latest", deleted=False, offset=0, limit=-1) == [2, 3]
    assert ask("base", "1", deleted=False, offset=1, limit=1) == [3]
    assert ask("one", "1", deleted=False, offset=0, limit=-1) == []
    world_on_each.registry.delete_subject("one", permanent=False)
    assert ask("base", "1", deleted=False, offset=0, limit=-1) == [3]
    assert ask("base", "1", deleted=True, offset=0, limit=-1) == [2, 3]
    for subject, version, code in (("base", "9", 40402), ("nowhere", "1", 40401), ("base", "x", 42202)):
        with pytest.raises(RegistryError) as refused:
            ask(subject, version, deleted=False, offset=0, limit=-1)
        assert refused.value.code == code


def test_other_references_make_another_schema(world: RegistryWorld) -> None:
    world.register("base", record("a", name="Base"))
    world.register("base", record("a", "b", name="Base"))
    first = world.id_of("user", user("Base"), references=[to("Base", "base", 1)])
    assert world.id_of("user", user("Base"), references=[to("Base", "base", 2)]) != first


def test_long_chains_need_no_stack_and_wide_ones_are_refused(world: RegistryWorld) -> None:
    world.register("t0", record("f", name="T0"))
    for depth in range(1, 40):
        world.register(
            f"t{depth}", user(f"T{depth - 1}", name=f"T{depth}"), references=[to(f"T{depth - 1}", f"t{depth - 1}")]
        )
    assert world.registry.version("t39", "1").id == 40
    many = [to(f"N{number}", "t0") for number in range(1001)]
    started = time.monotonic()
    with pytest.raises(RegistryError, match="references") as refused:
        world.register("wide", user("T0"), references=many)
    assert refused.value.code == 42201
    assert time.monotonic() - started < PATIENCE_S


def test_json_and_protobuf_refer_too(world: RegistryWorld) -> None:
    world.register("inner", '{"type":"string"}', schemaType="JSON")
    outer = '{"type":"object","properties":{"a":{"$ref":"inner.json"}}}'
    assert world.register("outer", outer, schemaType="JSON", references=[to("inner.json", "inner")]).version == 1
    world.register("p", 'syntax = "proto3";\nmessage P { string f = 1; }', schemaType="PROTOBUF")
    text = 'syntax = "proto3";\nimport "p.proto";\nmessage Q { P p = 1; }'
    assert world.register("q", text, schemaType="PROTOBUF", references=[to("p.proto", "p")]).version == 1
    assert world.registry.version("q", "1", style="serialized").schema_


def test_a_name_means_the_version_that_is_found_first(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    world.register("inner", record("a", name="Inner"))
    world.register("inner", record("a", "b", name="Inner"))
    to_inner = [{"name": "Inner", "subject": "inner", "version": number} for number in (1, 2)]
    world.register("middle", '{"type":"record","name":"Middle","fields":[]}', references=[to_inner[1]])
    root = '{"type":"record","name":"Root","fields":[{"name":"inner","type":"Inner"}]}'
    to_middle = {"name": "Middle", "subject": "middle", "version": 1}
    for subject, references, has_b in (
        ("one", [to_inner[0], to_middle], False),
        ("two", [to_middle, to_inner[0]], True),
    ):
        world.register(subject, root, references=references)
        resolved = world.registry.version(subject, "1", style="resolved").schema_
        assert resolved is not None
        assert ('"name":"b"' in resolved) is has_b


def test_references_that_are_very_long_together_are_refused_before_they_are_read(world: RegistryWorld) -> None:
    long = json.dumps({"type": "enum", "name": "E", "symbols": ["A"], "doc": "x" * 900_000})
    for number in range(3):
        world.register(f"long-{number}", long)
    with pytest.raises(RegistryError, match="references have more than 2097152 characters in total"):
        world.register("user", record("a"), references=[to(f"L{number}", f"long-{number}") for number in range(3)])
