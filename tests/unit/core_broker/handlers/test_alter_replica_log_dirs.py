"""AlterReplicaLogDirs, and how DescribeLogDirs shows what it has begun; UnregisterBroker."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages import alter_replica_log_dirs as alter
from core_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from core_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from core_broker.protocol.stored.metadata import RegisterBrokerRecord
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld


@pytest.fixture
async def world(tmp_path: Path, settings: BrokerSettings) -> AsyncIterator[HandlerWorld]:
    """A broker with two directories."""
    world = HandlerWorld(tmp_path / "a", settings, ManualClock(1_700_000_000_000), tmp_path / "b")
    await world.register()
    yield world
    await world.close()


async def move(world: HandlerWorld, path: Path, topic: str, *partitions: int, version: int = 2) -> list[int]:
    """The error of each partition."""
    wanted = alter.AlterReplicaLogDir(str(path), [alter.AlterReplicaLogDirTopic(topic, list(partitions))])
    request = alter.AlterReplicaLogDirsRequest([wanted])
    (result,) = (await world.call(request, alter.AlterReplicaLogDirsResponse, version)).results
    assert result.topic_name == topic
    assert [item.partition_index for item in result.partitions] == list(partitions)
    return [item.error_code for item in result.partitions]


async def described(world: HandlerWorld) -> dict[str, list[tuple[str, int, int, bool]]]:
    """Topic, partition, lag and whether it is a copy, by the name of the directory."""
    results = (await world.call(DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)).results
    return {
        Path(result.log_dir).name: [
            (topic.name, found.partition_index, found.offset_lag, found.is_future_key)
            for topic in result.topics
            for found in topic.partitions
        ]
        for result in results
    }


@pytest.mark.parametrize("version", [1, 2])
async def test_a_move_is_seen_with_its_lag(world: HandlerWorld, tmp_path: Path, version: int) -> None:
    await world.create("t")
    world.append("t", 1, 2, 3)
    assert await move(world, tmp_path / "b", "t", 0, version=version) == [0]
    assert await described(world) == {"a": [("t", 0, 0, False)], "b": [("t", 0, 3, True)]}
    assert await move(world, tmp_path / "a", "t", 0, version=version) == [0]
    assert await described(world) == {"a": [("t", 0, 0, False)], "b": []}


async def test_what_cannot_be_moved_is_told_by_its_error(world: HandlerWorld, tmp_path: Path) -> None:
    await world.create("t")
    assert await move(world, tmp_path / "c", "t", 0) == [ErrorCode.LOG_DIR_NOT_FOUND]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await move(world, tmp_path / "b", "t", 0, 1) == [0, unknown]
    assert await move(world, tmp_path / "b", "no", 0) == [unknown]
    assert await move(world, tmp_path / "b", "t" * 249, 0) == [ErrorCode.INVALID_TOPIC_EXCEPTION]


async def test_a_partition_is_made_where_it_was_asked_for_before_it_came(world: HandlerWorld, tmp_path: Path) -> None:
    assert await move(world, tmp_path / "b", "later", 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    await world.create("later")
    assert (await described(world))["b"] == [("later", 0, 0, False)]


async def unregister(world: HandlerWorld, broker_id: int) -> UnregisterBrokerResponse:
    return await world.call(UnregisterBrokerRequest(broker_id), UnregisterBrokerResponse, 0)


async def test_an_unknown_broker_cannot_be_unregistered(world: HandlerWorld) -> None:
    response = await unregister(world, 77)
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert response.error_message == "Broker ID 77 is not currently registered"


async def test_the_broker_that_runs_is_not_unregistered(world: HandlerWorld) -> None:
    response = await unregister(world, 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "is running" in (response.error_message or "")
    assert set(world.quorum.image.brokers) == {1}


async def test_a_broker_that_is_gone_is_unregistered(world: HandlerWorld) -> None:
    await world.quorum.append([RegisterBrokerRecord(broker_id=2, incarnation_id=b"2" * 16, broker_epoch=9)])
    response = await unregister(world, 2)
    assert (response.error_code, response.error_message) == (0, None)
    assert set(world.quorum.image.brokers) == {1}
