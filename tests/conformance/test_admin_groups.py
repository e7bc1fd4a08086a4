"""Groups as administrators see them: listed, described, moved and deleted."""

import asyncio

import pytest
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from kafka import KafkaAdminClient
from kafka import TopicPartition as PureTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.group_member import GroupMember


def committed(broker: BrokerProcess, group: str, topic: str) -> int:
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    (found,) = admin_client(broker).list_consumer_group_offsets([request]).values()
    offset: int = found.result(TIMEOUT_S).topic_partitions[0].offset
    return offset


@pytest.fixture
def group(broker: BrokerProcess, name: str) -> str:
    """A group without members that has read five records of the topic of its name."""
    create_topic(broker, name)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"%d" % n, partition=0) for n in range(5)])
    ConfluentClient().consume_group(broker.bootstrap, name, name, 5)
    return name


def test_every_client_lists_the_group(broker: BrokerProcess, group: str) -> None:
    listed = admin_client(broker).list_consumer_groups().result(TIMEOUT_S)
    assert group in {found.group_id for found in listed.valid}
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        assert group in str(admin.list_groups())
    finally:
        admin.close()

    async def ask() -> list[tuple[object, ...]]:
        aio = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await aio.start()
        try:
            return list(await aio.list_consumer_groups())
        finally:
            await aio.close()

    assert group in {found[0] for found in asyncio.run(ask())}


def test_groups_are_listed_by_state(broker: BrokerProcess, group: str) -> None:
    for state, is_listed in ((ConsumerGroupState.EMPTY, True), (ConsumerGroupState.STABLE, False)):
        listed = admin_client(broker).list_consumer_groups(states={state}).result(TIMEOUT_S)
        assert (group in {found.group_id for found in listed.valid}) == is_listed


def test_a_group_with_members_is_described_with_their_partitions(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with GroupMember("confluent-kafka", broker.bootstrap, name, name, config={"client.id": "me"}) as member:
        eventually(lambda: len(member.assignment), lambda count: count == 2)
        (found,) = (f.result(TIMEOUT_S) for f in admin_client(broker).describe_consumer_groups([name]).values())
    assert found.state == ConsumerGroupState.STABLE
    assert found.partition_assignor == "range"
    assert [described.client_id for described in found.members] == ["me"]
    assert [described.host for described in found.members] == ["/127.0.0.1"]
    assert len(found.members[0].assignment.topic_partitions) == 2


def test_committed_offsets_are_told_to_every_client(broker: BrokerProcess, group: str) -> None:
    assert committed(broker, group, group) == 5

    async def ask() -> int:
        aio = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await aio.start()
        try:
            found = await aio.list_consumer_group_offsets(group)
            return int(found[AioTopicPartition(group, 0)].offset)
        finally:
            await aio.close()

    assert asyncio.run(ask()) == 5


def test_offsets_of_an_empty_group_can_be_set(broker: BrokerProcess, group: str) -> None:
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(group, 0, 2)])
    (done,) = admin_client(broker).alter_consumer_group_offsets([request]).values()
    done.result(TIMEOUT_S)
    found = ConfluentClient().consume_group(broker.bootstrap, group, group, 3)
    assert [record.offset for record in found] == [2, 3, 4]


def test_offsets_of_a_group_with_members_cannot_be_set(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with GroupMember("confluent-kafka", broker.bootstrap, name, name) as member:
        eventually(lambda: member.assignment)
        request = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0, 2)])
        (done,) = admin_client(broker).alter_consumer_group_offsets([request]).values()
        (refused,) = done.result(TIMEOUT_S).topic_partitions
    assert refused.error.code() == KafkaError.UNKNOWN_MEMBER_ID


def test_an_empty_group_is_deleted_with_its_offsets(broker: BrokerProcess, group: str) -> None:
    (done,) = admin_client(broker).delete_consumer_groups([group]).values()
    done.result(TIMEOUT_S)
    listed = admin_client(broker).list_consumer_groups().result(TIMEOUT_S)
    assert group not in {found.group_id for found in listed.valid}
    assert committed(broker, group, group) == -1001


def test_a_group_with_members_is_not_deleted(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with GroupMember("confluent-kafka", broker.bootstrap, name, name) as member:
        eventually(lambda: member.assignment)
        (done,) = admin_client(broker).delete_consumer_groups([name]).values()
        with pytest.raises(KafkaException) as failure:
            done.result(TIMEOUT_S)
    assert failure.value.args[0].code() == KafkaError.NON_EMPTY_GROUP


def test_an_unknown_group_cannot_be_deleted(broker: BrokerProcess, name: str) -> None:
    (done,) = admin_client(broker).delete_consumer_groups([name]).values()
    with pytest.raises(KafkaException) as failure:
        done.result(TIMEOUT_S)
    assert failure.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_kafka_python_moves_and_deletes_a_group(broker: BrokerProcess, group: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.alter_group_offsets(group, {PureTopicPartition(group, 0): OffsetAndMetadata(1, "", -1)})
        assert committed(broker, group, group) == 1
        assert "Empty" in str(admin.describe_groups([group]))
        admin.delete_group_offsets(group, [PureTopicPartition(group, 0)])
        assert committed(broker, group, group) == -1001
        admin.delete_groups([group])
    finally:
        admin.close()
    listed = admin_client(broker).list_consumer_groups().result(TIMEOUT_S)
    assert group not in {found.group_id for found in listed.valid}
