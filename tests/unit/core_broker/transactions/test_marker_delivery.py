import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import ErrorCode
from core_broker.protocol.messages import write_txn_markers as wire
from core_broker.protocol.stored import metadata as stored
from core_broker.transactions.markers import MarkerRequest
from tests.support.coordinator_cluster import CoordinatorCluster, coordinator_cluster

MARKER = MarkerRequest(producer_id=7, producer_epoch=0, commit=True, coordinator_epoch=3, transaction_version=0)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[CoordinatorCluster]:
    async with coordinator_cluster(tmp_path, 1, 2) as cluster:
        cluster.create("orders", 1, 2)
        yield cluster


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("index", [0, 1])
async def test_marker_is_written_by_the_leader(cluster: CoordinatorCluster, index: int, version: int) -> None:
    cluster.version = version
    assert await cluster[1].markers.write("orders", index, MARKER) is ErrorCode.NONE
    (header,) = (header for header, _ in cluster[index + 1].partitions.get("orders", index).log.read_batches(0, 1))
    assert (header.is_control, header.producer_id) == (True, 7)
    assert cluster.requests == ([(1, 2, "markers")] if index else [])


async def test_partition_of_a_deleted_topic_is_done(cluster: CoordinatorCluster) -> None:
    assert await cluster[1].markers.write("gone", 0, MARKER) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster[1].markers.write("orders", 7, MARKER) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_leader_that_does_not_know_the_topic_yet_is_asked_again(cluster: CoordinatorCluster) -> None:
    cluster.cut_off.add(2)
    cluster.create("new", 2)
    cluster.cut_off.clear()
    assert await cluster[1].markers.write("new", 0, MARKER) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_partition_without_a_live_leader_is_tried_again(cluster: CoordinatorCluster) -> None:
    cluster.commit(stored.FenceBrokerRecord(id=2, epoch=1))
    assert await cluster[1].markers.write("orders", 1, MARKER) is ErrorCode.LEADER_NOT_AVAILABLE
    assert cluster.requests == []


async def test_leader_that_cannot_be_reached_is_tried_again(cluster: CoordinatorCluster) -> None:
    cluster.cut_off.add(2)
    assert await cluster[1].markers.write("orders", 1, MARKER) is ErrorCode.NETWORK_EXCEPTION


async def test_marker_of_a_replaced_coordinator_is_refused(cluster: CoordinatorCluster) -> None:
    assert await cluster[1].markers.write("orders", 1, MARKER) is ErrorCode.NONE
    older = wire.WritableTxnMarker(7, 0, False, [wire.WritableTxnMarkerTopic("orders", [1])], 2)
    response = await cluster[2].call(wire.WriteTxnMarkersRequest([older]), 2)
    assert response == wire.WriteTxnMarkersResponse(
        [
            wire.WritableTxnMarkerResult(
                7,
                [
                    wire.WritableTxnMarkerTopicResult(
                        "orders",
                        [wire.WritableTxnMarkerPartitionResult(1, ErrorCode.TRANSACTION_COORDINATOR_FENCED)],
                    )
                ],
            )
        ]
    )


async def test_retry_of_a_marker_waits_until_the_first_one_is_committed(cluster: CoordinatorCluster) -> None:
    bumped = MarkerRequest(producer_id=7, producer_epoch=1, commit=True, coordinator_epoch=3, transaction_version=2)
    cluster.produce("orders", 0, b"v", (7, 0))
    assert await cluster[1].markers.write("orders", 0, bumped) is ErrorCode.NONE
    partition = cluster[1].partitions.get("orders", 0)
    partition.high_watermark = 1  # as if the replicas did not have the marker yet
    retry = asyncio.ensure_future(cluster[1].markers.write("orders", 0, bumped))
    await asyncio.sleep(0)
    assert not retry.done()
    cluster.produce("orders", 0, b"w", (8, 0))  # which moves the high watermark beyond both
    assert await retry is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_markers_of_offsets_complete_them_where_the_group_is(cluster: CoordinatorCluster) -> None:
    cluster.create(OFFSETS_TOPIC, 2)
    assert await cluster[1].markers.write(OFFSETS_TOPIC, 0, MARKER) is ErrorCode.NONE
    assert cluster[2].partitions.get(OFFSETS_TOPIC, 0).log.end_offset == 1
