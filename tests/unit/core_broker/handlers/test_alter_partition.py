import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages import alter_partition as wire
from tests.support.handler_world import HandlerWorld


@pytest.mark.parametrize("version", [2, 3])
async def test_the_state_of_a_partition_is_answered_in_every_version(world: HandlerWorld, version: int) -> None:
    topic_id = await world.create("t")
    isr = {"new_isr": [1]} if version < 3 else {"new_isr_with_epochs": [wire.BrokerState(1, -1)]}
    partition = wire.PartitionData(partition_index=0, **isr)
    epoch = world.quorum.image.brokers[1].epoch
    request = wire.AlterPartitionRequest(1, epoch, [wire.TopicData(topic_id, [partition])])
    response = await world.call(request, wire.AlterPartitionResponse, version)
    (answer,) = response.topics[0].partitions
    assert (answer.error_code, answer.leader_id, answer.isr, answer.partition_epoch) == (0, 1, [1], 0)


async def test_an_unregistered_sender_is_refused_as_a_whole(world: HandlerWorld) -> None:
    response = await world.call(wire.AlterPartitionRequest(1, 0), wire.AlterPartitionResponse, 3)
    assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
