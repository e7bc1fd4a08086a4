"""Topics of one broker mirrored to another by a real worker."""

import json
import threading
import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from connectors.mirror.formats import read_checkpoint, read_sync
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.connect import ConnectProcess
from tests.support.mirror import (
    CONVERTERS,
    Clusters,
    commit,
    committed,
    configs_of,
    make,
    mirror,
    read,
    read_or_none,
    running_clusters,
    send,
)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with running_clusters(tmp_path_factory.mktemp("clusters")) as running:
        yield running


@pytest.fixture(scope="module")
def worker(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    with ConnectProcess(tmp_path_factory.mktemp("worker"), bootstrap=clusters.target.bootstrap) as process:
        yield process


@pytest.fixture
def exact_worker(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    settings = {"exactly.once.source.support": "enabled"}
    folder = tmp_path_factory.mktemp("exact")
    with ConnectProcess(folder, bootstrap=clusters.target.bootstrap, group="exact", settings=settings) as process:
        yield process


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:10]}"


def test_records_arrive_byte_for_byte_and_once_with_their_partitions_and_configs(
    worker: ConnectProcess, clusters: Clusters, topic: str
) -> None:
    create_topic(clusters.source, topic, partitions=3, configs={"retention.ms": "-1", "max.message.bytes": "2000000"})
    for partition in range(3):
        send(clusters.source, topic, range(partition * 100, partition * 100 + 50), partition=partition)
    mirror(worker, clusters, topic, topic)
    worker.wait_for(topic, "RUNNING", tasks=2)
    for partition in range(3):
        wanted = read(clusters.source, topic, partition)
        found = eventually(partial(read, clusters.target, f"us.{topic}", partition), lambda found: len(found) >= 50)
        assert found == wanted
    assert configs_of(clusters.target, f"us.{topic}") >= {("retention.ms", "-1"), ("max.message.bytes", "2000000")}
    worker.delete(topic)


