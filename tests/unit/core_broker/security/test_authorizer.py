"""The rules of Kafka's StandardAuthorizer: by example, as a table, and against the rules written down plainly."""

from collections.abc import Iterable, Sequence
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core_broker.errors import BrokerError
from core_broker.protocol.principals import Principal, parse_principal
from core_broker.protocol.stored import metadata as stored
from core_broker.security.acls import AclEntry, PatternType, PermissionType
from core_broker.security.authorizer import Authorizer, Denial
from core_broker.security.operations import CLUSTER_NAME, Operation, ResourceType

ALICE, BOB, ADMIN = Principal("User", "alice"), Principal("User", "bob"), Principal("User", "admin")
HOST = "10.0.0.1"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def rule(text: str) -> AclEntry:
    """An ACL written as `ALLOW User:alice READ TOPIC ord* 10.0.0.1`, where `ord*` is a prefix."""
    permission, principal, operation, kind, name, *host = text.split()
    is_prefix = name.endswith("*") and name != "*"
    return AclEntry(
        ResourceType[kind],
        name[:-1] if is_prefix else name,
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        principal,
        host[0] if host else "*",
        Operation[operation],
        PermissionType[permission],
    )


def record(number: int, entry: AclEntry) -> stored.AccessControlEntryRecord:
    return stored.AccessControlEntryRecord(
        id=number.to_bytes(16),
        resource_type=entry.kind,
        resource_name=entry.name,
        pattern_type=entry.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def authorizer(*rules: str, allows_everyone: bool = False) -> Authorizer:
    made = Authorizer([ADMIN], allows_everyone=allows_everyone)
    made.load(record(number, rule(text)) for number, text in enumerate(rules))
    return made


# -- super users and defaults ------------------------------------------------------------------------------------------


def test_super_user_may_do_everything_even_what_is_denied_and_before_acls_are_loaded() -> None:
    assert Authorizer([ADMIN]).allows(ADMIN, HOST, WRITE, TOPIC, "orders")
    assert authorizer("DENY User:* ALL TOPIC *").allows(ADMIN, HOST, WRITE, TOPIC, "orders")


def test_super_user_is_compared_by_kind_and_name() -> None:
    made = authorizer()
    assert not made.allows(Principal("Group", "admin"), HOST, READ, TOPIC, "orders")
    assert not made.allows(Principal("User", "Admin"), HOST, READ, TOPIC, "orders")
    assert made.allows(Principal("User", "admin", is_by_token=True), HOST, READ, TOPIC, "orders")


def test_before_acls_are_loaded_there_is_no_decision() -> None:
    with pytest.raises(BrokerError, match="not loaded"):
        Authorizer([ADMIN], allows_everyone=True).allows(ALICE, HOST, READ, TOPIC, "orders")


def test_without_acls_the_default_decides() -> None:
    assert not authorizer().allows(ALICE, HOST, READ, TOPIC, "orders")
    assert authorizer(allows_everyone=True).allows(ALICE, HOST, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    "shutting_out", ["ALLOW User:bob READ TOPIC orders", "ALLOW User:bob WRITE TOPIC ord*", "DENY User:bob ALL TOPIC *"]
)
def test_one_acl_for_anyone_shuts_out_everybody_else(shutting_out: str) -> None:
    made = authorizer(shutting_out, allows_everyone=True)
    assert not made.allows(ALICE, HOST, READ, TOPIC, "orders")
    assert made.allows(ALICE, HOST, READ, GROUP, "orders")


# -- rules that match --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowing", "denying"),
    [
        ("ALLOW User:alice READ TOPIC orders", "DENY User:alice READ TOPIC orders"),
        ("ALLOW User:alice READ TOPIC orders", "DENY User:* READ TOPIC o*"),
        ("ALLOW User:alice READ TOPIC orders", "DENY User:* ALL TOPIC *"),
        ("ALLOW User:alice READ TOPIC order*", "DENY User:alice READ TOPIC ord*"),
        ("ALLOW User:alice ALL TOPIC *", "DENY User:alice READ TOPIC orders"),
    ],
)
def test_deny_beats_allow_however_general_it_is(allowing: str, denying: str) -> None:
    assert authorizer(allowing).allows(ALICE, HOST, READ, TOPIC, "orders")
    assert not authorizer(allowing, denying).allows(ALICE, HOST, READ, TOPIC, "orders")
    assert not authorizer(denying, allowing).allows(ALICE, HOST, READ, TOPIC, "orders")


