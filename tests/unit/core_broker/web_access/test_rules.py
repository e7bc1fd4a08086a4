"""Access rules: decisions as Kafka's authorizer takes them, filters, and following a store."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from core_broker.protocol.principals import Principal
from core_broker.security.authorizer import Denial
from core_broker.web_access.callers import Caller
from core_broker.web_access.errors import Forbidden
from core_broker.web_access.rules import Operation, PatternType, Permission, ResourceType, Rule, RuleFilter, Rules
from core_broker.web_access.settings import RuleSettings
from tests.support.rule_list import RuleList

SUBJECT, REGISTRY = ResourceType.SUBJECT, ResourceType.REGISTRY
ALICE = Caller(Principal("User", "alice"), "10.0.0.1")
ROOT = Caller(Principal("User", "root"), "10.0.0.1")


def rule(
    operation: Operation = Operation.READ,
    resource: str = "orders",
    *,
    principal: str = "User:alice",
    pattern_type: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
    resource_type: ResourceType = SUBJECT,
) -> Rule:
    return Rule(
        principal=principal,
        resource=resource,
        resource_type=resource_type,
        pattern_type=pattern_type,
        host=host,
        operation=operation,
        permission=permission,
    )


def rules(*given: Rule, allows_everyone: bool = False) -> Rules:
    settings = RuleSettings(
        authentication_method=("BASIC",),
        super_users=("User:root",),
        allow_everyone_if_no_acl_found=allows_everyone,
    )
    found = Rules(settings)
    found.replace(given)
    return found


@pytest.mark.parametrize("operation", Operation)
def test_without_a_rule_only_super_users_may_do_anything(operation: Operation) -> None:
    found = rules()
    assert not found.allows(ALICE, operation, SUBJECT, "orders")
    assert found.allows(ROOT, operation, SUBJECT, "orders")


def test_without_a_rule_everybody_may_where_the_settings_say_so() -> None:
    found = rules(rule(), allows_everyone=True)
    assert found.allows(ALICE, Operation.WRITE, SUBJECT, "others")
    assert not found.allows(ALICE, Operation.WRITE, SUBJECT, "orders")


@pytest.mark.parametrize("given", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL])
def test_describe_comes_with_other_operations(given: Operation) -> None:
    found = rules(rule(given))
    assert found.allows(ALICE, Operation.DESCRIBE, SUBJECT, "orders")
    assert found.allows(ALICE, Operation.CREATE, SUBJECT, "orders") is (given is Operation.ALL)


def test_a_denial_wins() -> None:
    every = rule(Operation.WRITE, "*", principal="User:*")
    denied = rule(Operation.ALL, "ord", pattern_type=PatternType.PREFIXED, permission=Permission.DENY)
    found = rules(every, denied)
    assert not found.allows(ALICE, Operation.WRITE, SUBJECT, "orders")
    assert found.allows(ALICE, Operation.WRITE, SUBJECT, "or")


def test_contexts_are_prefixes() -> None:
    found = rules(rule(Operation.WRITE, ":.team:", pattern_type=PatternType.PREFIXED))
    assert found.allows(ALICE, Operation.WRITE, SUBJECT, ":.team:orders")
    assert not found.allows(ALICE, Operation.WRITE, SUBJECT, "orders")


def test_types_of_resources_and_hosts_are_kept_apart() -> None:
    found = rules(rule(Operation.ALL, "*", host="::ffff:10.0.0.1"))
    assert found.allows(ALICE, Operation.READ, SUBJECT, "orders")
    assert not found.allows(ALICE, Operation.READ, REGISTRY, "registry")
    assert not found.allows(Caller(ALICE.principal, "10.0.0.2"), Operation.READ, SUBJECT, "orders")


@pytest.mark.parametrize(
    "settings", [RuleSettings(), RuleSettings(authentication_method=("BASIC",), authorization_enable=False)]
)
def test_rules_are_not_enforced_where_nobody_logs_in_or_they_are_off(settings: RuleSettings) -> None:
    found = Rules(settings)
    assert not found.is_enforced
    found.require(Caller(), Operation.ALTER, REGISTRY, "registry")
    assert found.allows_on_any(Caller(), Operation.CREATE, SUBJECT)


def test_a_refusal_names_what_was_asked_for_and_is_noted() -> None:
    noted: list[Denial] = []
    settings = RuleSettings(authentication_method=("BASIC",))
    found = Rules(settings, on_denial=noted.append)
    found.replace([rule(Operation.WRITE, permission=Permission.DENY)])
    with pytest.raises(Forbidden, match="User:alice may not WRITE SUBJECT orders") as refused:
        found.require(ALICE, Operation.WRITE, SUBJECT, "orders", api="RegisterSchema")
    assert refused.value.status == 403
    (denial,) = noted
    assert (denial.kind.name, denial.name, denial.api) == ("SUBJECT", "orders", "RegisterSchema")
    assert str(denial.decision.rule) == "DENY User:alice from *: WRITE SUBJECT:LITERAL:orders"
    assert not found.allows(ALICE, Operation.WRITE, SUBJECT, "orders")
    assert len(noted) == 1


def test_a_right_on_any_resource_is_enough_for_some_questions() -> None:
    found = rules(rule(Operation.CREATE, "team-", pattern_type=PatternType.PREFIXED))
    assert found.allows_on_any(ALICE, Operation.CREATE, SUBJECT)
    assert not found.allows_on_any(ALICE, Operation.DELETE, SUBJECT)


def test_the_json_of_a_rule_is_that_of_the_api() -> None:
    assert msgspec.json.decode(msgspec.json.encode(rule())) == {
        "principal": "User:alice",
        "resource": "orders",
        "resource_type": "SUBJECT",
        "pattern_type": "LITERAL",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }


@pytest.mark.parametrize(
    "wanted,is_selected",
    [
        (RuleFilter(), True),
        (RuleFilter(principal="User:alice", resource="orders"), True),
        (RuleFilter(principal="User:bob"), False),
        (RuleFilter(operation=Operation.ALL), False),
        (RuleFilter(host="10.0.0.1"), False),
    ],
)
def test_a_filter_selects_what_equals_all_of_it(wanted: RuleFilter, is_selected: bool) -> None:
    assert wanted.matches(rule()) is is_selected


async def test_changes_of_the_store_are_followed() -> None:
    store, found = RuleList(), rules()
    store.add([rule(Operation.READ)])
    async with asyncio.timeout(30), found.following(store, seconds=0.001):
        assert found.allows(ALICE, Operation.READ, SUBJECT, "orders")
        store.remove([rule(Operation.READ)])
        store.add([rule(Operation.CREATE)])
        await until_allowed(found, Operation.CREATE)
        assert not found.allows(ALICE, Operation.READ, SUBJECT, "orders")


async def test_a_store_that_fails_leaves_the_rules_as_they_are() -> None:
    store, found = RuleList([rule(Operation.READ)]), rules()
    async with asyncio.timeout(30), found.following(store, seconds=0.001):
        store.is_broken = True
        await store.has_failed()
        assert found.allows(ALICE, Operation.READ, SUBJECT, "orders")
        store.is_broken = False
        store.add([rule(Operation.CREATE)])
        await until_allowed(found, Operation.CREATE)


async def test_a_store_that_cannot_be_read_at_the_start_is_an_error() -> None:
    store = RuleList()
    store.is_broken = True
    with pytest.raises(RuntimeError):
        async with rules().following(store):
            pass


async def until_allowed(found: Rules, operation: Operation) -> None:
    while not found.allows(ALICE, operation, SUBJECT, "orders"):  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.001)


def test_rules_that_come_twice_count_once() -> None:
    given: Sequence[Rule] = [rule(), rule()]
    assert rules(*given).allows(ALICE, Operation.READ, SUBJECT, "orders")
