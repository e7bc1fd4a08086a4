"""Static members (KIP-345): a restart within the session time-out moves no partition."""

from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.group_member import GroupMember

KEYS = {"confluent-kafka": "group.instance.id", "aiokafka": "group_instance_id", "kafka-python": "group_instance_id"}


def member(library: str, broker: BrokerProcess, name: str, instance: str) -> GroupMember:
    config: dict[str, Any] = {KEYS[library]: instance}
    if library == "confluent-kafka":
        config["session.timeout.ms"] = 10_000
    return GroupMember(library, broker.bootstrap, name, name, config=config)


def await_whole(members: list[GroupMember], partitions: int) -> None:
    eventually(
        lambda: sorted(partition for member in members for partition in member.assignment),
        lambda owned: owned == list(range(partitions)) and all(member.assignment for member in members),
        timeout_s=45,
    )


@pytest.mark.parametrize("library", KEYS)
def test_a_restarted_static_member_gets_its_partitions_back(broker: BrokerProcess, name: str, library: str) -> None:
    create_topic(broker, name, partitions=4)
    with ExitStack() as stack:
        first = stack.enter_context(member(library, broker, name, "one"))
        await_whole([first], 4)
        second = stack.enter_context(member(library, broker, name, "two"))
        await_whole([first, second], 4)
        before = first.assignment
        rebalances = len(second.assignments)
        first.kill()
        again = stack.enter_context(member(library, broker, name, "one"))
        eventually(lambda: again.assignment, timeout_s=45)
        assert again.assignment == before
        assert len(second.assignments) == rebalances, "the other member was made to rebalance"


def test_a_second_member_of_the_same_instance_fences_the_first(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with member("confluent-kafka", broker, name, "same") as first:
        eventually(lambda: first.assignment)
        with member("confluent-kafka", broker, name, "same") as second:
            eventually(lambda: second.assignment)
            eventually(lambda: first.errors)
            assert "fenced" in " ".join(first.errors).lower()