def test_prefix_of_a_star_is_no_wildcard() -> None:
    made = Authorizer()
    made.load([record(1, AclEntry(TOPIC, "*", PatternType.PREFIXED, "User:alice", "*", READ, PermissionType.ALLOW))])
    assert made.allows(ALICE, HOST, READ, TOPIC, "*starred")
    assert not made.allows(ALICE, HOST, READ, TOPIC, "orders")


@pytest.mark.parametrize("principal", ["Group:*", "User:al*", "User:ALICE", "alice"])
def test_only_user_star_stands_for_everyone(principal: str) -> None:
    assert not authorizer(f"ALLOW {principal} READ TOPIC orders").allows(ALICE, HOST, READ, TOPIC, "orders")
    assert authorizer("ALLOW User:* READ TOPIC orders").allows(ALICE, HOST, READ, TOPIC, "orders")
    assert authorizer("ALLOW User:* READ TOPIC orders").allows(Principal("Group", "a"), HOST, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("host_of_acl", "host", "is_allowed"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.0/24", "10.0.0.1", False),
        ("localhost", "127.0.0.1", False),
    ],
)
def test_host_of_an_acl_is_an_address(host_of_acl: str, host: str, *, is_allowed: bool) -> None:
    made = authorizer(f"ALLOW User:alice READ TOPIC orders {host_of_acl}")
    assert made.allows(ALICE, host, READ, TOPIC, "orders") is is_allowed


IMPLIED: Final = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


@pytest.mark.parametrize("kind", ResourceType)
@pytest.mark.parametrize("granted", Operation)
@pytest.mark.parametrize("asked", Operation)
def test_table_of_implied_operations(kind: ResourceType, granted: Operation, asked: Operation) -> None:
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else "x"
    is_same = granted in (asked, Operation.ALL)
    allowing = authorizer(f"ALLOW User:alice {granted.name} {kind.name} {name}")
    assert allowing.allows(ALICE, HOST, asked, kind, name) is (is_same or granted in IMPLIED.get(asked, ()))
    denying = authorizer(
        f"DENY User:alice {granted.name} {kind.name} {name}", f"ALLOW User:alice ALL {kind.name} {name}"
    )
    assert denying.allows(ALICE, HOST, asked, kind, name) is not is_same


# -- which rule decides ------------------------------------------------------------------------------------------------


def test_decision_names_the_rule_as_it_was_written() -> None:
    rules = "ALLOW User:* READ TOPIC ord*", "DENY User:alice WRITE TOPIC * 0:0:0:0:0:0:0:1"
    made = authorizer(*rules)
    allowed = made.decide(ALICE, "::1", DESCRIBE, TOPIC, "orders")
    assert (allowed.is_allowed, allowed.rule, allowed.reason) == (True, rule(rules[0]), "a rule allows it")
    denied = made.decide(ALICE, "::1", WRITE, TOPIC, "orders")
    assert (denied.is_allowed, denied.rule, denied.reason) == (False, rule(rules[1]), "a rule denies it")


def test_decision_without_a_rule_says_why() -> None:
    made = authorizer("ALLOW User:bob READ TOPIC orders")
    assert made.decide(ADMIN, HOST, READ, TOPIC, "orders").reason == "it is a super user"
    assert made.decide(ALICE, HOST, READ, TOPIC, "orders").reason == "the resource has ACLs, and none of them matches"
    assert made.decide(ALICE, HOST, READ, TOPIC, "payments").reason == "the resource has no ACL"


def test_denials_are_reported_unless_they_refuse_nothing() -> None:
    seen: list[Denial] = []
    made = Authorizer(on_denial=seen.append)
    made.load(())
    made.allows(ALICE, HOST, READ, TOPIC, "orders", api="Fetch")
    made.allows(ALICE, HOST, READ, TOPIC, "orders", api="Fetch")
    made.allows(ALICE, HOST, DESCRIBE, TOPIC, "orders", is_logged=False)
    made.allows_on_any(ALICE, HOST, WRITE, TOPIC, is_logged=False)
    made.allows_on_any(ALICE, HOST, WRITE, TOPIC, api="InitProducerId")
    assert [(denial.api, denial.operation, denial.name) for denial in seen] == [
        ("Fetch", READ, "orders"),
        ("Fetch", READ, "orders"),
        ("InitProducerId", WRITE, None),
    ]


# -- changes -----------------------------------------------------------------------------------------------------------


def test_decision_changes_with_the_next_record() -> None:
    made = authorizer()
    assert not made.allows(ALICE, HOST, READ, TOPIC, "orders")
    made.apply([record(7, rule("ALLOW User:alice READ TOPIC orders"))])
    assert made.allows(ALICE, HOST, READ, TOPIC, "orders")
    made.apply([stored.RemoveAccessControlEntryRecord(id=(7).to_bytes(16))])
    assert not made.allows(ALICE, HOST, READ, TOPIC, "orders")


