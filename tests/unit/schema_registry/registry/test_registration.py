"""Registering: ids, versions, what counts as the same, and what is refused."""

import json
from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate, Metadata, ModeBody
from tests.support.registry_world import RegistryWorld, record, schema_body


def test_versions_and_ids_count_from_one(world_on_each: RegistryWorld) -> None:
    first = world_on_each.register("orders", record("a"))
    second = world_on_each.register("orders", record("a", "b"))
    assert [(first.id, first.version), (second.id, second.version)] == [(1, 1), (2, 2)]


def test_registering_again_answers_what_is_there(world_on_each: RegistryWorld) -> None:
    before = world_on_each.register("orders", record("a"))
    world_on_each.clock.advance(1000)
    assert world_on_each.register("orders", record("a")) == before
    assert world_on_each.versions("orders") == [1]


def test_the_response_has_all_about_the_new_version(world: RegistryWorld) -> None:
    answer = world.register("orders", record("a"), properties={"owner": "me"})
    assert answer.schema_ == record("a")
    assert answer.schema_type == "AVRO"
    assert answer.metadata == Metadata(properties={"owner": "me"})
    assert answer.ts == 1_000
    assert (answer.subject, answer.deleted) == (None, False)


def test_a_schema_has_one_id_in_all_subjects(world_on_each: RegistryWorld) -> None:
    assert world_on_each.id_of("orders", record("a")) == world_on_each.id_of("payments", record("a"))


def test_layout_makes_no_other_schema(world: RegistryWorld) -> None:
    spaced = json.dumps(json.loads(record("a")), indent=4)
    assert world.id_of("orders", record("a")) == world.id_of("orders", spaced)


def test_other_metadata_make_another_schema(world: RegistryWorld) -> None:
    assert world.id_of("orders", record("a")) != world.id_of("orders", record("a"), properties={"k": "v"})


