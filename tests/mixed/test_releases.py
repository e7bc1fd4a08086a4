"""Every release of Apache Kafka that can share a cluster with Caudal: each kind forms it, and the other joins.

`CAUDAL_KAFKA_RELEASES` is a folder with a folder of jars for each release; the tools are those of the newest.
"""

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.clients.model import TIMEOUT_S
from tests.support.cluster import FAST_FAILOVER
from tests.support.kafka import CLUSTER_ID, KAFKA_RELEASES, SMALL_JAVA, KafkaNode
from tests.support.mixed_cluster import MixedCluster, needs_kafka
from tests.support.role_cluster import PureBrokerProcess

FOLDERS: Final = {
    folder.name: folder for folder in sorted(Path(KAFKA_RELEASES).iterdir() if KAFKA_RELEASES is not None else ())
}
"""The folders of jars, by version."""
NEWEST: Final = next(reversed(FOLDERS), "")
ASSIGNMENTS: Final = {"led-by-1": [1, 4], "led-by-4": [4, 1], "led-by-2": [2, 5, 4]}
"""Topics of one partition with replicas on both kinds; the first replica leads."""
RECORDS: Final = 300
LEVELS: Final = {"4.0": "4.0-IV3", "4.1": "4.1-IV1", "4.2": "4.2-IV1", "4.3": "4.3-IV0"}
REGISTER_BROKER_VERSIONS: Final = {"4.0": 3, "4.1": 3, "4.2": 3, "4.3": 4}

pytestmark = [
    *needs_kafka,
    pytest.mark.skipif(not FOLDERS, reason="CAUDAL_KAFKA_RELEASES names no folder of releases: see `make test-mixed`"),
]


def release_of(version: str) -> str:
    return ".".join(version.split(".")[:2])


@pytest.fixture(
    scope="module",
    params=[(quorum, version) for version in FOLDERS for quorum in ("caudal", "kafka")],
    ids="-".join,
)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    """Five brokers, with the quorum and the version of Kafka that the parameter names."""
    quorum, version = request.param
    directory = tmp_path_factory.mktemp(f"{quorum}-{version}")
    jars = str(FOLDERS[version])
    with MixedCluster(directory, quorum=quorum, release=release_of(version), jars=jars).running() as cluster:
        create_topics(cluster)
        yield cluster


def create_topics(cluster: MixedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(name, 1, replica_assignment=[on]) for name, on in ASSIGNMENTS.items()])
    for future in created.values():
        future.result(TIMEOUT_S)
    eventually(partial(leaders, admin), lambda found: found == {name: on[0] for name, on in ASSIGNMENTS.items()})


def leaders(admin: AdminClient) -> dict[str, int]:
    """The leader of each topic, as far as the broker that is asked has heard of it."""
    found = admin.list_topics(timeout=TIMEOUT_S).topics
    return {name: found[name].partitions[0].leader for name in ASSIGNMENTS if name in found and found[name].partitions}


def write(cluster: MixedCluster, prefix: str) -> list[str]:
    """Write a transaction that is aborted, and one that is committed; returns the values of the second."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": prefix, "linger.ms": 5})
    producer.init_transactions(TIMEOUT_S)
    values = [f"{prefix} {number}" for number in range(RECORDS)]
    for fate, finish in (("aborted", producer.abort_transaction), ("", producer.commit_transaction)):
        producer.begin_transaction()
        for number, value in enumerate(values):
            producer.produce(list(ASSIGNMENTS)[number % len(ASSIGNMENTS)], fate + value)
        assert producer.flush(TIMEOUT_S) == 0
        finish(TIMEOUT_S)
    return values


def read(cluster: MixedCluster, prefix: str, protocol: str) -> list[str]:
    """Read all committed values with a prefix, as a group."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"{prefix}-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    reader.subscribe(list(ASSIGNMENTS))
    found: list[str] = []

    def poll() -> int:
        values = [(message.value() or b"").decode() for message in reader.consume(RECORDS, 1) if not message.error()]
        found.extend(value for value in values if prefix in value)
        return len(found)

    eventually(poll, lambda count: count >= RECORDS, pause_s=0)
    reader.commit(asynchronous=False)
    reader.close()
    return sorted(found)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_transactions_and_groups_span_both_kinds(cluster: MixedCluster, protocol: str) -> None:
    values = write(cluster, f"release-{protocol}")
    assert read(cluster, f"release-{protocol}", protocol) == sorted(values)


def test_replicas_have_equal_bytes(cluster: MixedCluster) -> None:
    write(cluster, "equal")
    for topic, replicas in ASSIGNMENTS.items():
        eventually(partial(stored, cluster, topic), lambda found: len(set(found.values())) == 1)
        assert set(stored(cluster, topic)) == set(replicas)


def stored(cluster: MixedCluster, topic: str) -> dict[int, bytes]:
    """The segments of a topic's only partition on each broker that has them."""
    folders = {number: node.data / f"{topic}-0" for number, node in cluster.nodes.items()}
    return {
        number: b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
        for number, folder in folders.items()
        if folder.exists()
    }


