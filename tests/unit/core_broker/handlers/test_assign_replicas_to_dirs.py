import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages import assign_replicas_to_dirs as wire
from tests.support.handler_world import HandlerWorld


def request(world: HandlerWorld, directory: bytes, topic_id: bytes, *indexes: int) -> wire.AssignReplicasToDirsRequest:
    topic = wire.TopicData(topic_id, [wire.PartitionData(index) for index in indexes])
    epoch = world.quorum.image.brokers[1].epoch
    return wire.AssignReplicasToDirsRequest(1, epoch, [wire.DirectoryData(directory, [topic])])


async def test_the_directory_of_a_replica_is_stored(world: HandlerWorld) -> None:
    topic_id = await world.create("t")
    directory = world.logs.directories[0].directory_id
    response = await world.call(request(world, directory, topic_id, 0, 9), wire.AssignReplicasToDirsResponse, 0)
    (answer,) = response.directories
    assert [item.error_code for item in answer.topics[0].partitions] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    partition = world.quorum.image.topics["t"].partitions[0]
    assert (partition.directories, partition.leader_id) == ((directory,), 1)


async def test_a_replica_in_a_directory_that_is_not_registered_is_offline(world: HandlerWorld) -> None:
    topic_id = await world.create("t")
    response = await world.call(request(world, b"x" * 16, topic_id, 0), wire.AssignReplicasToDirsResponse, 0)
    assert response.directories[0].topics[0].partitions[0].error_code == 0
    partition = world.quorum.image.topics["t"].partitions[0]
    assert (partition.directories, partition.leader_id, partition.isr) == ((b"x" * 16,), -1, ())


@pytest.mark.parametrize(
    "broker_id,delta,code", [(9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED), (1, 1, ErrorCode.STALE_BROKER_EPOCH)]
)
async def test_an_unknown_or_stale_broker_is_refused(
    world: HandlerWorld, broker_id: int, delta: int, code: ErrorCode
) -> None:
    stale = request(world, b"x" * 16, b"t" * 16, 0)
    stale.broker_id, stale.broker_epoch = broker_id, stale.broker_epoch + delta
    assert (await world.call(stale, wire.AssignReplicasToDirsResponse, 0)).error_code == code


async def test_an_unknown_topic_is_an_error_of_its_partitions(world: HandlerWorld) -> None:
    unknown = request(world, b"x" * 16, b"t" * 16, 0)
    response = await world.call(unknown, wire.AssignReplicasToDirsResponse, 0)
    assert response.directories[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