def test_a_deleted_schema_comes_back_with_its_id_and_a_higher_version(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.registry.delete_subject("orders", permanent=False)
    again = world_on_each.register("orders", record("a"))
    assert (again.id, again.version) == (1, 2)
    assert world_on_each.versions("orders", deleted=True) == [2]


def test_ids_are_not_given_again_after_a_permanent_delete(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    world_on_each.delete_permanently("orders")
    again = world_on_each.register("orders", record("a"))
    assert (again.id, again.version) == (2, 1)


def test_an_empty_text_takes_the_latest_schema(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    tagged = world.register("orders", None, properties={"owner": "me"})
    assert (tagged.version, tagged.schema_) == (2, record("a"))


def test_metadata_and_rules_are_inherited_from_the_version_before(world: RegistryWorld) -> None:
    rules = {"domainRules": [{"name": "check", "type": "CEL", "kind": "CONDITION", "mode": "WRITE", "expr": "true"}]}
    world.register("orders", record("a"), properties={"owner": "me"}, ruleSet=rules)
    second = world.register("orders", record("a", "b"))
    assert second.metadata == Metadata(properties={"owner": "me"})
    assert second.rule_set is not None
    assert second.rule_set.domain_rules is not None
    assert second.rule_set.domain_rules[0].name == "check"


def test_defaults_and_overrides_frame_what_a_client_sends(world: RegistryWorld) -> None:
    world.registry.update_config(
        "orders",
        ConfigUpdate(
            default_metadata=Metadata(properties={"a": "default", "b": "default"}),
            override_metadata=Metadata(properties={"c": "override"}),
        ),
    )
    answer = world.register("orders", record("a"), properties={"b": "client", "c": "client"})
    assert answer.metadata == Metadata(properties={"a": "default", "b": "client", "c": "override"})
    assert world.register("orders", record("a"), properties={"b": "client"}).version == 1


def test_asking_for_the_next_version_states_it_in_the_metadata(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    second = world.register("orders", record("a", "b"), version=2)
    assert second.version == 2
    assert second.metadata == Metadata(properties={"confluent:version": "2"})


def test_a_schema_is_known_without_its_version_in_the_metadata(world: RegistryWorld) -> None:
    first = world.register("orders", record("a"), version=-1)
    assert world.register("orders", record("a")).id == first.id
    assert world.register("orders", record("a"), version=-1).id == first.id
    assert world.versions("orders") == [1]


def test_normalizing_finds_equal_schemas(world: RegistryWorld) -> None:
    one = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":"int","doc":"d"}]}'
    other = '{"namespace":"n","name":"R","fields":[{"doc":"d","type":"int","name":"f"}],"type":"record"}'
    first = world.registry.register("orders", schema_body(one), normalize=True)
    assert world.registry.register("orders", schema_body(other), normalize=True).id == first.id


def test_the_config_can_ask_for_normalizing(world: RegistryWorld) -> None:
    world.registry.update_config("json", ConfigUpdate(normalize=True, compatibility="NONE"))
    one, other = '{"type":"object","title":"T"}', '{"title":"T","type":"object"}'
    assert world.id_of("json", one, schemaType="JSON") == world.id_of("json", other, schemaType="JSON")
    assert world.id_of("as-given", one, schemaType="JSON") != world.id_of("as-given-too", other, schemaType="JSON")


def test_each_format_is_registered(world: RegistryWorld) -> None:
    proto = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  string f = 1;\n}\n'
    assert world.register("proto", proto, schemaType="PROTOBUF").schema_type == "PROTOBUF"
    assert world.register("json", '{"type":"object"}', schemaType="JSON").schema_type == "JSON"
    assert world.register("avro", '"string"', schemaType="AVRO").schema_ == '"string"'


def test_a_forced_registration_skips_compatibility(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    forced = world.registry.register("orders", schema_body(record(b="")), force=True)
    assert forced.version == 2


@pytest.mark.parametrize(
    ("text", "body", "code"),
    [
        (None, {}, 42201),
        ("", {}, 42201),
        ("  ", {}, 42201),
        ("{", {}, 42201),
        ('{"type":"nonsense"}', {}, 42201),
        ('"string"', {"schemaType": "XML"}, 42201),
        ('"string"\x00', {}, 42201),
        ('"string"', {"references": [{"name": "n", "subject": "nowhere", "version": 1}]}, 42201),
        ('"string"', {"references": [{"name": "n", "subject": "nowhere", "version": -2}]}, 42201),
        ('"string"', {"references": [{"name": "n", "subject": "nowhere", "version": 2**40}]}, 42201),
        ('"string"', {"version": 5}, 42201),
        ('"string"', {"version": 2**40}, 42201),
        ('"string"', {"id": 2**40}, 42201),
        ('"string"', {"id": 7}, 42205),
        ('"' + "x" * 2000 + '"', {}, 42209),
        ('"string"', {"ruleSet": {"domainRules": [{"name": "1x", "type": "CEL"}]}}, 42210),
        ('"string"', {"ruleSet": {"domainRules": [{"name": "x"}]}}, 42210),
        ('"string"', {"ruleSet": {"domainRules": [{"type": "CEL"}]}}, 42210),
        ('"string"', {"ruleSet": {"domainRules": [{"name": "x", "type": "CEL", "mode": "UPGRADE"}]}}, 42210),
        ('"string"', {"ruleSet": {"migrationRules": [{"name": "x", "type": "CEL", "mode": "READ"}]}}, 42210),
        ('"string"', {"ruleSet": {"domainRules": [{"name": "x", "type": "CEL"}] * 2}}, 42210),
    ],
)
def test_what_cannot_be_registered_is_refused(database: Any, text: str | None, body: dict[str, Any], code: int) -> None:
    world = RegistryWorld(database, {"schema.max.bytes": "1000"})
    with pytest.raises(RegistryError) as refused:
        world.register("orders", text, **body)
    assert refused.value.code == code
    assert world.subjects(deleted=True) == []


@pytest.mark.parametrize("subject", ["a\x01b", "__GLOBAL", "__EMPTY", ":.__GLOBAL:x", ":*:x", "x" * 2000, "a\ud800"])
def test_names_that_cannot_be_subjects_are_refused(world: RegistryWorld, subject: str) -> None:
    with pytest.raises(RegistryError) as refused:
        world.register(subject, '"string"')
    assert refused.value.code == 42208


def test_the_empty_subject_is_refused_if_so_set(database: Any) -> None:
    world = RegistryWorld(database)
    assert world.register("", '"string"').version == 1
    with pytest.raises(RegistryError) as refused:
        RegistryWorld(database, {"schema.reject.empty.subject": "true"}).register("", '"string"')
    assert refused.value.code == 42208


def test_an_incompatible_schema_is_refused_with_what_is_wrong(world_on_each: RegistryWorld) -> None:
    world_on_each.register("orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        world_on_each.register("orders", record("a", b=""))
    assert refused.value.code == 40901
    assert refused.value.message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "orders", details: ['
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'"
    )
    assert refused.value.message.endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")
    assert world_on_each.versions("orders") == [1]


@pytest.mark.parametrize(
    ("mode", "body", "message"),
    [
        ("READONLY", {}, "is in read-only mode"),
        ("READONLY_OVERRIDE", {}, "is in read-only mode"),
        ("IMPORT", {}, "is not in read-write mode"),
        ("READWRITE", {"id": 7}, "is not in import mode"),
    ],
)
def test_modes_forbid_writes(world: RegistryWorld, mode: str, body: dict[str, Any], message: str) -> None:
    world.registry.set_mode(None, ModeBody(mode=mode), force=True)
    with pytest.raises(RegistryError, match=message) as refused:
        world.register("orders", '"string"', **body)
    assert refused.value.code == 42205


def test_what_is_registered_is_answered_in_any_mode(world: RegistryWorld) -> None:
    world.register("orders", '"string"')
    world.registry.set_mode(None, ModeBody(mode="READONLY"), force=False)
    assert world.id_of("orders", '"string"') == 1


def test_new_schemas_are_checked_more_strictly_by_default(world: RegistryWorld) -> None:
    wrong_default = '{"type":"record","name":"R","fields":[{"name":"f","type":"int","default":"text"}]}'
    with pytest.raises(RegistryError) as refused:
        world.register("orders", wrong_default)
    assert refused.value.code == 42201
    world.registry.update_config("orders", ConfigUpdate(validate_new_schemas=False))
    assert world.register("orders", wrong_default).version == 1
