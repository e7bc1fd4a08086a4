from core_broker.client.acls import Acl, Operation, PatternType, Permission, ResourceType
from core_broker.security.judgement import Judge

ORDERS = ("127.0.0.1", Operation.WRITE, ResourceType.TOPIC, "orders")


def rule(permission: Permission, name: str, pattern: PatternType = PatternType.LITERAL) -> Acl:
    return Acl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=Operation.WRITE,
        permission=permission,
    )


def test_the_rule_that_decides_is_named() -> None:
    allowing, denying = rule(Permission.ALLOW, "ord", PatternType.PREFIXED), rule(Permission.DENY, "orders")
    found = Judge([allowing]).decide("User:alice", *ORDERS)
    assert (found.is_allowed, found.rule) == (True, allowing)
    found = Judge([allowing, denying]).decide("User:alice", *ORDERS)
    assert (found.is_allowed, found.rule) == (False, denying)


def test_without_a_rule_the_policy_decides() -> None:
    assert not Judge([]).decide("User:alice", *ORDERS).is_allowed
    assert Judge([], allows_everyone=True).decide("User:alice", *ORDERS).is_allowed
    assert not Judge([rule(Permission.ALLOW, "orders")], allows_everyone=True).decide("User:bob", *ORDERS).is_allowed
    found = Judge([rule(Permission.DENY, "orders")], super_users=["User:alice"]).decide("User:alice", *ORDERS)
    assert (found.is_allowed, found.rule) == (True, None)
