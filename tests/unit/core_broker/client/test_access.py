from collections.abc import Iterator
from itertools import product

import pytest
from confluent_kafka.admin import AclBinding, AclBindingFilter

from core_broker.client.access import Access, from_library_binding, to_library_binding, to_library_filter
from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed, Rejected, Unreachable
from core_broker.client.settings import ClientSettings
from tests.support.authorizing_cluster import AuthorizingCluster

SECURITY_DISABLED = 54
# Kafka's numbers on the wire, from its protocol guide.
WIRE_RESOURCE_TYPES = {"ANY": 1, "TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5}
WIRE_PATTERN_TYPES = {"ANY": 1, "MATCH": 2, "LITERAL": 3, "PREFIXED": 4}
WIRE_OPERATIONS = {
    "ANY": 1,
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
WIRE_PERMISSIONS = {"ANY": 1, "DENY": 2, "ALLOW": 3}

NOT_THERE = (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS, Operation.TWO_PHASE_COMMIT)
"""What the library does not know."""
RULES = [
    Acl(
        resource_type=resource_type,
        resource_name="name",
        pattern_type=pattern_type,
        principal="User:alice",
        host="*",
        operation=operation,
        permission=permission,
    )
    for resource_type, pattern_type, operation, permission in product(
        (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID),
        (PatternType.LITERAL, PatternType.PREFIXED),
        (operation for operation in Operation if operation not in (Operation.ANY, Operation.UNKNOWN, *NOT_THERE)),
        (Permission.ALLOW, Permission.DENY),
    )
]
RULE = RULES[0]


def numbers(binding: AclBinding) -> tuple[int, int, int, int]:
    return (
        binding.restype_int,
        binding.resource_pattern_type_int,
        binding.operation_int,
        binding.permission_type_int,
    )


def test_every_rule_comes_back_from_the_library_as_it_went_in() -> None:
    assert [from_library_binding(to_library_binding(rule)) for rule in RULES] == RULES


def test_rules_have_the_numbers_of_the_protocol() -> None:
    for rule in RULES:
        assert numbers(to_library_binding(rule)) == (
            WIRE_RESOURCE_TYPES[rule.resource_type],
            WIRE_PATTERN_TYPES[rule.pattern_type],
            WIRE_OPERATIONS[rule.operation],
            WIRE_PERMISSIONS[rule.permission],
        )


@pytest.mark.parametrize("resource_type", WIRE_RESOURCE_TYPES)
@pytest.mark.parametrize("pattern_type", WIRE_PATTERN_TYPES)
def test_filters_have_the_numbers_of_the_protocol(resource_type: str, pattern_type: str) -> None:
    for operation, permission in product(WIRE_OPERATIONS, WIRE_PERMISSIONS):
        wanted = AclFilter(
            resource_type=ResourceType(resource_type),
            pattern_type=PatternType(pattern_type),
            operation=Operation(operation),
            permission=Permission(permission),
        )
        assert numbers(to_library_filter(wanted)) == (
            WIRE_RESOURCE_TYPES[resource_type],
            WIRE_PATTERN_TYPES[pattern_type],
            WIRE_OPERATIONS[operation],
            WIRE_PERMISSIONS[permission],
        )


def test_names_of_a_filter_are_kept_and_absent_ones_match_all() -> None:
    named = to_library_filter(AclFilter(resource_name="orders", principal="User:bob", host="1.2.3.4"))
    assert (named.name, named.principal, named.host) == ("orders", "User:bob", "1.2.3.4")
    unnamed = to_library_filter(AclFilter())
    assert isinstance(unnamed, AclBindingFilter)
    names: list[str | None] = [unnamed.name, unnamed.principal, unnamed.host]
    assert names == [None, None, None]


def test_delegation_tokens_are_refused() -> None:
    with pytest.raises(Rejected, match="delegation tokens"):
        to_library_filter(AclFilter(resource_type=ResourceType.DELEGATION_TOKEN))
    for operation in NOT_THERE:
        with pytest.raises(Rejected, match=operation):
            to_library_filter(AclFilter(operation=operation))


@pytest.mark.parametrize("wanted", [AclFilter(resource_name="a\0b"), AclFilter(principal="a\0b"), AclFilter(host="\0")])
def test_names_are_not_cut_at_nul(wanted: AclFilter) -> None:
    with pytest.raises(Rejected, match="NUL"):
        to_library_filter(wanted)


@pytest.mark.parametrize("name", ["a" * 32_768, "é" * 16_384])
def test_names_that_the_protocol_cannot_carry_are_refused(name: str) -> None:
    to_library_filter(AclFilter(resource_name=name[:-1]))
    with pytest.raises(Rejected, match="longer than 32767 bytes"):
        to_library_filter(AclFilter(resource_name=name))


@pytest.mark.processes
def test_cluster_without_an_authorizer_says_so_when_asked(cluster: ClientSettings) -> None:
    with pytest.raises(Rejected) as refused:
        Admin(cluster).access.acls(AclFilter())
    assert refused.value.code == SECURITY_DISABLED


@pytest.mark.processes
def test_cluster_without_an_authorizer_takes_no_rules(cluster: ClientSettings) -> None:
    with pytest.raises(Rejected) as refused:
        Admin(cluster).access.create([RULE, RULE, *RULES[1:3]])
    assert refused.value.code == SECURITY_DISABLED


@pytest.mark.processes
def test_cluster_without_an_authorizer_removes_no_rules(cluster: ClientSettings) -> None:
    with pytest.raises(Rejected) as refused:
        Admin(cluster).access.delete(AclFilter())
    assert refused.value.code == SECURITY_DISABLED


@pytest.mark.processes
def test_words_for_filters_are_refused_in_rules(cluster: ClientSettings) -> None:
    anything = Acl(
        resource_type=ResourceType.ANY,
        resource_name="a",
        pattern_type=PatternType.LITERAL,
        principal="User:a",
        host="*",
        operation=Operation.READ,
        permission=Permission.ALLOW,
    )
    with pytest.raises(Rejected, match="ANY"):
        Admin(cluster).access.create([anything])


def test_no_rules_need_no_request(nowhere: ClientSettings) -> None:
    Admin(nowhere).access.create([])


def test_silent_cluster_is_unreachable_for_acls(nowhere: ClientSettings) -> None:
    with pytest.raises(Unreachable):
        Admin(nowhere).access.acls(AclFilter())


# --- a cluster with an authorizer ---


@pytest.fixture
def authorizing() -> Iterator[AuthorizingCluster]:
    with AuthorizingCluster() as cluster:
        yield cluster


def access(cluster: AuthorizingCluster) -> Access:
    return Admin(ClientSettings(bootstrap_servers=cluster.bootstrap, properties={"log_level": "0"})).access


def test_rules_of_every_kind_are_kept_and_found_again_in_order(authorizing: AuthorizingCluster) -> None:
    asked = access(authorizing)
    asked.create(list(reversed(RULES)))
    found = asked.acls(AclFilter())
    assert sorted(found, key=RULES.index) == RULES
    assert [rule.resource_type for rule in found] == [rule.resource_type for rule in RULES]


def test_only_the_rules_that_a_filter_means_are_removed(authorizing: AuthorizingCluster) -> None:
    asked = access(authorizing)
    asked.create(RULES)
    gone = asked.delete(AclFilter(resource_type=ResourceType.CLUSTER, operation=Operation.ALTER))
    assert {(rule.resource_type, rule.operation) for rule in gone} == {("CLUSTER", "ALTER")}
    left = asked.acls(AclFilter())
    assert set(left) == set(RULES) - set(gone)
    assert len(gone) == 4


def test_cluster_without_rules_has_none(authorizing: AuthorizingCluster) -> None:
    assert access(authorizing).acls(AclFilter()) == []


def test_looking_for_rules_removes_none(authorizing: AuthorizingCluster) -> None:
    asked = access(authorizing)
    asked.create(RULES)
    assert asked.acls(AclFilter(principal="User:nobody")) == []
    assert len(asked.acls(AclFilter())) == len(RULES)


def test_user_who_may_only_look_finds_no_rules_where_there_are_none(authorizing: AuthorizingCluster) -> None:
    authorizing.may_alter = False
    assert access(authorizing).acls(AclFilter()) == []


def test_user_who_may_not_look_is_told_so(authorizing: AuthorizingCluster) -> None:
    authorizing.may_alter = authorizing.may_describe = False
    with pytest.raises(NotAllowed):
        access(authorizing).acls(AclFilter())


def test_user_who_may_not_change_rules_is_told_so(authorizing: AuthorizingCluster) -> None:
    authorizing.may_alter = False
    with pytest.raises(NotAllowed):
        access(authorizing).create([RULE])
    with pytest.raises(NotAllowed):
        access(authorizing).delete(AclFilter())
