"""Groups of the classic protocol while members join, leave and die."""

from collections import Counter
from contextlib import ExitStack

import pytest
from confluent_kafka.cimpl import NewPartitions

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import Client, Sent
from tests.support.group_member import GroupMember

LIBRARIES = ["confluent-kafka", "aiokafka", "kafka-python"]
PARTITIONS = 6


def is_shared_fairly(members: list[GroupMember], partitions: int = PARTITIONS) -> bool:
    """Whether each partition has one owner and nobody has two more than another."""
    owned = [partition for member in members for partition in member.assignment]
    sizes = [len(member.assignment) for member in members]
    return sorted(owned) == list(range(partitions)) and max(sizes) - min(sizes) <= 1


def await_share(members: list[GroupMember], partitions: int = PARTITIONS) -> None:
    eventually(
        lambda: [sorted(member.assignment) for member in members],
        lambda _: is_shared_fairly(members, partitions),
        timeout_s=45,
    )


def fill(broker: BrokerProcess, topic: str, label: str, count: int = 60) -> set[str]:
    records = [Sent(value=f"{label}-{n}".encode(), partition=n % PARTITIONS) for n in range(count)]
    ConfluentClient().produce(broker.bootstrap, topic, records)
    return {f"{label}-{n}" for n in range(count)}


def read_values(members: list[GroupMember]) -> set[str]:
    return {value for member in members for _, _, value in member.records}


def test_a_group_reads_everything_once_and_goes_on_where_it_stopped(
    broker: BrokerProcess, name: str, client: Client
) -> None:
    create_topic(broker, name, partitions=3)
    records = [Sent(value=b"%d" % number, partition=number % 3) for number in range(30)]
    client.produce(broker.bootstrap, name, records)
    first = client.consume_group(broker.bootstrap, name, name, 30)
    client.produce(broker.bootstrap, name, [Sent(value=b"later", partition=1)])
    second = client.consume_group(broker.bootstrap, name, name, 1)
    assert Counter(record.value for record in first) == Counter(record.value for record in records)
    assert [record.value for record in second] == [b"later"]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("library", LIBRARIES)
def test_partitions_move_as_members_join_leave_and_die(broker: BrokerProcess, name: str, library: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)
    expected = fill(broker, name, "one")
    with ExitStack() as stack:

        def join() -> GroupMember:
            return stack.enter_context(GroupMember(library, broker.bootstrap, name, name))

        first = join()
        await_share([first])
        second = join()
        await_share([first, second])
        third = join()
        await_share([first, second, third])
        second.leave()
        await_share([first, third])
        third.kill()
        await_share([first])
        expected |= fill(broker, name, "two")
        eventually(lambda: expected - read_values([first, second, third]), lambda missing: not missing)


@pytest.mark.parametrize("library", LIBRARIES)
def test_more_members_than_partitions_leaves_the_surplus_idle(broker: BrokerProcess, name: str, library: str) -> None:
    create_topic(broker, name, partitions=2)
    with ExitStack() as stack:
        members = [stack.enter_context(GroupMember(library, broker.bootstrap, name, name)) for _ in range(3)]
        eventually(
            lambda: sorted(len(member.assignment) for member in members), lambda sizes: sizes == [0, 1, 1], timeout_s=45
        )
        idle = next(member for member in members if not member.assignment)
        busy = next(member for member in members if member.assignment)
        busy.kill()
        eventually(lambda: idle.assignment, timeout_s=45)


def test_members_of_three_libraries_share_a_group(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=PARTITIONS)
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                GroupMember(
                    "confluent-kafka",
                    broker.bootstrap,
                    name,
                    name,
                    config={"partition.assignment.strategy": "roundrobin,range"},
                )
            ),
            stack.enter_context(GroupMember("aiokafka", broker.bootstrap, name, name)),
            stack.enter_context(GroupMember("kafka-python", broker.bootstrap, name, name)),
        ]
        await_share(members)
        expected = fill(broker, name, "mixed")
        eventually(lambda: expected - read_values(members), lambda missing: not missing)


def test_records_of_a_dead_member_are_read_again_from_its_last_commit(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"%d" % n, partition=0) for n in range(20)])
    with GroupMember("confluent-kafka", broker.bootstrap, name, name, commit=False) as careless:
        eventually(lambda: len(careless.records), lambda count: count == 20)
        careless.kill()
    found = ConfluentClient().consume_group(broker.bootstrap, name, name, 20)
    assert [record.offset for record in found] == list(range(20))


def test_an_unknown_partition_strategy_is_refused_to_the_newcomer(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    eager = {"partition.assignment.strategy": "range"}
    cooperative = {"partition.assignment.strategy": "cooperative-sticky"}
    with (
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=eager) as member,
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=cooperative) as stranger,
    ):
        refused = eventually(lambda: member.errors or stranger.errors)
        assert "rotocol" in refused[0]
        assert eventually(lambda: member.assignment | stranger.assignment) == {0, 1}


def test_a_grown_topic_is_shared_anew(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    config = {"topic.metadata.refresh.interval.ms": 500}
    with (
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=config) as first,
        GroupMember("confluent-kafka", broker.bootstrap, name, name, config=config) as second,
    ):
        await_share([first, second], 2)
        admin_client(broker).create_partitions([NewPartitions(name, 4)])[name].result(30)
        await_share([first, second], 4)