def test_load_replaces_all_acls() -> None:
    made = authorizer("ALLOW User:alice READ TOPIC orders")
    assert made.allows(ALICE, HOST, READ, TOPIC, "orders")
    made.load([record(9, rule("ALLOW User:bob READ TOPIC orders"))])
    assert not made.allows(ALICE, HOST, READ, TOPIC, "orders")
    assert made.allows(BOB, HOST, READ, TOPIC, "orders")


def test_more_decisions_than_are_remembered_are_still_right() -> None:
    made = authorizer("ALLOW User:alice READ TOPIC t-7*")
    for number in range(10_000):
        assert made.allows(ALICE, HOST, READ, TOPIC, f"t-{number}") is str(number).startswith("7")
    assert made.allows(ALICE, HOST, READ, TOPIC, "t-7" + "x" * 100_000)


# -- any resource of a type --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        ([], False),
        (["ALLOW User:alice WRITE TOPIC orders"], True),
        (["ALLOW User:alice ALL TOPIC orders"], True),
        (["ALLOW User:alice WRITE TOPIC ord*"], True),
        (["ALLOW User:alice WRITE TOPIC *"], True),
        (["ALLOW User:* WRITE TOPIC orders"], True),
        (["ALLOW User:alice READ TOPIC orders"], False),
        (["ALLOW User:bob WRITE TOPIC orders"], False),
        (["ALLOW User:alice WRITE TOPIC orders 10.9.9.9"], False),
        (["ALLOW User:alice WRITE GROUP orders"], False),
        # dominated ALLOWs
        (["ALLOW User:alice WRITE TOPIC orders", "DENY User:alice WRITE TOPIC orders"], False),
        (["ALLOW User:alice WRITE TOPIC orders", "DENY User:* ALL TOPIC ord*"], False),
        (["ALLOW User:alice WRITE TOPIC orders", "DENY User:alice WRITE TOPIC *"], False),
        (["ALLOW User:alice WRITE TOPIC *", "DENY User:alice WRITE TOPIC *"], False),
        (["ALLOW User:alice WRITE TOPIC ord*", "DENY User:alice WRITE TOPIC ord*"], False),
        (["ALLOW User:alice WRITE TOPIC ord*", "DENY User:alice WRITE TOPIC o*"], False),
        # ALLOWs with something left
        (["ALLOW User:alice WRITE TOPIC ord*", "DENY User:alice WRITE TOPIC orders*"], True),
        (["ALLOW User:alice WRITE TOPIC ord*", "DENY User:alice WRITE TOPIC ord"], True),
        (["ALLOW User:alice WRITE TOPIC *", "DENY User:alice WRITE TOPIC o*"], True),
        (["ALLOW User:alice WRITE TOPIC orders", "DENY User:bob WRITE TOPIC *"], True),
        (["ALLOW User:alice WRITE TOPIC orders", "DENY User:alice READ TOPIC *"], True),
        (
            [
                "ALLOW User:alice WRITE TOPIC a",
                "DENY User:alice WRITE TOPIC a",
                "ALLOW User:alice WRITE TOPIC b",
            ],
            True,
        ),
    ],
)
def test_right_on_any_resource(rules: Sequence[str], *, is_allowed: bool) -> None:
    assert authorizer(*rules).allows_on_any(ALICE, HOST, WRITE, TOPIC) is is_allowed


def test_right_on_any_resource_of_super_users_and_by_default() -> None:
    assert authorizer("DENY User:* ALL TOPIC *").allows_on_any(ADMIN, HOST, WRITE, TOPIC)
    assert authorizer(allows_everyone=True).allows_on_any(ALICE, HOST, WRITE, TOPIC)
    assert not authorizer("DENY User:* ALL TOPIC *", allows_everyone=True).allows_on_any(ALICE, HOST, WRITE, TOPIC)


# -- against the rules, written down plainly ---------------------------------------------------------------------------

NAMES = ("*", "a", "ab", "abc", "b", "hardcode")
ENTRIES = st.builds(
    AclEntry,
    kind=st.sampled_from((TOPIC, GROUP)),
    name=st.sampled_from(NAMES),
    pattern=st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    principal=st.sampled_from(("User:alice", "User:bob", "User:*", "Group:alice", "Group:*")),
    host=st.sampled_from(("*", "10.0.0.1", "0:0:0:0:0:0:0:1")),
    operation=st.sampled_from(Operation),
    permission=st.sampled_from((PermissionType.ALLOW, PermissionType.DENY)),
)
QUESTIONS = st.tuples(
    st.sampled_from((ALICE, BOB, ADMIN, Principal("Group", "alice"))),
    st.sampled_from((("10.0.0.1", "10.0.0.1"), ("::1", "0:0:0:0:0:0:0:1"))),
    st.sampled_from(Operation),
    st.sampled_from((TOPIC, GROUP)),
    st.sampled_from((*NAMES, "abcd", "", "*a")),
)
Question = tuple[Principal, tuple[str, str], Operation, ResourceType, str]


