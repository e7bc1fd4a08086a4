"""Subscriptions by name and by expression."""

from dataclasses import dataclass

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.subscriptions import Subscriptions, compile_expression, matching_topics, metadata_hash


@dataclass(frozen=True)
class FakeTopic:
    topic_id: bytes
    partitions: range


def topic(letter: str, partition_count: int = 1) -> FakeTopic:
    return FakeTopic(letter.encode() * 16, range(partition_count))


TOPICS = {"orders": topic("o"), "orders-eu": topic("e"), "payments": topic("p")}


def test_expression_must_match_the_whole_name() -> None:
    assert matching_topics("orders", TOPICS) == {"orders"}
    assert matching_topics("orders.*", TOPICS) == {"orders", "orders-eu"}
    assert matching_topics("^pay.*$", TOPICS) == {"payments"}


@pytest.mark.parametrize(
    "expression, reason",
    [
        ("(a", "missing )"),
        ("a**", "bad repetition operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        ("((a{1000}){1000}){1000}", "repetition"),
        ("a" * 9000, "8192"),
    ],
)
def test_bad_expression_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(BrokerError) as refusal:
        compile_expression(expression)
    assert refusal.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert reason in refusal.value.message


def test_expression_that_explodes_in_backtracking_engines_is_harmless() -> None:
    topics = {"a" * 249: topic("a")}
    assert matching_topics("(a|a?)+b", topics) == frozenset()
    assert matching_topics("(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x", topics) == frozenset()


def test_hash_changes_when_a_topic_appears_grows_or_is_made_anew() -> None:
    names = {"orders", "later"}
    seen = {
        metadata_hash(names, topics)
        for topics in (
            {},
            {"orders": topic("o")},
            {"orders": topic("o", 2)},
            {"orders": topic("x")},
            {"orders": topic("o"), "later": topic("l")},
        )
    }
    assert len(seen) == 5


def test_hash_ignores_topics_that_nobody_reads() -> None:
    assert metadata_hash({"orders"}, TOPICS) == metadata_hash({"orders"}, {"orders": TOPICS["orders"]})


def test_hash_is_the_one_that_kafka_computes() -> None:
    """The numbers are those of Kafka's own library, hash4j, for these topics."""
    orders = FakeTopic(bytes(range(16)), range(3))
    other = FakeTopic(bytes.fromhex("fff1020304050607 88090a0b0c0d0e0f"), range(300))
    topics = {"orders": orders, "a.b_c-1": other}
    assert metadata_hash({"orders"}, topics) == 3091374266733325672
    assert metadata_hash({"orders", "a.b_c-1"}, topics) == -4531478051664129058


def test_hash_without_topics_is_zero_as_kafka_stores_it() -> None:
    assert metadata_hash({"unknown"}, TOPICS) == 0


def test_topic_counts_as_read_until_its_last_reader_goes() -> None:
    subscriptions = Subscriptions()
    subscriptions.add(["orders"], "")
    subscriptions.add(["orders"], "")
    subscriptions.remove(["orders"], "")
    assert subscriptions.includes("orders")
    subscriptions.remove(["orders"], "")
    assert not subscriptions.includes("orders")


def test_expression_matches_only_topics_that_the_client_may_describe() -> None:
    subscriptions = Subscriptions()
    subscriptions.add([], "orders.*")
    topics = {"orders": topic("o"), "orders-secret": topic("s")}
    subscriptions.resolve(topics, lambda name: name == "orders", again=False)
    assert subscriptions.topic_names() == {"orders"}
    # Another client may see more, and asks for all expressions to be matched again.
    subscriptions.resolve(topics, again=True)
    assert subscriptions.topic_names() == {"orders", "orders-secret"}


def test_expression_is_matched_again_only_when_asked() -> None:
    subscriptions = Subscriptions()
    subscriptions.add([], "orders.*")
    assert subscriptions.resolve({"orders": topic("o")}, again=False) == {"orders.*"}
    assert subscriptions.resolve(TOPICS, again=False) == set()
    assert subscriptions.topic_names() == {"orders"}
    assert subscriptions.resolve(TOPICS, again=True) == {"orders.*"}
    assert subscriptions.includes("orders-eu")


def test_unused_expression_is_forgotten_and_reported() -> None:
    subscriptions = Subscriptions()
    subscriptions.add([], ".*")
    subscriptions.resolve(TOPICS, again=False)
    subscriptions.remove([], ".*")
    assert subscriptions.resolve(TOPICS, again=False) == {".*"}
    assert subscriptions.topic_names() == set()


def test_stored_expression_that_cannot_be_read_matches_nothing() -> None:
    subscriptions = Subscriptions()
    subscriptions.add(["orders"], "(a")
    subscriptions.resolve(TOPICS, again=False)
    assert subscriptions.topic_names() == {"orders"}


def test_topic_ids_are_those_of_existing_topics_by_name_and_by_expression() -> None:
    subscriptions = Subscriptions()
    subscriptions.add(["payments", "unknown"], "orders-.*")
    subscriptions.resolve(TOPICS, again=False)
    ids = subscriptions.topic_ids(frozenset({"payments", "unknown"}), "orders-.*", TOPICS)
    assert ids == {b"p" * 16, b"e" * 16}
