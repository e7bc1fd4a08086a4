from core_broker.errors import ErrorCode
from core_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from tests.support.handler_world import HandlerWorld


async def test_every_block_of_producer_ids_is_new(world: HandlerWorld) -> None:
    request = AllocateProducerIdsRequest(1, world.quorum.image.brokers[1].epoch)
    blocks = [await world.call(request, AllocateProducerIdsResponse, 0) for _ in range(2)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [(0, 1000), (1000, 1000)]


async def test_a_stale_broker_gets_no_producer_ids(world: HandlerWorld) -> None:
    response = await world.call(AllocateProducerIdsRequest(1, 0), AllocateProducerIdsResponse, 0)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
