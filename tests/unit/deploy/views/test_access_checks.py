from core_broker.client.acls import Operation, Permission, ResourceType
from core_broker.security.judgement import Judge
from deploy.views.access_checks import check_access, policy_of
from deploy.views.acls import Resource, rules

ORDERS = Resource(kind=ResourceType.TOPIC, name="orders")


def test_an_answer_says_which_rule_decides() -> None:
    known = rules("User:alice", [Operation.READ], [ORDERS], host="*", permission=Permission.ALLOW)
    wanted = [Operation.READ, Operation.WRITE]
    found = check_access(Judge(known), "User:alice", wanted, [ORDERS], host="127.0.0.1")
    assert [item.allowed for item in found] == [True, False]
    assert found[0].text == "User:alice may read topic orders; a rule allows it: User:alice may read topic orders"
    assert found[1].text.startswith("User:alice may not write topic orders; the resource has ACLs")


def test_the_policy_is_read_from_the_settings_of_a_broker() -> None:
    unset = policy_of({})
    assert (unset.super_users, unset.allows_everyone) == ((), False)
    shown = policy_of({"super.users": "User:a; User:b;", "allow.everyone.if.no.acl.found": "True"})
    assert (shown.super_users, shown.allows_everyone) == (("User:a", "User:b"), True)
    hidden = policy_of({"super.users": None, "allow.everyone.if.no.acl.found": None})
    assert (hidden.super_users, hidden.allows_everyone) == (None, None)
