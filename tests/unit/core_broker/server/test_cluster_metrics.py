"""The metrics of a node about replication, the controller and the quorum."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from core_broker.cluster.controller.topics import NewTopic
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from core_broker.protocol.stored import metadata as stored
from core_broker.raft.roles import Leader, ReplicaProgress
from core_broker.raft.voters import ReplicaKey
from core_broker.server.cluster_metrics import (
    applied_families,
    controller_families,
    quorum_families,
    replication_families,
)
from core_broker.service.clock import ManualClock
from core_broker.service.metrics import Family
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld
from tests.support.replica_cluster import TOPIC, TOPIC_ID, ReplicaBroker, ReplicaCluster, append, eventually


def read(families: Iterable[Family]) -> dict[str, float]:
    """The metrics without labels, by name; of the others those with one sample."""
    return {family.name: family.samples[0][1] for family in families if len(family.samples) == 1}


def replication(broker: ReplicaBroker) -> dict[str, float]:
    found = read(replication_families(broker.partitions, broker.image))
    return {name.removeprefix("kafka_server_replicamanager_"): value for name, value in found.items()}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    cluster = ReplicaCluster(tmp_path, replica_fetch_wait_max_ms=20, replica_fetch_backoff_ms=5)
    yield cluster
    await cluster.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(1_700_000_000_000))
    await world.register()
    yield world
    await world.close()


@pytest.mark.parametrize(
    "isr,under_replicated,under_min,at_min",
    [((1, 2, 3), 0, 0, 0), ((1, 2), 1, 0, 1), ((1,), 1, 1, 0)],
)
async def test_a_leader_counts_partitions_whose_replicas_are_not_all_in_sync(
    cluster: ReplicaCluster, isr: tuple[int, ...], under_replicated: int, under_min: int, at_min: int
) -> None:
    cluster.create_topic(min_insync_replicas="2")
    cluster.change(isr=isr)
    found = replication(cluster[1])
    assert (found["partitioncount"], found["leadercount"]) == (1, 1)
    assert found["underreplicatedpartitions"] == under_replicated
    assert (found["underminisrpartitioncount"], found["atminisrpartitioncount"]) == (under_min, at_min)
    follower = replication(cluster[2])
    assert (follower["leadercount"], follower["underreplicatedpartitions"]) == (0, 0)


async def test_a_replica_that_is_being_added_is_not_missing(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.commit(
        stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2, 3], adding_replicas=[3])
    )
    found = replication(cluster[1])
    assert (found["underreplicatedpartitions"], found["reassigningpartitions"]) == (0, 1)
    cluster.change(isr=(1,))
    assert replication(cluster[1])["underreplicatedpartitions"] == 1


async def test_changes_of_in_sync_replicas_are_counted_once_whoever_makes_them(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1, 2))  # as the controller does for a broker that is fenced
    found = replication(cluster[1])
    assert (found["isrshrinks_total"], found["isrexpands_total"]) == (1, 0)
    cluster.start()
    await eventually(lambda: cluster.description.isr == (1, 2, 3))
    await eventually(lambda: replication(cluster[1])["isrexpands_total"] == 1)
    cluster.change(leader=2, isr=(2,))
    assert replication(cluster[1])["isrshrinks_total"] == 1, "the next leader's ISR is not this one's change"


async def test_a_change_is_counted_when_the_answer_is_quicker_than_the_metadata(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1, 2))
    cluster.is_manual = True
    cluster.start()
    await eventually(lambda: cluster[1].partition.isr == (1, 2, 3))
    assert replication(cluster[1])["isrexpands_total"] == 1
    cluster[1].apply_all()
    assert replication(cluster[1])["isrexpands_total"] == 1


async def test_a_change_that_the_controller_rejects_is_counted(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1, 2))
    cluster.is_manual = True
    cluster.change(isr=(1,))  # the leader does not know yet
    cluster[1].start()
    cluster[3].start()
    await eventually(lambda: replication(cluster[1])["failedisrupdates_total"] > 0)
    assert replication(cluster[1])["isrexpands_total"] == 0


async def test_replicated_bytes_are_counted_on_both_sides(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"a" * 1000)
    await eventually(lambda: cluster[2].partition.log.end_offset == 1)
    sent, received = cluster[1].partition.traffic, cluster[2].partition.traffic
    assert sent.replication_bytes_out == received.replication_bytes_in > 1000
    assert (sent.bytes_out, sent.fetch_requests, received.bytes_in) == (0, 0, 0), "consumers and producers alone"


async def test_a_follower_tells_how_many_committed_records_it_lacks(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.change(isr=(1, 2))
    follower = cluster[3]
    follower.partition.replicate(b"", high_watermark=40, log_start=0)
    families = {family.name: family for family in replication_families(follower.partitions, follower.image)}
    lag = families["kafka_server_fetcherlagmetrics_consumerlag"]
    assert lag.labels == ("clientId", "topic", "partition")
    assert lag.samples == [(("ReplicaFetcherThread-0-1", TOPIC, "0"), 40)]
    assert families["kafka_server_replicafetchermanager_maxlag"].samples == [(("Replica",), 40)]
    cluster.change(leader=-1, isr=(1,))
    families = {family.name: family for family in replication_families(follower.partitions, follower.image)}
    assert families["kafka_server_fetcherlagmetrics_consumerlag"].samples == []


async def test_a_controller_counts_brokers_partitions_and_leaders(world: HandlerWorld) -> None:
    await world.create("orders", 2)
    features = [Feature(*feature) for feature in world.quorum.image.brokers[1].features]
    request = BrokerRegistrationRequest(
        broker_id=2,
        cluster_id=world.quorum.cluster_id,
        incarnation_id=b"j" * 16,
        features=features,
        log_dirs=[b"d" * 16],
    )
    await world.controller.register_broker(request)
    await world.controller.create_topics([NewTopic(name="moved", assignments={0: [1]})])
    change = stored.PartitionChangeRecord(
        partition_id=0, topic_id=world.quorum.image.topics["moved"].topic_id, leader=-1, isr=[1]
    )
    await world.quorum.append([change])
    found = read(controller_families(world.controller, world.quorum))
    values = {name.removeprefix("kafka_controller_kafkacontroller_"): value for name, value in found.items()}
    assert values["activecontrollercount"] == 1
    assert (values["activebrokercount"], values["fencedbrokercount"]) == (1, 1)
    assert (values["globaltopiccount"], values["globalpartitioncount"]) == (2, 3)
    assert (values["offlinepartitionscount"], values["preferredreplicaimbalancecount"]) == (1, 1)
    assert values["lastappliedrecordoffset"] == values["lastcommittedrecordoffset"] == world.quorum.image.offset
    assert found["kafka_controller_controllerstats_uncleanleaderelections_total"] == 0


async def test_a_node_tells_the_leader_and_the_offsets_of_the_quorum(world: HandlerWorld) -> None:
    found = read(quorum_families(world.quorum, world.clock))
    values = {name.removeprefix("kafka_server_raft_metrics_"): value for name, value in found.items()}
    quorum = world.quorum
    assert (values["current_leader"], values["current_epoch"]) == (1, quorum.leader_epoch)
    assert values["high_watermark"] == values["log_end_offset"] == quorum.end_offset
    assert (values["number_of_voters"], values["number_of_observers"]) == (1, 0)
    (state,) = (family for family in quorum_families(quorum, world.clock) if family.name.endswith("current_state"))
    assert state.samples == [(("leader",), 1)]


async def test_a_leader_tells_how_far_each_other_node_is_behind(world: HandlerWorld) -> None:
    quorum, old_disk, new_disk = world.quorum, ReplicaKey(3, b"o" * 16), ReplicaKey(3, b"n" * 16)
    now, end = asyncio.get_running_loop().time(), quorum.end_offset
    assert isinstance(quorum.node.role, Leader)
    quorum.node.role.replicas = {
        new_disk: ReplicaProgress(end_offset=end - 1, fetched_at=now, caught_up_at=now - 2),
        old_disk: ReplicaProgress(end_offset=1, fetched_at=now - 60, caught_up_at=now - 60),
        ReplicaKey(2, b"t" * 16): ReplicaProgress(),
    }
    families = {family.name: dict(family.samples) for family in quorum_families(quorum, world.clock)}
    records, seconds = families["caudal_quorum_replica_lag_records"], families["caudal_quorum_replica_lag_seconds"]
    assert records == {("2", "observer"): end, ("3", "observer"): 1}
    assert seconds["2", "observer"] == math.inf
    assert 2 <= seconds["3", "observer"] < 60, "the disk that it has now"
    samples = [family.samples for family in quorum_families(quorum, world.clock) if "lag" in family.name]
    assert all(len(found) == 2 for found in samples), "Prometheus takes each series once"


async def test_a_change_that_a_part_of_the_broker_cannot_apply_is_counted(world: HandlerWorld) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("on purpose")

    world.quorum.subscribe(cast("Any", fail))
    with pytest.raises(RuntimeError):
        await world.create("orders")
    found = read(applied_families(world.partitions, world.quorum))
    name = "kafka_server_broker_metadata_metrics"
    assert found[f"{name}_metadata_apply_error_count"] == 1
    assert found[f"{name}_last_applied_record_offset"] == world.quorum.image.offset
