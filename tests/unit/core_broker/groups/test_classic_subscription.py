from core_broker.groups.classic_subscription import subscribed_topics
from tests.support.classic_group_world import subscription


def test_topics_of_all_members_are_joined() -> None:
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == frozenset({"a", "b", "c"})


def test_group_without_members_reads_nothing() -> None:
    assert subscribed_topics([]) == frozenset()


def test_version_of_the_future_is_read_as_far_as_known() -> None:
    assert subscribed_topics([b"\x00\x63" + subscription("a")[2:] + b"more"]) == frozenset({"a"})


def test_one_unreadable_subscription_makes_all_unknown() -> None:
    assert subscribed_topics([subscription("a"), b"\x00"]) is None
    assert subscribed_topics([b"\x00\x00\x7f\xff\xff\xff"]) is None
    assert subscribed_topics([b"\xff\xff"]) is None
