"""Fetches of followers, from followers, and to brokers that do not lead."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from core_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import ManualClock
from core_broker.settings.cluster import RACK_AWARE_SELECTOR
from tests.support.replica_cluster import TOPIC, TOPIC_ID, ReplicaBroker, ReplicaCluster, append

FOLLOWER = 2


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    cluster = ReplicaCluster(tmp_path)
    cluster.create_topic()
    yield cluster
    await cluster.close()


def asked(
    offset: int,
    *,
    replica: int = FOLLOWER,
    epoch: int = 0,
    last_epoch: int = -1,
    broker_epoch: int = -1,
    max_wait_ms: int = 0,
    rack: str = "",
) -> FetchRequest:
    wanted = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=0,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        replica_state=ReplicaState(replica, broker_epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])],
        rack_id=rack,
    )


async def response(broker: ReplicaBroker, request: FetchRequest) -> FetchResponse:
    found = await broker.handle(request, 18)
    assert isinstance(found, FetchResponse)
    return found


async def fetch(broker: ReplicaBroker, request: FetchRequest) -> PartitionData:
    return (await response(broker, request)).responses[0].partitions[0]


async def test_followers_read_to_the_end_and_consumers_to_the_high_watermark(cluster: ReplicaCluster) -> None:
    append(cluster[1], b"a")
    for_follower = await fetch(cluster[1], asked(0))
    assert (bool(for_follower.records), for_follower.high_watermark) == (True, 0)
    for_consumer = await fetch(cluster[1], asked(0, replica=-1))
    assert (bool(for_consumer.records), for_consumer.error_code) == (False, 0)


async def test_a_fetch_acknowledges_what_is_before_it(cluster: ReplicaCluster) -> None:
    append(cluster[1], b"a")
    await fetch(cluster[1], asked(1, replica=3, last_epoch=0))
    found = await fetch(cluster[1], asked(1, last_epoch=0))
    assert (found.high_watermark, cluster[1].partition.high_watermark) == (1, 1)


async def test_kafka_13141_a_diverging_fetch_acknowledges_nothing(cluster: ReplicaCluster) -> None:
    cluster.change(leader=3)
    cluster.change(leader=1)
    append(cluster[1], b"a")
    for follower in (2, 3):
        found = await fetch(cluster[1], asked(1, replica=follower, epoch=2, last_epoch=1))
        assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset, found.records) == (1, 0, b"")
    assert cluster[1].partition.high_watermark == 0


async def test_kafka_12996_a_missing_offset_matters_more_than_a_diverging_epoch(cluster: ReplicaCluster) -> None:
    cluster.change(leader=1, isr=(1,))
    for _ in range(3):
        append(cluster[1], b"a")
    cluster.change(leader=2)
    cluster.change(leader=1)
    append(cluster[1], b"b")
    cluster[1].partition.delete_records_before(2)
    # The leader has epochs 1 and 3: a follower with epoch 2 diverges, and is before the start.
    found = await fetch(cluster[1], asked(1, epoch=3, last_epoch=2))
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_kafka_9338_a_session_remembers_the_epoch_of_the_request(cluster: ReplicaCluster) -> None:
    session = asked(0)
    session.session_epoch = 0
    session.session_id = (await response(cluster[1], session)).session_id
    session.session_epoch, session.topics = 1, []
    assert (await response(cluster[1], session)).responses == []
    cluster.change(leader=1)
    session.session_epoch = 2
    assert (await fetch(cluster[1], session)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    session.session_epoch, session.topics = 3, asked(0, epoch=1).topics
    assert (await fetch(cluster[1], session)).error_code == ErrorCode.NONE
    session.session_epoch, session.topics = 4, []
    assert (await response(cluster[1], session)).responses == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked(0, replica=9), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (asked(0, replica=9, epoch=-1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (asked(0, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (asked(0, epoch=5), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (asked(0, epoch=1, broker_epoch=1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (asked(7, epoch=1), ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
    ids=["no replica", "no replica, no epoch", "old epoch", "new epoch", "KIP-903 old incarnation", "beyond the end"],
)
async def test_fetches_that_count_for_nothing(cluster: ReplicaCluster, request_: FetchRequest, code: ErrorCode) -> None:
    cluster.change(leader=1)
    append(cluster[1], b"a")
    found = await fetch(cluster[1], request_)
    assert found.error_code == code
    assert cluster[1].partition.high_watermark == 0


async def test_a_waiting_follower_is_answered_by_an_append(cluster: ReplicaCluster) -> None:
    waiting = asyncio.create_task(fetch(cluster[1], asked(0, max_wait_ms=60_000)))
    await asyncio.sleep(0)
    append(cluster[1], b"a")
    assert (await asyncio.wait_for(waiting, 10)).records
    assert not cluster[1].partition.replica_readers


async def test_waiting_fetches_are_answered_when_the_leader_changes(cluster: ReplicaCluster) -> None:
    requests = (asked(0, max_wait_ms=60_000), asked(0, replica=-1, max_wait_ms=60_000))
    waiting = [asyncio.create_task(response(cluster[1], request)) for request in requests]
    await asyncio.sleep(0)
    cluster.change(leader=3)
    for task in waiting:
        found = await asyncio.wait_for(task, 10)
        data = found.responses[0].partitions[0]
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (3, 1)
        assert [(node.node_id, node.host, node.port) for node in found.node_endpoints] == [(3, "broker-3", 3)]


async def test_a_waiting_consumer_is_answered_when_the_followers_have_the_record(cluster: ReplicaCluster) -> None:
    waiting = asyncio.create_task(fetch(cluster[1], asked(0, replica=-1, max_wait_ms=60_000)))
    await asyncio.sleep(0)
    append(cluster[1], b"a")
    for follower in (2, 3):
        await asyncio.sleep(0)
        assert not waiting.done()
        await fetch(cluster[1], asked(1, replica=follower, last_epoch=0))
    assert (await asyncio.wait_for(waiting, 10)).records


async def test_kip_392_a_follower_serves_consumers_up_to_its_high_watermark(cluster: ReplicaCluster) -> None:
    records = bytes(build_batch([Record(timestamp=1, value=b"v")] * 2))
    cluster[2].partition.replicate(records, high_watermark=1, log_start=0)
    assert not (await fetch(cluster[2], asked(1, replica=-1))).records
    cluster[2].partition.replicate(b"", high_watermark=2, log_start=0)
    assert (await fetch(cluster[2], asked(0, replica=-1))).records
    assert (await fetch(cluster[2], asked(0, replica=3))).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_kip_392_the_leader_sends_consumers_to_a_replica_in_their_rack(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path, racks={1: "a", 2: "b", 3: "c"}, replica_selector_class=RACK_AWARE_SELECTOR)
    cluster.create_topic()
    await fetch(cluster[1], asked(0))
    sent = await fetch(cluster[1], asked(0, replica=-1, rack="b", max_wait_ms=60_000))
    assert (sent.preferred_read_replica, sent.error_code) == (2, 0)
    assert (await fetch(cluster[1], asked(0, replica=-1, rack="a"))).preferred_read_replica == -1
    assert (await fetch(cluster[1], asked(0, replica=-1, rack="c"))).preferred_read_replica == -1
    await cluster.close()


async def test_kip_951_a_producer_learns_which_broker_leads(cluster: ReplicaCluster) -> None:
    records = bytes(build_batch([Record(timestamp=1, value=b"v")]))
    data = TopicProduceData(topic_id=TOPIC_ID, partition_data=[PartitionProduceData(0, records)])
    found = await cluster[2].handle(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 13)
    assert isinstance(found, ProduceResponse)
    (result,) = found.responses[0].partition_responses
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (result.current_leader.leader_id, result.current_leader.leader_epoch) == (1, 0)
    assert [(node.node_id, node.host, node.port) for node in found.node_endpoints] == [(1, "broker-1", 1)]


async def latest(broker: ReplicaBroker, *, replica: int = -1, version: int = 10) -> tuple[int, int]:
    wanted = ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, -1)])
    found = await broker.handle(ListOffsetsRequest(replica, 0, [wanted]), version)
    assert isinstance(found, ListOffsetsResponse)
    result = found.topics[0].partitions[0]
    return result.error_code, result.offset


async def test_kip_207_a_new_leader_gives_no_end_before_it_knows_it(cluster: ReplicaCluster) -> None:
    append(cluster[1], b"a")
    assert await latest(cluster[1]) == (0, 0)
    assert await latest(cluster[1], replica=2) == (0, 1)
    cluster.change(leader=1)
    assert await latest(cluster[1]) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert await latest(cluster[1], version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert await latest(cluster[1], replica=2) == (0, 1)
    for follower in (2, 3):
        await fetch(cluster[1], asked(1, replica=follower, epoch=1, last_epoch=0))
    assert await latest(cluster[1]) == (0, 1)


class FollowerSession:
    """The incremental session of a follower with its leader."""

    def __init__(self, cluster: ReplicaCluster) -> None:
        self._leader = cluster[1]
        self._broker_epoch = cluster[FOLLOWER].epoch()
        self._id = self._epoch = 0

    async def fetch(self, offset: int | None = None) -> list[PartitionData]:
        """Fetch with a new position, or with none, which repeats the last one; returns what the leader answers."""
        request = asked(offset or 0, last_epoch=-1 if not offset else 0, broker_epoch=self._broker_epoch)
        request.session_id, request.session_epoch = self._id, self._epoch
        if offset is None:
            request.topics = []
        found = await response(self._leader, request)
        assert not found.error_code
        self._id, self._epoch = found.session_id, self._epoch + 1
        return [partition for topic in found.responses for partition in topic.partitions]


async def test_an_idle_partition_is_left_out_of_a_session_until_it_changes(cluster: ReplicaCluster) -> None:
    session = FollowerSession(cluster)
    await session.fetch(0)
    assert await session.fetch() == []
    assert await session.fetch() == []
    append(cluster[1], b"a")
    assert [bool(found.records) for found in await session.fetch()] == [True]
    await session.fetch(1)
    assert await session.fetch() == []
    await fetch(cluster[1], asked(1, replica=3, last_epoch=0, broker_epoch=cluster[3].epoch()))
    assert [found.high_watermark for found in await session.fetch()] == [1]


async def test_a_follower_that_only_repeats_its_fetches_stays_in_sync(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    cluster = ReplicaCluster(tmp_path, clock=clock)
    cluster.create_topic()
    session = FollowerSession(cluster)
    await session.fetch(0)
    replication = cluster[1].partition.replication
    assert replication is not None
    for _ in range(3):
        clock.advance(20_000)
        await session.fetch()
    append(cluster[1], b"a")
    proposal = replication.propose(1, clock.monotonic())
    assert proposal is not None
    assert FOLLOWER in proposal.isr
    assert 3 not in proposal.isr
    await cluster.close()


async def test_a_fetch_of_an_earlier_incarnation_is_refused_in_an_idle_session(cluster: ReplicaCluster) -> None:
    session = FollowerSession(cluster)
    await session.fetch(0)
    assert await session.fetch() == []
    cluster.register(FOLLOWER)
    assert [found.error_code for found in await session.fetch()] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
