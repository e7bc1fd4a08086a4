"""What a caller may do, by rules and by a file."""

import pytest

from core_broker.protocol.principals import Principal
from core_broker.web_access.callers import Caller
from core_broker.web_access.rules import Operation, Permission, ResourceType, Rule
from schema_registry.errors import RegistryError, schema_not_found
from schema_registry.registry.access import EVERYTHING, Access, resource_of
from schema_registry.registry.subject_names import parse
from tests.support.registry_access import access_rules

ALICE = Caller(Principal("User", "alice"), "10.0.0.1")


def rule(resource: str, *, permission: Permission = Permission.ALLOW) -> Rule:
    return Rule(
        principal="User:alice",
        resource=resource,
        resource_type=ResourceType.SUBJECT,
        operation=Operation.READ,
        permission=permission,
    )


def test_what_neither_rules_nor_the_file_allow_is_refused_and_told() -> None:
    denied: list[str | None] = []
    access = Access(access_rules(on_denial=lambda denial: denied.append(denial.name)), ALICE, api="GET /x")
    with pytest.raises(RegistryError, match="User:alice may not READ SUBJECT a") as refusal:
        access.require(Operation.READ, parse("a"))
    assert (refusal.value.status, refusal.value.code) == (403, 40301)
    assert denied == ["a"]


def test_the_file_allows_beside_the_rules_unless_one_denies() -> None:
    rules = access_rules(rule("b", permission=Permission.DENY), is_permitted_by_file=lambda user, *_: user == "alice")
    access = Access(rules, ALICE)
    assert access.allows(Operation.READ, parse("a"))
    assert not access.allows(Operation.READ, parse("b"))


def test_a_user_of_the_file_is_of_the_type_user() -> None:
    rules = access_rules(is_permitted_by_file=lambda *_: True)
    assert not Access(rules, Caller(Principal("Group", "alice"), "")).allows(Operation.READ, parse("a"))


def test_one_readable_subject_is_enough_and_is_remembered() -> None:
    shown: list[str] = []
    access = Access(access_rules(rule("b"), rule(":.x:c")), ALICE, shown_through=shown)
    access.require_one(map(parse, ("a", "b", ":.x:c")), schema_not_found)
    assert shown == ["b", ":.x:c"]
    with pytest.raises(RegistryError, match="Schema not found"):
        access.require_one([parse("a")], schema_not_found)


def test_only_some_of_many_subjects_are_remembered() -> None:
    shown: list[str] = []
    access = Access(access_rules(rule("*")), ALICE, shown_through=shown)
    access.require_one((parse(f"s{number}") for number in range(1000)), schema_not_found)
    assert len(shown) == 32


def test_without_rules_everything_is_allowed() -> None:
    assert EVERYTHING.allows(Operation.DELETE, parse("a"))
    EVERYTHING.require_whole(Operation.ALTER)


@pytest.mark.parametrize("text", ["", ":.:", ":.__GLOBAL:"])
def test_what_holds_for_all_subjects_belongs_to_the_registry(text: str) -> None:
    assert resource_of(parse(text)) == (ResourceType.REGISTRY, "registry")


@pytest.mark.parametrize("text", ["a", ":.x:", ":.x:a"])
def test_subjects_and_contexts_have_their_qualified_names(text: str) -> None:
    assert resource_of(parse(text)) == (ResourceType.SUBJECT, text)