def test_configs_that_change_are_changed_in_the_target(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    create_topic(clusters.source, topic, configs={"retention.ms": "1000000"})
    mirror(worker, clusters, topic, topic)
    worker.wait_for(topic, "RUNNING", tasks=1)
    entries = [
        ConfigEntry("retention.ms", "", incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("segment.bytes", "1048576", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin_client(clusters.source).incremental_alter_configs([resource])[resource].result(60)
    eventually(
        lambda: configs_of(clusters.target, f"us.{topic}"), lambda found: found == {("segment.bytes", "1048576")}
    )
    worker.delete(topic)


def test_new_topics_and_partitions_are_found(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    make(clusters.source, f"{topic}-a")
    mirror(worker, clusters, topic, f"{topic}-.*")
    worker.wait_for(topic, "RUNNING", tasks=1)
    make(clusters.source, f"{topic}-b")
    send(clusters.source, f"{topic}-b", range(5))
    admin_client(clusters.source).create_partitions([NewPartitions(f"{topic}-a", 3)])[f"{topic}-a"].result(60)
    send(clusters.source, f"{topic}-a", range(7), partition=2)
    eventually(lambda: len(read_or_none(clusters.target, f"us.{topic}-b")), lambda count: count == 5)
    eventually(lambda: len(read_or_none(clusters.target, f"us.{topic}-a", 2)), lambda count: count == 7)
    worker.delete(topic)


def test_a_topic_that_is_deleted_stops_nobody(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    for name in "ab":
        make(clusters.source, f"{topic}-{name}")
    mirror(worker, clusters, topic, f"{topic}-.*", **{"tasks.max": "1"})
    worker.wait_for(topic, "RUNNING", tasks=1)
    admin_client(clusters.source).delete_topics([f"{topic}-a"])[f"{topic}-a"].result(60)
    send(clusters.source, f"{topic}-b", range(5))
    eventually(lambda: len(read_or_none(clusters.target, f"us.{topic}-b")), lambda count: count == 5)
    eventually(lambda: assigned(worker, topic), lambda found: found == [f"{topic}-b-0"])
    worker.wait_for(topic, "RUNNING", tasks=1)
    worker.delete(topic)


def assigned(worker: ConnectProcess, name: str) -> list[str]:
    """What each task reads."""
    return [task["config"]["task.assigned.partitions"] for task in worker.json("GET", f"/connectors/{name}/tasks")]


def test_a_source_that_is_away_at_first_is_mirrored_when_it_comes(
    worker: ConnectProcess, clusters: Clusters, topic: str
) -> None:
    make(clusters.source, topic)
    send(clusters.source, topic, range(5))
    clusters.source.kill()
    try:
        mirror(worker, clusters, topic, topic, **{"admin.timeout.ms": "1000"})
    finally:
        clusters.source.start()
    eventually(lambda: len(read_or_none(clusters.target, f"us.{topic}")), lambda count: count == 5)
    worker.delete(topic)


def test_with_identity_names_stay(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    send(clusters.source, topic, range(5))
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    mirror(worker, clusters, topic, topic, **{"replication.policy.class": policy})
    eventually(lambda: len(read_or_none(clusters.target, topic)), lambda count: count == 5)
    worker.delete(topic)


def test_nothing_is_lost_when_worker_and_source_are_killed(
    worker: ConnectProcess, clusters: Clusters, topic: str
) -> None:
    wanted, found = mirrored_through_kills(worker, clusters, topic)
    assert {*map(repr, found)} == {*map(repr, wanted)}


def test_with_transactions_nothing_is_doubled_either(
    exact_worker: ConnectProcess, clusters: Clusters, topic: str
) -> None:
    wanted, found = mirrored_through_kills(exact_worker, clusters, topic, **{"exactly.once.support": "required"})
    assert found == wanted


def mirrored_through_kills(
    worker: ConnectProcess, clusters: Clusters, topic: str, **changes: str
) -> tuple[list[object], list[object]]:
    """What is in the source and in the target in the end."""
    make(clusters.source, topic, partitions=2)
    mirror(worker, clusters, topic, topic, **changes)
    worker.wait_for(topic, "RUNNING", tasks=2)

    def send_all() -> None:
        for start in range(0, 3000, 100):
            send(clusters.source, topic, range(start, start + 100))

    load = threading.Thread(target=send_all)
    load.start()
    load.join(0.3)
    worker.restart(kill=True)
    load.join(30)
    clusters.source.restart(kill=True)
    send(clusters.source, topic, range(3000, 3100))
    worker.restart(kill=True)
    wanted = read(clusters.source, topic)
    assert len(wanted) == 3100
    found = eventually(
        lambda: read(clusters.target, f"us.{topic}"), lambda found: {*map(repr, found)} >= {*map(repr, wanted)}
    )
    worker.delete(topic)
    return wanted, found


def test_a_group_that_moves_over_goes_on_where_it_was(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic, partitions=2)
    # What is in the target before makes offsets differ.
    make(clusters.target, f"us.{topic}", partitions=2)
    send(clusters.target, f"us.{topic}", range(1000, 1037))
    mirror(worker, clusters, topic, topic, **{"offset.lag.max": "10"})
    worker.wait_for(topic, "RUNNING", tasks=2)
    send(clusters.source, topic, range(100))
    send(clusters.source, topic, range(50), partition=1)
    commit(clusters.source, topic, {0: 60, 1: 50})
    worker.create(
        f"{topic}-checkpoints",
        {
            **clusters.config(**CONVERTERS, topics=topic, groups=topic),
            "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
        },
    )
    found = eventually(
        lambda: committed(clusters.target, f"us.{topic}", topic),
        lambda offsets: offsets.get(0, -1) >= 37 + 40 and offsets.get(1) == 50,
    )
    assert found[0] <= 37 + 60
    left = read(clusters.target, f"us.{topic}", start=found[0])
    assert [item for item in read(clusters.source, topic, start=60) if item not in left] == []
    # Groups that go on, go on in the target, too; never backwards.
    commit(clusters.source, topic, {0: 100})
    eventually(lambda: committed(clusters.target, f"us.{topic}", topic), lambda offsets: offsets.get(0) == 137)
    checkpoints = [read_checkpoint(key, value) for key, value, *_ in read(clusters.target, "us.checkpoints.internal")]
    places = [(item.partition, item.downstream) for item in checkpoints if item is not None and item.group == topic]
    assert (((f"us.{topic}"), 0), 137) in places
    for partition in range(2):
        offsets = [offset for place, offset in places if place[1] == partition]
        assert offsets == sorted(offsets)
    worker.delete(f"{topic}-checkpoints")
    worker.delete(topic)


def test_heartbeats_are_written_and_mirrored_under_their_own_name(
    worker: ConnectProcess, clusters: Clusters, topic: str
) -> None:
    worker.create(
        f"{topic}-beats",
        {
            **clusters.config(**CONVERTERS),
            "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        },
    )
    beats = eventually(lambda: read_or_none(clusters.target, "heartbeats"), lambda found: len(found) >= 2)
    assert beats[0][0] == b"\x00\x02us\x00\x02eu"
    assert len(beats[0][1]) == 10
    worker.delete(f"{topic}-beats")


def test_offset_syncs_are_where_they_are_wanted(worker: ConnectProcess, clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    send(clusters.source, topic, range(5))
    mirror(worker, clusters, topic, topic, **{"offset-syncs.topic.location": "target"})
    found = eventually(
        lambda: [
            read_sync(key, value) for key, value, *_ in read_or_none(clusters.target, "mm2-offset-syncs.us.internal")
        ],
        lambda syncs: ((topic, 0), 4, 4) in syncs,
    )
    assert ((topic, 0), 0, 0) in found
    worker.delete(topic)


def test_converters_that_change_bytes_are_warned_of(worker: ConnectProcess, clusters: Clusters) -> None:
    config = {**clusters.config(), "connector.class": "MirrorSource", "name": "x"}
    answer = worker.json("PUT", "/connector-plugins/MirrorSource/config/validate", config)
    assert answer["error_count"] == 0, json.dumps(answer)[:2000]
    warned = {item["name"] for item in answer["warnings"]}
    assert {"key.converter", "value.converter", "header.converter"} == warned
