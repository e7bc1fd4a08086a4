import pytest

from core_broker.cluster.controller.topics import MorePartitions
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from core_broker.protocol.records import Record, build_batch
from tests.support.handler_world import HandlerWorld

START = 1_700_000_000_000


async def ask(
    world: HandlerWorld, *wanted: ListOffsetsPartition, version: int = 11, isolation: int = 0, replica: int = -1
) -> list[ListOffsetsPartitionResponse]:
    request = ListOffsetsRequest(replica, isolation, [ListOffsetsTopic("t", list(wanted))])
    return (await world.call(request, ListOffsetsResponse, version)).topics[0].partitions


async def at(world: HandlerWorld, timestamp: int, **how: int) -> tuple[int, int, int, int]:
    (found,) = await ask(world, ListOffsetsPartition(0, -1, timestamp), **how)
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


@pytest.fixture
async def filled(world: HandlerWorld) -> HandlerWorld:
    await world.create("t")
    world.append("t", START, START + 30)
    world.append("t", START + 10, START + 20)
    return world


@pytest.mark.parametrize("version", range(1, 12))
async def test_every_version_tells_the_end_and_the_start(filled: HandlerWorld, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    filled.partition("t").delete_records_before(1)
    assert await at(filled, -1, version=version) == (0, -1, 4, epoch)
    assert await at(filled, -2, version=version) == (0, -1, 1, epoch)


@pytest.mark.parametrize("timestamp,offset", [(0, 0), (START + 1, 1), (START + 30, 1), (START + 31, -1)])
async def test_a_time_is_the_first_record_at_or_after_it(filled: HandlerWorld, timestamp: int, offset: int) -> None:
    code, _, found, epoch = await at(filled, timestamp)
    assert (code, found, epoch) == (0, offset, -1 if offset < 0 else 0)


async def test_the_time_of_the_record_that_was_found_is_told(filled: HandlerWorld) -> None:
    assert await at(filled, START + 1) == (0, START + 30, 1, 0)


async def test_the_greatest_timestamp_is_found(filled: HandlerWorld) -> None:
    assert await at(filled, -3) == (0, START + 30, 1, 0)


async def test_a_deleted_record_is_never_the_one_with_the_greatest_timestamp(filled: HandlerWorld) -> None:
    filled.partition("t").delete_records_before(2)
    assert await at(filled, -3) == (0, -1, -1, -1)


async def test_an_empty_partition_has_no_greatest_timestamp(world: HandlerWorld) -> None:
    await world.create("t")
    assert await at(world, -3) == (0, -1, -1, -1)


async def test_the_earliest_local_offset_is_the_earliest(filled: HandlerWorld) -> None:
    assert (await at(filled, -4))[2] == 0


@pytest.mark.parametrize("timestamp", [-5, -6])
async def test_there_is_nothing_in_tiered_storage(filled: HandlerWorld, timestamp: int) -> None:
    assert await at(filled, timestamp) == (0, -1, -1, -1)


@pytest.mark.parametrize("timestamp,version", [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
async def test_a_special_time_that_the_version_does_not_have_is_refused(
    filled: HandlerWorld, timestamp: int, version: int
) -> None:
    assert (await at(filled, timestamp, version=version))[0] == ErrorCode.UNSUPPORTED_VERSION


async def test_readers_of_committed_data_see_the_end_before_an_open_transaction(filled: HandlerWorld) -> None:
    batch = build_batch(
        [Record(timestamp=START + 50, value=b"v")],
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    filled.partition("t").append(batch, acks_all=False)
    assert (await at(filled, -1, isolation=1))[2] == 4
    assert (await at(filled, -1, isolation=0))[2] == 5
    assert (await at(filled, START + 40, isolation=1))[2] == -1
    assert (await at(filled, START + 40, isolation=0))[2] == 4


@pytest.mark.parametrize("epoch,code", [(0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_the_leader_epoch_of_the_asker_is_checked(filled: HandlerWorld, epoch: int, code: int) -> None:
    (found,) = await ask(filled, ListOffsetsPartition(0, epoch, -1))
    assert found.error_code == code


async def test_an_old_leader_epoch_is_fenced(filled: HandlerWorld) -> None:
    filled.partition("t").leader_epoch = 5
    (found,) = await ask(filled, ListOffsetsPartition(0, 4, -1))
    assert found.error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_one_bad_partition_does_not_spoil_the_others(filled: HandlerWorld) -> None:
    await filled.controller.create_partitions([MorePartitions(name="t", count=3)])
    results = await ask(filled, *(ListOffsetsPartition(index, -1, -1) for index in (0, 7, 1, 1)))
    assert [result.error_code for result in results] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
