"""Names of mirrored topics."""

import pytest

from connectors.mirror.policy import Policy, policy_of
from connectors.mirror.selection import Names, Selection


def policy(name: str = "DefaultReplicationPolicy", *, separator: str = ".", internal: str = ".") -> Policy:
    return policy_of(name, source="us", separator=separator, internal_separator=internal, heartbeats="heartbeats")


@pytest.mark.parametrize(
    ("topic", "origin", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("us.orders", "us", "orders", "orders"),
        ("eu.us.orders", "eu", "us.orders", "orders"),
        ("orders.", None, None, "orders."),
        (".orders", "", "orders", "orders"),
    ],
)
def test_the_default_policy_sees_where_topics_come_from(
    topic: str, origin: str | None, upstream: str | None, original: str
) -> None:
    default = policy()
    assert (default.origin(topic), default.upstream(topic), default.original(topic)) == (origin, upstream, original)


@pytest.mark.parametrize(
    ("name", "separator", "topic", "remote"),
    [
        ("org.apache.kafka.connect.mirror.DefaultReplicationPolicy", ".", "orders", "us.orders"),
        ("DefaultReplicationPolicy", "__", "orders", "us__orders"),
        ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy", ".", "orders", "orders"),
        ("IdentityReplicationPolicy", ".", "heartbeats", "us.heartbeats"),
        ("IdentityReplicationPolicy", ".", "eu.heartbeats", "us.eu.heartbeats"),
    ],
)
def test_topics_are_named(name: str, separator: str, topic: str, remote: str) -> None:
    assert policy(name, separator=separator).remote(topic) == remote


def test_internal_topics_are_named_as_mirror_maker_does() -> None:
    assert policy().offset_syncs_topic("eu") == "mm2-offset-syncs.eu.internal"
    assert policy().checkpoints_topic() == "us.checkpoints.internal"
    assert policy(separator="_", internal="_").offset_syncs_topic("eu") == "mm2-offset-syncs_eu_internal"
    assert policy(separator="_", internal=".").checkpoints_topic() == "us.checkpoints.internal"


@pytest.mark.parametrize(
    ("topic", "is_mirrored"),
    [
        ("orders", True),
        ("orders.v1", True),
        ("eu.orders", False),
        ("asia.eu.orders", False),
        ("asia.orders", True),
        ("__consumer_offsets", False),
        (".hidden", False),
        ("mm2-offset-syncs.eu.internal", False),
        ("connect-offsets-internal", False),
        ("secret", False),
        ("heartbeats", True),
        ("eu.heartbeats", False),
    ],
)
def test_topics_are_chosen_without_internals_and_loops(topic: str, is_mirrored: bool) -> None:
    chosen = Selection(policy(), target="eu", topics=[".*"], excluded=["secret"], with_heartbeats=True)
    assert (topic in chosen) is is_mirrored


def test_heartbeats_are_mirrored_though_topics_does_not_match_them() -> None:
    for wanted in (True, False):
        chosen = Selection(policy(), target="eu", topics=["orders"], excluded=[], with_heartbeats=wanted)
        assert ("heartbeats" in chosen) is wanted


@pytest.mark.parametrize(
    ("patterns", "name", "is_wanted"),
    [
        (["orders"], "orders", True),
        (["orders"], "orders2", False),
        (["orders.*"], "orders2", True),
        (["a|b", "c"], "b", True),
        (["a|b", "c"], "bc", False),
        ([], "a", False),
        ([""], "", False),
    ],
)
def test_patterns_match_names_in_full(patterns: list[str], name: str, is_wanted: bool) -> None:
    assert (name in Names(patterns, excluded=[])) is is_wanted
