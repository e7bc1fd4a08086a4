import pytest

from core_broker.errors import ErrorCode
from core_broker.groups.offset_commits import Committer, TransactionalProducer
from core_broker.groups.offsets import CommittedOffset
from core_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.support.group_handler_world import GROUP, GroupHandlers


@pytest.mark.parametrize("version", range(1, 8))
async def test_offsets_of_one_group_by_name(broker: GroupHandlers, version: int) -> None:
    await broker.commit(("orders", 0, 5), note="note")
    request = OffsetFetchRequest(group_id=GROUP, topics=[OffsetFetchRequestTopic("orders", [0, 1])])
    answer = await broker.call(request, OffsetFetchResponse, version)
    found = answer.topics[0].partitions
    assert [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in found] == [
        (0, 5, "note", 0),
        (1, -1, "", 0),
    ]
    assert found[0].committed_leader_epoch == (4 if version >= 5 else -1)


@pytest.mark.parametrize("version", [2, 7])
async def test_null_topics_means_all_of_one_group(broker: GroupHandlers, version: int) -> None:
    await broker.commit(("orders", 0, 5), ("orders", 1, 6))
    answer = await broker.call(OffsetFetchRequest(group_id=GROUP, topics=None), OffsetFetchResponse, version)
    assert [(p.partition_index, p.committed_offset) for p in answer.topics[0].partitions] == [(0, 5), (1, 6)]


@pytest.mark.parametrize("version", [8, 9])
async def test_many_groups_at_once_known_and_unknown(broker: GroupHandlers, version: int) -> None:
    await broker.commit(("orders", 0, 5))
    groups = [
        OffsetFetchRequestGroup(GROUP, topics=None),
        OffsetFetchRequestGroup("nobody", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0])]),
        OffsetFetchRequestGroup("nobody", topics=None),
    ]
    answer = await broker.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, version)
    assert [group.error_code for group in answer.groups] == [0, 0, 0]
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 5
    assert answer.groups[1].topics[0].partitions[0].committed_offset == -1
    assert answer.groups[2].topics == []


async def test_topics_by_id(broker: GroupHandlers) -> None:
    await broker.commit(("orders", 0, 5))
    topic_id = broker.world.quorum.image.topics["orders"].topic_id
    wanted = [
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
        OffsetFetchRequestTopics(topic_id=b"x" * 16, partition_indexes=[0]),
    ]
    groups = [OffsetFetchRequestGroup(GROUP, topics=wanted), OffsetFetchRequestGroup(GROUP, topics=None)]
    answer = await broker.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, 10)
    named, everything = answer.groups
    assert [(t.topic_id, t.partitions[0].committed_offset, t.partitions[0].error_code) for t in named.topics] == [
        (topic_id, 5, 0),
        (b"x" * 16, -1, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


async def test_unstable_offset_is_held_back_only_from_those_who_ask_for_stable_ones(broker: GroupHandlers) -> None:
    await broker.commit(("orders", 0, 5), ("orders", 1, 5))
    await broker.coordinator.offset_commits.commit_in_transaction(
        Committer(group_id=GROUP),
        [("orders", 0, CommittedOffset(9))],
        producer=TransactionalProducer(producer_id=7, producer_epoch=0),
        api_version=3,
    )
    assert await broker.fetch("orders", 0, 1) == [(5, 0), (5, 0)]
    stable = await broker.fetch("orders", 0, 1, require_stable=True)
    assert stable == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (5, 0)]


@pytest.mark.parametrize("version", [1, 2, 7, 8])
async def test_refusal_is_told_where_the_version_has_room_for_it(broker: GroupHandlers, version: int) -> None:
    broker.coordinator.close()
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=[OffsetFetchRequestTopic("orders", [0])],
        groups=[OffsetFetchRequestGroup(GROUP)],
    )
    answer = await broker.call(request, OffsetFetchResponse, version)
    told = {
        1: lambda: answer.topics[0].partitions[0].error_code,
        2: lambda: answer.error_code,
        7: lambda: answer.error_code,
        8: lambda: answer.groups[0].error_code,
    }[version]()
    assert told == ErrorCode.NOT_COORDINATOR