@given(entries=st.lists(ENTRIES, max_size=12), questions=st.lists(QUESTIONS, min_size=1), allows_everyone=st.booleans())
def test_every_decision_is_that_of_the_plain_rules(
    entries: list[AclEntry], questions: list[Question], *, allows_everyone: bool
) -> None:
    made = Authorizer([ADMIN], allows_everyone=allows_everyone)
    made.load(record(number, entry) for number, entry in enumerate(entries))
    for principal, (host, java_host), operation, kind, name in questions:
        expected = _decide_plainly(entries, principal, java_host, operation, kind, name, allows_everyone)
        for _ in range(2):  # remembered or not
            assert made.allows(principal, host, operation, kind, name) is expected
            decision = made.decide(principal, host, operation, kind, name)
            assert decision.is_allowed is expected
            if decision.rule is not None:
                assert decision.rule in entries
                assert _matches(decision.rule, principal, java_host, operation)


def _decide_plainly(
    entries: Iterable[AclEntry],
    principal: Principal,
    host: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
    allows_everyone: bool,
) -> bool:
    if principal == ADMIN:
        return True
    of_resource = [entry for entry in entries if entry.kind == kind and _is_pattern_of(entry, name)]
    matching = [entry for entry in of_resource if _matches(entry, principal, host, operation)]
    if any(entry.permission == PermissionType.DENY for entry in matching):
        return False
    if matching:
        return True
    return allows_everyone and not of_resource


def _is_pattern_of(entry: AclEntry, name: str) -> bool:
    if entry.pattern == PatternType.PREFIXED:
        return name.startswith(entry.name)
    return entry.name in ("*", name)


def _matches(entry: AclEntry, principal: Principal, host: str, operation: Operation) -> bool:
    if entry.principal != "User:*" and parse_principal(entry.principal) != principal:
        return False
    if entry.host not in ("*", host):
        return False
    implying = IMPLIED.get(operation, set()) if entry.permission == PermissionType.ALLOW else set()
    return entry.operation in {operation, Operation.ALL, *implying}


@given(entries=st.lists(ENTRIES, max_size=8), principal=st.sampled_from((ALICE, BOB)), allows_everyone=st.booleans())
@example(
    entries=[rule("ALLOW User:alice WRITE TOPIC a"), rule("DENY User:* ALL TOPIC a*")],
    principal=ALICE,
    allows_everyone=True,
)
def test_right_on_any_resource_is_that_of_the_plain_rules(
    entries: list[AclEntry], principal: Principal, *, allows_everyone: bool
) -> None:
    made = Authorizer(allows_everyone=allows_everyone)
    made.load(record(number, entry) for number, entry in enumerate(entries))
    expected = _allows_on_any_plainly(entries, principal, allows_everyone=allows_everyone)
    assert made.allows_on_any(principal, HOST, WRITE, TOPIC) is expected


def _allows_on_any_plainly(entries: Sequence[AclEntry], principal: Principal, *, allows_everyone: bool) -> bool:
    if _decide_plainly(entries, principal, HOST, WRITE, TOPIC, "hardcode", allows_everyone):
        return True
    relevant = [
        entry
        for entry in entries
        if entry.kind == TOPIC
        and entry.operation in (WRITE, Operation.ALL)
        and entry.principal in ("User:*", str(principal))
        and entry.host in ("*", HOST)
    ]
    denied = [entry for entry in relevant if entry.permission == PermissionType.DENY]
    allowed = [entry for entry in relevant if entry.permission == PermissionType.ALLOW]
    if any(entry.pattern == PatternType.LITERAL and entry.name == "*" for entry in denied):
        return False
    return any(not _is_dominated(entry, denied) for entry in allowed)


def _is_dominated(allowed: AclEntry, denied: Iterable[AclEntry]) -> bool:
    if allowed.pattern == PatternType.LITERAL and allowed.name == "*":
        return False
    for deny in denied:
        if deny.pattern == PatternType.PREFIXED and allowed.name.startswith(deny.name):
            return True
        if deny.pattern == allowed.pattern and deny.name == allowed.name:
            return True
    return False
