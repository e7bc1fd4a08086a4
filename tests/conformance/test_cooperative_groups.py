"""Cooperative rebalancing (KIP-429): partitions that stay are never taken away."""

import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.group_member import GroupMember

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
PARTITIONS = 6


def join(library: str, broker: BrokerProcess, name: str) -> GroupMember:
    config = COOPERATIVE if library == "confluent-kafka" else {}
    return GroupMember(library, broker.bootstrap, name, name, config=config, cooperative=True)


@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_newcomer_takes_only_what_it_is_given(broker: BrokerProcess, name: str, library: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)
    with join(library, broker, name) as first:
        eventually(lambda: first.assignment, lambda owned: len(owned) == PARTITIONS)
        with join(library, broker, name) as second:
            eventually(
                lambda: (len(first.assignment), len(second.assignment)), lambda sizes: sizes == (3, 3), timeout_s=45
            )
            assert not first.assignment & second.assignment
            assert sum(len(revoked) for revoked in first.revoked) == 3
            second.kill()
        eventually(lambda: len(first.assignment), lambda count: count == PARTITIONS, timeout_s=45)
        assert sum(len(revoked) for revoked in first.revoked) == 3


def test_an_eager_group_can_move_to_cooperative_one_member_at_a_time(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)

    def whole(*members: GroupMember) -> None:
        eventually(
            lambda: sorted(partition for member in members for partition in member.assignment),
            lambda owned: owned == list(range(PARTITIONS)),
            timeout_s=45,
        )

    eager = {"partition.assignment.strategy": "range"}
    with (
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=eager) as first,
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=eager) as second,
    ):
        whole(first, second)
        first.leave()
        second.leave()
    with (
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=COOPERATIVE) as third,
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=COOPERATIVE) as fourth,
    ):
        whole(third, fourth)
