import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.support.group_handler_world import GROUP, GroupHandlers


@pytest.mark.parametrize("version", range(2, 10))
async def test_commit_in_every_version_by_name(broker: GroupHandlers, version: int) -> None:
    assert await broker.commit(("orders", 1, 5), version=version, note="note") == [0]
    assert await broker.fetch("orders", 1) == [(5, 0)]


async def test_commit_by_topic_id(broker: GroupHandlers) -> None:
    topic_id = broker.world.quorum.image.topics["orders"].topic_id
    partitions = [OffsetCommitRequestPartition(0, 5)]
    topics = [
        OffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions),
        OffsetCommitRequestTopic(topic_id=b"x" * 16, partitions=partitions),
    ]
    request = OffsetCommitRequest(group_id=GROUP, topics=topics)
    answer = await broker.call(request, OffsetCommitResponse, 10)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.topics] == [
        (topic_id, 0),
        (b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert await broker.fetch("orders", 0) == [(5, 0)]


async def test_each_partition_is_refused_for_itself(broker: GroupHandlers) -> None:
    errors = await broker.commit(("orders", 0, 5), ("orders", 2, 5), ("nowhere", 0, 5))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [0, unknown, unknown]
    assert await broker.fetch("orders", 0, 2) == [(5, 0), (-1, 0)]


async def test_note_too_long_is_refused(broker: GroupHandlers) -> None:
    assert await broker.commit(("orders", 0, 5), note="x" * 11) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


async def test_whole_commit_is_refused_by_the_group(broker: GroupHandlers) -> None:
    member_id = await broker.stable_member()
    assert await broker.commit(("orders", 0, 5), member_id=member_id, generation=0) == [ErrorCode.ILLEGAL_GENERATION]
    assert await broker.commit(("orders", 0, 5)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert await broker.commit(("orders", 0, 5), member_id=member_id, generation=1) == [0]


async def test_retention_of_old_clients_is_honoured(broker: GroupHandlers) -> None:
    await broker.commit(("orders", 0, 5), version=2, retention_time_ms=1000)
    broker.world.clock.advance(1000)
    await broker.coordinator.expire()
    assert await broker.fetch("orders", 0) == [(-1, 0)]
