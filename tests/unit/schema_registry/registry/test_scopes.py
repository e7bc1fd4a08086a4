"""Configs and modes: set, inherited, cleared."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import Config, ConfigUpdate, Metadata, ModeBody, RuleSet
from tests.support.registry_world import RegistryWorld, record


def level(world: RegistryWorld, subject: str | None, *, inherited: bool = True) -> str | None:
    return world.registry.config(subject, default_to_global=inherited).compatibility_level


def set_level(world: RegistryWorld, subject: str | None, text: str | None) -> None:
    world.registry.update_config(subject, ConfigUpdate(compatibility=text))


def mode(world: RegistryWorld, subject: str | None, *, inherited: bool = True) -> str | None:
    return world.registry.mode(subject, default_to_global=inherited).mode


def set_mode(world: RegistryWorld, subject: str | None, text: str | None, *, force: bool = False) -> None:
    world.registry.set_mode(subject, ModeBody(mode=text), force=force)


def test_the_setting_holds_where_nothing_is_set(database: Any) -> None:
    world = RegistryWorld(database, {"schema.compatibility.level": "full"})
    assert world.registry.config(None, default_to_global=False) == Config(compatibility_level="FULL")
    assert level(world, "orders") == "FULL"


def test_a_subject_inherits_from_its_context_and_that_from_the_registry(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    set_level(world, ":.__GLOBAL:", "NONE")
    assert [level(world, subject) for subject in (None, "orders", ":.x:orders", ":.x:")] == ["NONE"] * 4
    set_level(world, None, "FORWARD")
    assert [level(world, subject) for subject in (None, "orders", ":.x:orders")] == ["FORWARD", "FORWARD", "NONE"]
    set_level(world, ":.x:", "FULL")
    assert [level(world, subject) for subject in ("orders", ":.x:orders")] == ["FORWARD", "FULL"]
    set_level(world, ":.x:orders", "BACKWARD_TRANSITIVE")
    assert level(world, ":.x:orders") == "BACKWARD_TRANSITIVE"
    assert level(world, ":.x:items") == "FULL"


def test_configs_are_inherited_key_by_key(world: RegistryWorld) -> None:
    world.registry.update_config(None, ConfigUpdate(normalize=True, compatibility_group="major"))
    world.registry.update_config("orders", ConfigUpdate(compatibility="full"))
    assert world.registry.config("orders", default_to_global=True) == Config(
        compatibility_level="FULL", normalize=True, compatibility_group="major"
    )
    assert world.registry.config("orders", default_to_global=False) == Config(compatibility_level="FULL")


def test_a_null_clears_a_key_and_an_absent_one_is_left_alone(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    world.registry.update_config("orders", ConfigUpdate(compatibility="FULL", normalize=True))
    world.registry.update_config("orders", ConfigUpdate.model_validate({"normalize": None}))
    assert world.registry.config("orders", default_to_global=False) == Config(compatibility_level="FULL")
    world.registry.update_config("orders", ConfigUpdate.model_validate({"compatibility": None}))
    assert level(world, "orders") == "BACKWARD"


def test_an_update_is_answered_with_all_that_is_set_then(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    world.registry.update_config("orders", ConfigUpdate(compatibility_group="major", validate_fields=True))
    result = world.registry.update_config("orders", ConfigUpdate.model_validate({"compatibilityGroup": None}))
    assert result.to_json() == b'{"validateFields":true}'


def test_all_keys_are_kept(world: RegistryWorld) -> None:
    rules = {"domainRules": [{"name": "r", "type": "CEL", "kind": "CONDITION", "mode": "WRITE"}]}
    update = {
        "compatibility": "NONE",
        "alias": "other",
        "aliasForDeks": "keys",
        "normalize": False,
        "validateFields": True,
        "validateNewSchemas": True,
        "validateRules": False,
        "compatibilityPolicy": "LENIENT",
        "compatibilityGroup": "g",
        "defaultMetadata": {"properties": {"a": "b"}},
        "overrideMetadata": {"tags": {"x": ["y"]}},
        "defaultRuleSet": rules,
        "overrideRuleSet": rules,
    }
    echo = world.registry.update_config("orders", ConfigUpdate.model_validate(update))
    assert echo.model_dump(by_alias=True, exclude_unset=True)["alias"] == "other"
    stored = world.registry.config("orders", default_to_global=False)
    assert stored == Config.model_validate(
        {**{key: value for key, value in update.items() if key != "compatibility"}, "compatibilityLevel": "NONE"}
    )


@pytest.mark.parametrize(
    ("subject", "update", "code"),
    [
        (None, {"compatibility": "sideways"}, 42203),
        (None, {"compatibility": ""}, 42203),
        (None, {"compatibilityPolicy": "kind"}, 42203),
        ("a\nb", {"compatibility": "NONE"}, 42208),
        ("__GLOBAL", {"compatibility": "NONE"}, 42208),
        (None, {"defaultRuleSet": {"domainRules": [{"name": ""}]}}, 42210),
        (None, {"overrideRuleSet": {"domainRules": [{"type": "CEL"}]}}, 42210),
        (None, {"alias": "a\x00b"}, 42201),
    ],
)
def test_configs_that_are_refused(world: RegistryWorld, subject: str | None, update: dict[str, Any], code: int) -> None:
    with pytest.raises(RegistryError) as refused:
        world.registry.update_config(subject, ConfigUpdate.model_validate(update))
    assert refused.value.code == code


def test_deleting_a_config_returns_what_was_set(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    set_level(world, "orders", "FULL")
    assert world.registry.delete_config("orders") == Config(compatibility_level="FULL")
    for ask, code in ((world.registry.delete_config, 40401), (lambda s: level(world, s, inherited=False), 40408)):
        with pytest.raises(RegistryError) as refused:
            ask("orders")
        assert refused.value.code == code
    set_level(world, None, "NONE")
    assert world.registry.delete_config(None) == Config(compatibility_level="NONE")
    assert level(world, None) == "BACKWARD"


def test_configs_do_not_change_in_a_read_only_registry(world: RegistryWorld) -> None:
    set_mode(world, None, "READONLY")
    with pytest.raises(RegistryError) as refused:
        set_level(world, "orders", "FULL")
    assert refused.value.code == 42205


def test_levels_may_be_written_small(world: RegistryWorld) -> None:
    set_level(world, None, "forward_transitive")
    assert level(world, None) == "FORWARD_TRANSITIVE"


def test_modes_are_inherited(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    assert (mode(world, None), mode(world, "orders")) == ("READWRITE", "READWRITE")
    set_mode(world, None, "READONLY")
    assert (mode(world, "orders"), mode(world, ":.x:orders")) == ("READONLY", "READWRITE")
    set_mode(world, "orders", "READWRITE")
    assert mode(world, "orders") == "READWRITE"
    assert mode(world, "orders", inherited=False) == "READWRITE"
    assert world.registry.delete_mode("orders", recursive=False).mode == "READWRITE"
    assert mode(world, "orders") == "READONLY"


@pytest.mark.parametrize("text", ["READONLY", "READONLY_OVERRIDE"])
def test_the_nearest_mode_holds(world_on_each: RegistryWorld, text: str) -> None:
    world = world_on_each
    set_mode(world, ":.__GLOBAL:", text)
    assert [mode(world, subject) for subject in ("orders", ":.x:orders", ":.x:", None)] == [text] * 4
    set_mode(world, ":.x:", "READWRITE")
    set_mode(world, "items", "READWRITE")
    assert [mode(world, subject) for subject in ("orders", "items", ":.x:orders")] == [text, "READWRITE", "READWRITE"]
    assert world.register(":.x:orders", record("a")).version == 1
    assert world.register("items", record("a")).version == 1
    set_mode(world, None, text)
    set_mode(world, ":.__GLOBAL:", "READWRITE")
    assert [mode(world, subject) for subject in ("orders", "items", ":.y:orders")] == [text, "READWRITE", "READWRITE"]


def test_an_override_is_not_returned_as_the_mode_of_subjects_without_one(world: RegistryWorld) -> None:
    set_mode(world, None, "READONLY_OVERRIDE")
    assert mode(world, None, inherited=False) == "READONLY_OVERRIDE"
    with pytest.raises(RegistryError) as refused:
        mode(world, "orders", inherited=False)
    assert refused.value.code == 40409


def test_a_mode_can_be_cleared_by_none(world: RegistryWorld) -> None:
    set_mode(world, None, "READONLY")
    set_mode(world, None, None)
    assert mode(world, None, inherited=False) == "READWRITE"


def test_deleting_a_contexts_mode_leaves_its_subjects_alone_unless_asked(world: RegistryWorld) -> None:
    for subject in (":.x:", ":.x:a", ":.y:a"):
        set_mode(world, subject, "READONLY")
    assert world.registry.delete_mode(":.x:", recursive=False).mode == "READONLY"
    assert mode(world, ":.x:a", inherited=False) == "READONLY"
    assert world.registry.delete_mode(":.x:", recursive=True).mode is None
    with pytest.raises(RegistryError) as refused:
        mode(world, ":.x:a", inherited=False)
    assert refused.value.code == 40409
    assert mode(world, ":.y:a", inherited=False) == "READONLY"


def test_deleting_the_global_mode(world: RegistryWorld) -> None:
    set_mode(world, None, "READONLY")
    set_mode(world, "orders", "READONLY")
    assert world.registry.delete_mode(None, recursive=True).mode == "READONLY"
    assert (mode(world, None), mode(world, "orders")) == ("READWRITE", "READWRITE")
    with pytest.raises(RegistryError) as refused:
        world.registry.delete_mode("orders", recursive=False)
    assert refused.value.code == 40401


@pytest.mark.parametrize(
    ("subject", "text", "code"),
    [
        (None, "WRITEONLY", 42204),
        ("orders", "", 42204),
        ("orders", "FORWARD", 42205),
        ("orders", "READONLY_OVERRIDE", 42205),
        ("a\tb", "READONLY", 42208),
    ],
)
def test_modes_that_are_refused(world: RegistryWorld, subject: str | None, text: str, code: int) -> None:
    with pytest.raises(RegistryError) as refused:
        set_mode(world, subject, text)
    assert refused.value.code == code


def test_modes_are_fixed_if_so_set(database: Any) -> None:
    world = RegistryWorld(database, {"mode.mutability": "false"})
    for change in (
        lambda: set_mode(world, None, "READONLY"),
        lambda: world.registry.delete_mode(None, recursive=False),
    ):
        with pytest.raises(RegistryError, match="Mode changes are not allowed") as refused:
            change()
        assert refused.value.code == 42205


def test_a_read_only_context_leaves_others_writable(world: RegistryWorld) -> None:
    set_mode(world, ":.x:", "READONLY")
    with pytest.raises(RegistryError):
        world.register(":.x:orders", record("a"))
    assert world.register("orders", record("a")).version == 1


def test_rules_and_metadata_of_configs_are_stored_in_one_form(world: RegistryWorld) -> None:
    world.registry.update_config(
        None,
        ConfigUpdate(
            default_metadata=Metadata(properties={"b": "2", "a": "1"}, sensitive=["y", "x", "y"]),
            default_rule_set=RuleSet.model_validate({"domainRules": [{"name": "r", "type": "CEL"}]}),
        ),
    )
    stored = world.registry.config(None, default_to_global=False)
    assert stored.default_metadata is not None
    assert stored.default_metadata.sensitive == ["x", "y"]
    assert stored.default_rule_set is not None
    assert stored.default_rule_set.domain_rules is not None
    assert stored.default_rule_set.domain_rules[0].mode == "WRITEREAD"
