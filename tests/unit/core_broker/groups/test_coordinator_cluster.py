"""Groups over several brokers: real logs and coordinators, with leaders that change."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer
from core_broker.groups.offsets import CommittedOffset
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.classic_group_world import RANGE
from tests.support.coordinator_cluster import ClusterBroker, CoordinatorCluster, coordinator_cluster, eventually

GROUP = "readers"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[CoordinatorCluster]:
    async with coordinator_cluster(tmp_path, 1, 2) as cluster:
        cluster.create(OFFSETS_TOPIC, 1)
        yield cluster


async def join(broker: ClusterBroker, member_id: str = "") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in RANGE],
    )
    return await broker.groups.classic.join(request, api_version=3, client_id="c", client_host="/h")


async def stable_member(broker: ClusterBroker) -> str:
    joined = await join(broker)
    assignments = [SyncGroupRequestAssignment(joined.member_id, b"all")]
    request = SyncGroupRequest(
        group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
    )
    assert (await broker.groups.classic.sync(request)).assignment == b"all"
    return joined.member_id


async def commit(broker: ClusterBroker, offset: int, committer: Committer) -> None:
    await broker.groups.offset_commits.commit(committer, [("orders", 0, CommittedOffset(offset))], api_version=8)


def committed(broker: ClusterBroker) -> int | None:
    found = broker.groups.offset_commits.fetch(GROUP).get("orders", 0)
    return None if found is None else found.offset


async def move(cluster: CoordinatorCluster, former: int, leader: int) -> None:
    cluster.elect(OFFSETS_TOPIC, leader, former=former)
    await eventually(lambda: not cluster[leader].groups.is_loading)


async def test_group_moves_to_another_broker_and_back_with_its_members_and_offsets(cluster: CoordinatorCluster) -> None:
    member = await stable_member(cluster[1])
    committer = Committer(group_id=GROUP, member_id=member, generation_or_epoch=1)
    await commit(cluster[1], 5, committer)
    await move(cluster, 1, 2)
    assert committed(cluster[2]) == 5
    assert cluster[2].groups.classic.heartbeat(GROUP, member, 1, None) is ErrorCode.NONE
    await commit(cluster[2], 6, committer)
    rejoined = await join(cluster[2], member)
    assert (rejoined.error_code, rejoined.member_id, rejoined.generation_id) == (0, member, 2)
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        await commit(cluster[2], 7, committer)
    await move(cluster, 2, 1)
    assert committed(cluster[1]) == 6


async def test_every_request_about_a_group_is_sent_to_its_coordinator(cluster: CoordinatorCluster) -> None:
    await stable_member(cluster[1])
    await move(cluster, 1, 2)
    groups = cluster[1].groups
    for refused in (
        lambda: groups.find_group(GROUP),
        lambda: groups.offset_commits.fetch(GROUP),
        lambda: groups.consumer_groups.describe(GROUP),
        lambda: groups.classic.heartbeat(GROUP, "m", 1, None),
    ):
        with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
            refused()
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        await groups.delete_group(GROUP)
    assert list(groups.loaded_shards()) == []


async def test_records_of_an_old_leader_are_refused_after_it_was_replaced(cluster: CoordinatorCluster) -> None:
    committer = Committer(group_id=GROUP)
    await commit(cluster[1], 5, committer)
    await move(cluster, 1, 2)
    await move(cluster, 2, 1)
    shard = cluster[1].groups.shard_for(GROUP)
    await move(cluster, 1, 2)
    end = cluster[1].partitions.find(OFFSETS_TOPIC, 0)
    assert end is not None
    before = end.log.end_offset
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        await shard.write([(b"k", b"v")])
    assert end.log.end_offset == before