def test_that_release_reads_the_metadata_log_of_a_caudal_controller(cluster: MixedCluster) -> None:
    if cluster.quorum != "caudal":
        pytest.skip("the controllers are Kafka's")
    directory = cluster.nodes[1].data / "__cluster_metadata-0"
    files = ",".join(map(str, [*directory.glob("*.log"), *directory.glob("*.checkpoint")]))
    tool = "org.apache.kafka.tools.DumpLogSegments" if cluster.release == "4.3" else "kafka.tools.DumpLogSegments"
    said = java(tool, "--cluster-metadata-decoder", "--files", files, jars=cluster.jars)
    brokers = [line for line in said.splitlines() if '"type":"REGISTER_BROKER_RECORD"' in line]
    assert len(brokers) >= len(cluster.nodes)
    assert all(f'"version":{REGISTER_BROKER_VERSIONS[cluster.release or ""]},' in line for line in brokers)
    assert not [line for line in said.splitlines() if "payload:" in line and '"type":' not in line]
    assert LEVELS[cluster.release or ""] in features(cluster, "describe")


def test_levels_rise_as_far_as_every_member_allows(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, quorum="caudal", release="4.0", jars=str(FOLDERS[NEWEST])).running() as cluster:
        create_topics(cluster)
        assert LEVELS["4.0"] in features(cluster, "describe")
        for release, change in (("4.1", "--release-version=4.1"), ("4.3", "--feature=metadata.version=30")):
            features(cluster, "upgrade", change)
            eventually(partial(is_at, cluster, release))
            values = write(cluster, f"at-{release}")
            assert read(cluster, f"at-{release}", "consumer") == sorted(values)
        assert "share.version=1: there is no such feature" in features(
            cluster, "upgrade", "--release-version", "4.3", fails=True
        )


def test_the_lowest_levels_of_a_kafka_quorum_are_enough(tmp_path: Path) -> None:
    """No directories, no eligible leader replicas, Fetch 13, group.version and transaction.version 0."""
    lowest = MixedCluster(
        tmp_path,
        quorum="kafka",
        features={"metadata.version": 7},
        settings={"cluster.id": CLUSTER_ID},  # at this level, the controllers do not tell it
        jars=str(FOLDERS[NEWEST]),
    )
    with lowest.running() as cluster:
        assert "FinalizedVersionLevel: 3.3-IV3" in features(cluster, "describe")
        create_topics(cluster)
        values = write(cluster, "lowest")
        assert read(cluster, "lowest", "classic") == sorted(values)
        for topic in ASSIGNMENTS:
            eventually(partial(stored, cluster, topic), lambda found: len(set(found.values())) == 1)


def test_an_upgrade_waits_for_the_oldest_member(cluster: MixedCluster) -> None:
    if cluster.quorum != "caudal" or cluster.release == release_of(NEWEST):
        pytest.skip("there is no newer release, or the controllers are Kafka's")
    refused = features(cluster, "upgrade", "--feature", "metadata.version=30", fails=True)
    assert re.search("metadata.version=30: broker [45] supports levels 7 to", refused), refused


def test_a_caudal_broker_says_which_feature_of_the_cluster_it_lacks_and_joins_without_it(tmp_path: Path) -> None:
    kafka = KafkaNode(tmp_path / "kafka", java_options=SMALL_JAVA, jars=str(FOLDERS[NEWEST]), settings=FAST_FAILOVER)
    kafka.quorum = {"controller.quorum.voters": kafka.voter}
    settings = {**FAST_FAILOVER, **kafka.quorum, "controller.listener.names": "CONTROLLER"}
    ours = PureBrokerProcess(tmp_path / "caudal", node_id=4, settings=settings)
    with ThreadPoolExecutor(1) as threads:
        try:
            kafka.start()
            starting = threads.submit(ours.start)
            eventually(ours.log_tail, lambda said: "share.version=1" in said and "downgrade --feature" in said)
            lower = ["--feature", "share.version=0", "--feature", "streams.version=0"]
            run_features(kafka.address, "downgrade", *lower)
            starting.result()
        finally:
            for node in (ours, kafka):
                node.kill()


def is_at(cluster: MixedCluster, release: str) -> bool:
    return LEVELS[release] in features(cluster, "describe")


def features(cluster: MixedCluster, *arguments: str, fails: bool = False) -> str:
    return run_features(cluster.bootstrap, *arguments, fails=fails)


def run_features(bootstrap: str, *arguments: str, fails: bool = False) -> str:
    """Run `kafka-features` of the newest release; returns what it wrote."""
    tool = "org.apache.kafka.tools.FeatureCommand"
    return java(tool, "--bootstrap-server", bootstrap, *arguments, jars=str(FOLDERS[NEWEST]), fails=fails)


def java(main: str, *arguments: str, jars: str | None, fails: bool = False) -> str:
    command = ["java", *SMALL_JAVA, "-cp", f"{jars}/*", main, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    said = ended.stdout + ended.stderr
    assert (ended.returncode != 0) is fails, said
    return said
