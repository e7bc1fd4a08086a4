"""ACLs as values, filters, and the index of ACLs by what they apply to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.principals import Principal
from core_broker.security.acls import AclEntry, AclFilter, AclIndex, PatternType, PermissionType, canonical_host
from core_broker.security.operations import Operation, ResourceType


def acl(
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: Operation = Operation.READ,
    permission: PermissionType = PermissionType.ALLOW,
    kind: ResourceType = ResourceType.TOPIC,
) -> AclEntry:
    return AclEntry(kind, name, pattern, principal, host, operation, permission)


# -- filters -----------------------------------------------------------------------------------------------------------

LITERAL, PREFIXED, ANY, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH
STORED = {
    "own": acl("orders"),
    "other": acl("orders-eu"),
    "wildcard": acl("*"),
    "prefix": acl("ord", PREFIXED),
    "own-prefix": acl("orders", PREFIXED),
    "star-prefix": acl("*", PREFIXED),
}


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        (LITERAL, "orders", {"own"}),
        (LITERAL, "*", {"wildcard"}),
        (LITERAL, None, {"own", "other", "wildcard"}),
        (PREFIXED, "orders", {"own-prefix"}),
        (PREFIXED, "*", {"star-prefix"}),
        (PREFIXED, None, {"prefix", "own-prefix", "star-prefix"}),
        (ANY, "orders", {"own", "own-prefix"}),
        (ANY, "*", {"wildcard", "star-prefix"}),
        (ANY, None, set(STORED)),
        (MATCH, "orders", {"own", "wildcard", "prefix", "own-prefix"}),
        (MATCH, "orders-eu", {"other", "wildcard", "prefix", "own-prefix"}),
        (MATCH, "payments", {"wildcard"}),
        (MATCH, "*", {"wildcard", "star-prefix"}),
        (MATCH, None, set(STORED)),
        (PatternType.UNKNOWN, "orders", set()),
    ],
)
def test_filter_of_each_pattern_type_finds(pattern: PatternType, name: str | None, found: set[str]) -> None:
    wanted = AclFilter(ResourceType.TOPIC, name, pattern)
    assert {key for key, entry in STORED.items() if wanted.matches(entry)} == found


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (AclFilter(), True),
        (AclFilter(kind=ResourceType.GROUP), False),
        (AclFilter(principal="User:alice"), True),
        (AclFilter(principal="User:*"), False),
        (AclFilter(host="*"), True),
        (AclFilter(host="10.0.0.1"), False),
        (AclFilter(operation=Operation.READ), True),
        (AclFilter(operation=Operation.ALL), False),
        (AclFilter(permission=PermissionType.ALLOW), True),
        (AclFilter(permission=PermissionType.DENY), False),
        (AclFilter(permission=77), False),
    ],
)
def test_every_part_of_a_filter_is_compared_exactly(wanted: AclFilter, *, is_found: bool) -> None:
    assert wanted.matches(acl()) is is_found


# -- hosts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::A", "2001:db8:0:0:0:0:0:a"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("::ffff:a00:7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("broker.example.com", "broker.example.com"),
    ],
)
def test_addresses_are_the_same_however_they_are_written(one: str, other: str) -> None:
    assert canonical_host(one) == canonical_host(other)


@pytest.mark.parametrize(
    ("one", "other"), [("::1", "127.0.0.1"), ("fe80::1%eth0", "fe80::1%eth1"), ("10.0.0.7", "10.0.0.07"), ("A", "a")]
)
def test_other_hosts_differ(one: str, other: str) -> None:
    assert canonical_host(one) != canonical_host(other)


# -- the index ---------------------------------------------------------------------------------------------------------

ENTRIES = st.builds(
    AclEntry,
    kind=st.sampled_from((2, 3, 99)),
    name=st.sampled_from(("*", "a", "ab", "abc", "b")),
    pattern=st.sampled_from((3, 4, 9)),
    principal=st.sampled_from(("User:alice", "User:*", "nobody")),
    host=st.sampled_from(("*", "::1", "0:0:0:0:0:0:0:1", "10.0.0.1")),
    operation=st.sampled_from((-3, 0, 2, 3, 8, 120)),
    permission=st.sampled_from((2, 3, 7)),
)
CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 4), ENTRIES), max_size=40)


@given(changes=CHANGES)
def test_index_after_any_changes_is_that_of_what_is_left(changes: list[tuple[bool, int, AclEntry]]) -> None:
    index, left = AclIndex(), dict[bytes, AclEntry]()
    for is_added, number, entry in changes:
        acl_id = bytes([number])
        if is_added:
            index.add(acl_id, entry)
            left[acl_id] = entry
        else:
            index.remove(acl_id)
            left.pop(acl_id, None)
    fresh = AclIndex()
    for acl_id, entry in left.items():
        fresh.add(acl_id, entry)
    assert len(index) == len(left)
    assert set(index.find(AclFilter())) == set(left.values())
    for kind in (2, 3, 99):
        for name in ("*", "*x", "a", "ab", "abcd", "b", ""):
            assert _matching(index, kind, name) == _matching(fresh, kind, name)


def _matching(index: AclIndex, kind: int, name: str) -> list[dict[tuple[str, str, str], tuple[int, int]]]:
    acls = index.of_type(kind)
    found = [] if acls is None else acls.matching(name)
    return [{subject: (grants.allowed, grants.denied) for subject, grants in each.items()} for each in found]


def test_acl_stored_twice_applies_until_both_are_removed() -> None:
    index = AclIndex()
    index.add(b"1", acl())
    index.add(b"2", acl())
    assert list(index.find(AclFilter())) == [acl()]
    index.remove(b"1")
    assert list(index.find(AclFilter())) == [acl()]
    index.remove(b"2")
    assert list(index.find(AclFilter())) == []


def test_host_written_in_two_ways_is_allowed_until_both_acls_are_removed() -> None:
    index = AclIndex()
    index.add(b"1", acl(host="::1"))
    index.add(b"2", acl(host="0:0:0:0:0:0:0:1"))
    index.remove(b"1")
    (found,) = _matching(index, ResourceType.TOPIC, "orders")
    assert found == {("User", "alice", "::1"): (1 << Operation.READ, 0)}


def test_subject_of_an_acl_is_split_at_the_first_colon() -> None:
    assert acl(principal="User:CN=a:b").subject == ("User", "CN=a:b", "*")
    assert Principal("User", "CN=a:b") == Principal("User", acl(principal="User:CN=a:b").subject[1])


def test_text_of_an_acl_has_names_and_the_numbers_that_have_none() -> None:
    assert str(acl(host="10.0.0.7")) == "ALLOW User:alice from 10.0.0.7: READ TOPIC:LITERAL:orders"
    unknown = AclEntry(99, "x", 4, "User:*", "*", 77, 9)
    assert str(unknown) == "9 User:* from *: 77 99:PREFIXED:x"
