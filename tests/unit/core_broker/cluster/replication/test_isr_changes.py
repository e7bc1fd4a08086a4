"""Leaders have the controller change the in-sync replicas."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.replicas.leader import RECOVERED, RECOVERING
from core_broker.service.clock import ManualClock
from tests.support.replica_cluster import ReplicaCluster, append, eventually


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    cluster = ReplicaCluster(tmp_path, replica_fetch_wait_max_ms=20, replica_fetch_backoff_ms=5)
    yield cluster
    await cluster.close()


def advance(cluster: ReplicaCluster, milliseconds: int) -> None:
    assert isinstance(cluster.clock, ManualClock)
    cluster.clock.advance(milliseconds)


async def test_a_silent_follower_leaves_and_joins_again_when_it_is_back(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.cut = {3}
    cluster.start()
    append(cluster[1], b"a", acks_all=True)
    await eventually(lambda: cluster[2].partition.log.end_offset == 1)
    advance(cluster, 29_000)
    cluster[1].partition.check_isr()
    assert cluster.description.isr == (1, 2, 3)
    advance(cluster, 2_000)
    await eventually(lambda: cluster[1].partition.replication.followers[2].fetched_at == 31)  # type: ignore[union-attr]
    cluster[1].partition.check_isr()
    await eventually(lambda: cluster.description.isr == (1, 2))
    await eventually(lambda: cluster[1].partition.high_watermark == 1)
    cluster.cut = set()
    await eventually(lambda: cluster.description.isr == (1, 2, 3))


async def test_a_lost_answer_is_asked_for_again(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1,))
    cluster.cut = {0}
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: cluster[1].partition.replication.proposal is not None)  # type: ignore[union-attr]
    await eventually(lambda: cluster.messages[1, 0] > 1)
    assert cluster.description.isr == (1,)
    cluster.cut = set()
    await eventually(lambda: cluster.description.isr == (1, 2, 3))


async def test_a_change_made_by_the_controller_meanwhile_wins(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1, 2))
    cluster.is_manual = True
    cluster.change(isr=(1,))  # the leader does not know yet
    cluster[1].start()
    cluster[3].start()
    await eventually(lambda: cluster[1].partition.replication.proposal is not None)  # type: ignore[union-attr]
    await eventually(lambda: cluster.messages[0, 1] > 0)
    assert cluster.description.isr == (1,)
    cluster.is_manual = False
    for broker in cluster.brokers.values():
        broker.apply_all()
    cluster[2].start()
    await eventually(lambda: cluster.description.isr == (1, 2, 3))


async def test_kafka_14617_a_replica_that_restarted_meanwhile_is_not_taken_in(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.change(isr=(1,))
    cluster.gates = []
    cluster[1].start()
    partition, before = cluster[1].partition, cluster.description
    partition.follower_fetched(2, 0, log_start=0, broker_epoch=cluster[2].epoch())
    await eventually(lambda: bool(cluster.gates))
    cluster.register(2)  # another incarnation, which may have lost records
    for _ in ("the proposal", "its answer"):
        await eventually(lambda: bool(cluster.gates))
        cluster.gates.pop().set_result(True)
    await eventually(lambda: partition.replication is not None and partition.replication.proposal is None)
    assert cluster.description == before
    cluster.gates = None
    partition.follower_fetched(2, 0, log_start=0, broker_epoch=cluster[2].epoch())
    await eventually(lambda: cluster.description.isr == (1, 2))


async def test_a_proposal_without_an_answer_is_sent_again_within_a_session(tmp_path: Path) -> None:
    cluster = ReplicaCluster(
        tmp_path, replica_fetch_wait_max_ms=20, broker_heartbeat_interval_ms=10, broker_session_timeout_ms=50
    )
    cluster.create_topic()
    cluster.change(isr=(1,))
    cluster.silent = {0}
    cluster.start()
    await eventually(lambda: cluster.messages[1, 0] == 1)
    cluster.silent = set()
    await eventually(lambda: cluster.description.isr == (1, 2, 3))
    await cluster.close()


async def test_the_only_replica_reports_that_it_has_recovered_after_an_unclean_election(
    cluster: ReplicaCluster,
) -> None:
    cluster.create_topic((1,))
    cluster.start()
    cluster.change(leader=1, isr=(1,), recovery=RECOVERING)
    append(cluster[1], b"a", acks_all=True)
    assert cluster[1].partition.high_watermark == 1
    await eventually(lambda: cluster.description.leader_recovery_state == RECOVERED)
    assert cluster.description.isr == (1,)
    assert cluster[1].partition.replication is None, "without followers there is nothing to keep account of"
    append(cluster[1], b"b", acks_all=True)
    assert cluster[1].partition.high_watermark == 2
