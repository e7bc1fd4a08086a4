"""Groups of the consumer protocol (KIP-848), whose partitions the broker assigns."""

from contextlib import ExitStack
from itertools import chain
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupType
from confluent_kafka.cimpl import NewPartitions

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config, poll_records
from tests.support.clients.model import Sent
from tests.support.group_member import GroupMember

PARTITIONS = 6
NEW: dict[str, Any] = {"group.protocol": "consumer"}


def join(broker: BrokerProcess, name: str, **config: Any) -> GroupMember:
    return GroupMember("confluent-kafka", broker.bootstrap, name, name, config={**NEW, **config})


def await_sizes(members: list[GroupMember], sizes: list[int], partitions: int = PARTITIONS) -> None:
    """Wait until every partition has one owner and the members have so many each."""

    def is_shared(owned: list[list[int]]) -> bool:
        return sorted(chain.from_iterable(owned)) == list(range(partitions)) and sorted(map(len, owned)) == sizes

    eventually(lambda: [sorted(member.assignment) for member in members], is_shared, timeout_s=45)


@pytest.mark.timeout(180)
def test_partitions_move_as_members_join_leave_and_die(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)
    with ExitStack() as stack:
        first = stack.enter_context(join(broker, name))
        await_sizes([first], [6])
        second = stack.enter_context(join(broker, name))
        await_sizes([first, second], [3, 3])
        third = stack.enter_context(join(broker, name))
        await_sizes([first, second, third], [2, 2, 2])
        second.leave()
        await_sizes([first, third], [3, 3])
        third.kill()
        await_sizes([first], [6])


def test_records_are_read_once_and_offsets_are_kept(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    records = [Sent(value=b"%d" % number, partition=number % 2) for number in range(40)]
    ConfluentClient().produce(broker.bootstrap, name, records)
    for expected in ([record.value for record in records], [b"later"]):
        if expected == [b"later"]:
            ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"later", partition=0)])
        consumer = Consumer(consumer_config(broker.bootstrap, name, **NEW))
        consumer.subscribe([name])
        try:
            found = poll_records(consumer, len(expected))
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        assert sorted(record.value or b"" for record in found) == sorted(value or b"" for value in expected)


def test_more_members_than_partitions_leaves_the_surplus_idle(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with ExitStack() as stack:
        members = [stack.enter_context(join(broker, name)) for _ in range(3)]
        await_sizes(members, [0, 1, 1], 2)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_choose_the_assignor_of_the_broker(broker: BrokerProcess, name: str, assignor: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)
    with ExitStack() as stack:
        config = {"group.remote.assignor": assignor}
        members = [stack.enter_context(join(broker, name, **config)) for _ in range(2)]
        await_sizes(members, [3, 3])


def test_subscriptions_by_pattern_find_topics_made_later(broker: BrokerProcess, name: str) -> None:
    first, second = f"{name}-alpha", f"{name}-beta"
    create_topic(broker, first)
    consumer = Consumer(consumer_config(broker.bootstrap, name, **NEW, **{"topic.metadata.refresh.interval.ms": 500}))
    consumer.subscribe([f"^{name}-.*"])
    try:
        eventually(
            lambda: consumer.poll(0.1) or {partition.topic for partition in consumer.assignment()},
            lambda topics: topics == {first},
        )
        create_topic(broker, second)
        eventually(
            lambda: consumer.poll(0.1) or {partition.topic for partition in consumer.assignment()},
            lambda topics: topics == {first, second},
            timeout_s=45,
        )
    finally:
        consumer.close()


def test_a_group_is_described_as_of_the_consumer_protocol(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with join(broker, name) as member:
        eventually(lambda: member.assignment, lambda owned: len(owned) == 2)
        (description,) = (f.result(30) for f in admin_client(broker).describe_consumer_groups([name]).values())
        assert description.type == ConsumerGroupType.CONSUMER
        assert description.state.name == "STABLE"
        assert [len(found.assignment.topic_partitions) for found in description.members] == [2]


def test_a_grown_topic_is_shared_anew(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with join(broker, name) as first, join(broker, name) as second:
        await_sizes([first, second], [1, 1], 2)
        admin_client(broker).create_partitions([NewPartitions(name, 4)])[name].result(30)
        await_sizes([first, second], [2, 2], 4)


def test_a_static_member_comes_back_to_its_partitions(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=4)
    with ExitStack() as stack:
        first = stack.enter_context(join(broker, name, **{"group.instance.id": "one"}))
        second = stack.enter_context(join(broker, name, **{"group.instance.id": "two"}))
        await_sizes([first, second], [2, 2], 4)
        before = first.assignment
        first.leave()
        again = stack.enter_context(join(broker, name, **{"group.instance.id": "one"}))
        eventually(lambda: again.assignment, lambda owned: owned == before)


def test_a_group_moves_from_the_classic_protocol_and_keeps_its_offsets(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"old", partition=0)])
    assert len(ConfluentClient().consume_group(broker.bootstrap, name, name, 1)) == 1
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"new", partition=0)])
    consumer = Consumer(consumer_config(broker.bootstrap, name, **NEW))
    consumer.subscribe([name])
    try:
        assert [record.value for record in poll_records(consumer, 1)] == [b"new"]
    finally:
        consumer.close()


def test_a_running_group_moves_one_member_at_a_time(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=4)
    with ExitStack() as stack:
        classic = stack.enter_context(GroupMember("confluent-kafka", broker.bootstrap, name, name))
        eventually(lambda: len(classic.assignment), lambda count: count == 4)
        modern = stack.enter_context(join(broker, name))
        await_sizes([classic, modern], [2, 2], 4)
        classic.leave()
        await_sizes([modern], [4], 4)


def kind_of(broker: BrokerProcess, group: str) -> tuple[ConsumerGroupType, ConsumerGroupType]:
    """The type of a group as it is described and as it is listed."""
    admin = admin_client(broker)
    described = admin.describe_consumer_groups([group])[group].result(30)
    listed = {found.group_id: found.type for found in admin.list_consumer_groups().result(30).valid}
    return described.type, listed[group]


@pytest.mark.timeout(180)
def test_a_running_group_is_classic_again_when_its_last_member_of_the_new_protocol_is_gone(
    broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name, partitions=4)
    rounds = [[Sent(value=b"%d-%d" % (turn, number), partition=number % 4) for number in range(20)] for turn in (1, 2)]
    classic, modern = ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER
    with ExitStack() as stack:
        members = [stack.enter_context(GroupMember("confluent-kafka", broker.bootstrap, name, name)) for _ in range(2)]
        await_sizes(members, [2, 2], 4)
        ConfluentClient().produce(broker.bootstrap, name, rounds[0])
        eventually(lambda: sum(len(member.records) for member in members), lambda count: count == 20)
        stays, moves = members
        moves.leave()
        moved = stack.enter_context(join(broker, name))
        await_sizes([stays, moved], [2, 2], 4)
        assert kind_of(broker, name) == (modern, modern)
        moved.leave()
        await_sizes([stays], [4], 4)
        assert kind_of(broker, name) == (classic, classic)
        ConfluentClient().produce(broker.bootstrap, name, rounds[1])
        everyone = [*members, moved]
        eventually(lambda: sum(len(member.records) for member in everyone), lambda count: count >= 40)
        read = sorted(value for member in everyone for _, _, value in member.records)
        assert read == sorted((sent.value or b"").decode() for sent in chain(*rounds)), "nothing twice, nothing lost"
