"""What administrators look at: disks, producers, transactions, the quorum, and access lists that are not there yet."""

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import LogDirNotFoundError, NoError, UnknownTopicOrPartitionError
from kafka.structs import TopicPartitionReplica

from core_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from core_broker.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from core_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.cluster_security import CAUDAL_SECURE
from tests.support.routing import leader_of
from tests.support.wire import WireConnection


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def test_log_dirs_tell_the_size_of_each_partition(broker: BrokerProcess, name: str, admin: KafkaAdminClient) -> None:
    create_topic(broker, name, partitions=2)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"x" * 1000, partition=0)])
    described = str(admin.describe_log_dirs())
    assert all(str(node.data) in described for node in broker.nodes)
    assert described.count(name) == len(broker.nodes)


def test_a_partition_moves_only_to_a_folder_of_the_broker(
    broker: BrokerProcess, name: str, admin: KafkaAdminClient
) -> None:
    create_topic(broker, name)
    replica = TopicPartitionReplica(name, 0, 1)
    assert admin.alter_replica_log_dirs({replica: str(broker.data)}) == {replica: NoError}
    assert admin.alter_replica_log_dirs({replica: "/nowhere"}) == {replica: LogDirNotFoundError}
    unknown = TopicPartitionReplica(name, 7, 1)
    assert admin.alter_replica_log_dirs({unknown: str(broker.data)}) == {unknown: UnknownTopicOrPartitionError}


def test_producers_of_a_partition_are_described(broker: BrokerProcess, name: str, admin: KafkaAdminClient) -> None:
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"v", partition=0)], idempotent=True)
    described = admin.describe_producers([TopicPartition(name, 0)])
    assert "producer_id" in str(described)


def test_transactions_are_listed_and_described(broker: BrokerProcess, name: str, admin: KafkaAdminClient) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(name, b"v", partition=0)
    producer.flush(TIMEOUT_S)
    assert name in str(admin.list_transactions())
    described = str(admin.describe_transactions([name]))
    assert "Ongoing" in described or "ONGOING" in described
    assert name in described
    producer.commit_transaction(TIMEOUT_S)
    eventually(
        lambda: str(admin.describe_transactions([name])).lower().replace("_", ""),
        lambda described: "completecommit" in described,
    )


def test_the_quorum_describes_itself(admin: KafkaAdminClient) -> None:
    described = str(admin.describe_metadata_quorum())
    assert "leader_id" in described
    assert "high_watermark" in described


def test_features_are_described(admin: KafkaAdminClient) -> None:
    described = str(admin.describe_features())
    assert "transaction.version" in described
    assert "metadata.version" in described


def test_partitions_of_topics_are_described_in_pages(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=5)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)], response_partition_limit=3)
    with WireConnection(broker.bootstrap) as connection:
        first = connection.request(request, 0, DescribeTopicPartitionsResponse)
    assert [partition.partition_index for partition in first.topics[0].partitions] == [0, 1, 2]
    assert first.next_cursor is not None
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == (name, 3)


def test_topics_with_configs_are_listed_as_resources(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "1000"})
    request = ListConfigResourcesRequest(resource_types=[2])
    with WireConnection(broker.bootstrap) as connection:
        answer = connection.request(request, 1, ListConfigResourcesResponse)
    assert name in {resource.resource_name for resource in answer.config_resources}


def test_the_end_of_a_leader_epoch_is_told(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"v", partition=0) for _ in range(3)])
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=[partition])]
    )
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        answer = connection.request(request, 4, OffsetForLeaderEpochResponse)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 3)


@pytest.mark.skipif(CAUDAL_SECURE, reason="secured clusters have an authorizer")
def test_access_lists_are_disabled_and_say_so(broker: BrokerProcess, name: str) -> None:
    rule = AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.LITERAL,
        "User:ann",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    (done,) = admin_client(broker).create_acls([rule]).values()
    with pytest.raises(KafkaException) as failure:
        done.result(TIMEOUT_S)
    assert failure.value.args[0].code() == KafkaError.SECURITY_DISABLED


def test_two_loops_of_asyncio_clients_share_the_broker(broker: BrokerProcess, name: str) -> None:
    """Clients that come and go leave nothing behind that would disturb the next."""

    async def send(number: int) -> int:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            done = await producer.send_and_wait(name, b"%d" % number, partition=0)
            return int(done.offset)

    async def send_many() -> list[int]:
        return list(await asyncio.gather(*(send(number) for number in range(20))))

    create_topic(broker, name)
    assert sorted(asyncio.run(send_many())) == list(range(20))
