"""Which versions a schema must get along with."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import Compatibility, ConfigUpdate
from tests.support.registry_world import RegistryWorld, record, schema_body


def check(world: RegistryWorld, text: str | None, version: str | None = None, **body: Any) -> Compatibility:
    return world.registry.check("orders", version, schema_body(text, **body), normalize=False, verbose=True)


def is_compatible(world: RegistryWorld, text: str, version: str | None = None, **body: Any) -> bool:
    return check(world, text, version, **body).is_compatible


@pytest.fixture
def two_versions(world: RegistryWorld) -> RegistryWorld:
    """`orders` had a required field at first, which may be left out since."""
    world.register("orders", record("a", b=""))
    world.register("orders", record("a", "b"))
    return world


def test_a_level_that_is_not_transitive_looks_at_the_newest_only(world: RegistryWorld) -> None:
    world.register("orders", record(a="", b=""))
    world.register("orders", record(a=""))
    assert is_compatible(world, record(a="", c="")) is False
    world.registry.update_config("orders", ConfigUpdate(compatibility="FORWARD"))
    assert is_compatible(world, record(a="", c="")) is True
    world.registry.update_config("orders", ConfigUpdate(compatibility="FORWARD_TRANSITIVE"))
    assert is_compatible(world, record(a="", c="")) is False


def test_a_check_against_one_version_asks_that_one(world: RegistryWorld) -> None:
    world.register("orders", record(a="", b=""))
    world.register("orders", record(a=""))
    assert is_compatible(world, record(a="", b=""), "1") is True
    assert is_compatible(world, record(a="", b=""), "2") is False
    assert is_compatible(world, record(a="", b=""), "latest") is False


def test_deleted_versions_do_not_count(world: RegistryWorld) -> None:
    world.register("orders", record(a=""))
    world.registry.delete_subject("orders", permanent=False)
    assert is_compatible(world, '"int"') is True
    assert world.register("orders", '"int"').version == 2


def test_everything_may_follow_nothing(world: RegistryWorld) -> None:
    assert is_compatible(world, '"int"') is True
    assert is_compatible(world, '"int"', "latest") is True
    with pytest.raises(RegistryError) as refused:
        is_compatible(world, '"int"', "1")
    assert refused.value.code == 40402


def test_messages_are_returned_on_request(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    result = check(world, '"int"')
    assert result.messages is not None
    assert result.messages[-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
    assert "{oldSchemaVersion: 1}" in result.messages
    quiet = world.registry.check("orders", None, schema_body('"int"'), normalize=False, verbose=False)
    assert quiet == Compatibility(is_compatible=False)


def test_an_invalid_schema_is_incompatible_or_refused(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    result = check(world, "{")
    assert result.is_compatible is False
    assert result.messages is not None
    assert result.messages[0].startswith("Invalid schema of type AVRO, details: ")
    for text in ("{", None):
        with pytest.raises(RegistryError) as refused:
            world.registry.check("orders", None, schema_body(text), normalize=False, verbose=False)
        assert refused.value.code == 42201


def test_another_format_is_incompatible(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    result = check(world, '{"type":"object"}', schemaType="JSON")
    assert result.messages is not None
    assert result.messages[0] == "Incompatible because of different schema type"


def test_only_versions_of_the_same_group_are_compared(world: RegistryWorld) -> None:
    world.registry.update_config("orders", ConfigUpdate(compatibility_group="major"))
    world.register("orders", record("a"), properties={"major": "1"})
    world.register("orders", record(b=""), properties={"major": "2"})
    assert is_compatible(world, record("a", "c"), properties={"major": "1"}) is True
    assert is_compatible(world, record("a", d=""), properties={"major": "1"}) is False
    assert is_compatible(world, record(d=""), properties={"major": "3"}) is True
    assert world.register("orders", record("a", "c"), properties={"major": "1"}).version == 3


@pytest.mark.parametrize(
    ("text", "schema_type"),
    [
        (record("old"), "AVRO"),
        ('{"type":"object","properties":{"old":{"type":"string"}}}', "JSON"),
        ('syntax = "proto3";\nmessage M { string old = 1; }\nmessage N { }', "PROTOBUF"),
    ],
)
def test_reserved_fields_cannot_be_used(world: RegistryWorld, text: str, schema_type: str) -> None:
    world.registry.update_config("orders", ConfigUpdate(validate_fields=True, compatibility="NONE"))
    with pytest.raises(RegistryError, match="conflicts with the reserved field old") as refused:
        world.register("orders", text, schemaType=schema_type, properties={"confluent:reserved": "older, old"})
    assert refused.value.code == 40901
    assert refused.value.message.endswith("{validateFields: 'true', compatibility: 'NONE'}]")


def test_reserved_fields_stay_reserved(world: RegistryWorld) -> None:
    world.registry.update_config("orders", ConfigUpdate(validate_fields=True))
    world.register("orders", record("a"), properties={"confluent:reserved": "old"})
    with pytest.raises(RegistryError, match="reserved field old removed from its metadata") as refused:
        world.register("orders", record("a", "b"), properties={"confluent:reserved": ""})
    assert refused.value.code == 40901
    assert world.register("orders", record("a", "b")).version == 2


def test_a_lenient_policy_allows_what_a_strict_one_refuses(world: RegistryWorld) -> None:
    world.register("orders", '{"type":"object","properties":{"a":{"type":"string"}}}', schemaType="JSON")
    wider = '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}'
    assert is_compatible(world, wider, schemaType="JSON") is False
    world.registry.update_config("orders", ConfigUpdate(compatibility_policy="lenient"))
    assert is_compatible(world, wider, schemaType="JSON") is True


def test_transitive_levels_name_the_version_that_is_in_the_way(two_versions: RegistryWorld) -> None:
    two_versions.registry.update_config("orders", ConfigUpdate(compatibility="FORWARD_TRANSITIVE"))
    result = check(two_versions, record("a"))
    assert result.messages is not None
    assert "{oldSchemaVersion: 1}" in result.messages
