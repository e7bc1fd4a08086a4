"""Kafka's own tools for clusters as judges: elections, the quorum, replicas in trouble, reassignments, log files.

They need what `tests/conformance/test_kafka_tools.py` needs: `make test-java` runs both.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import TIMEOUT_S, Sent, Transaction
from tests.support.cluster import FAST_FAILOVER, ClusterProcess
from tests.support.java_tools import needs_tools, run_java, run_tool, running_tool

ELECT = "LeaderElectionCommand"
REASSIGN = "reassign.ReassignPartitionsCommand"
MEMBERS = ("CurrentVoters:", "CurrentObservers:")
RECORDS = [Sent(key=b"k%d" % number, value=b"v%d" % number, partition=0) for number in range(20)]

pytestmark = needs_tools


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """Three brokers that notice a dead one within seconds. Tests start again what they kill, never the first."""
    settings = {**FAST_FAILOVER, "auto.leader.rebalance.enable": "false"}
    with ClusterProcess(tmp_path_factory.mktemp("cluster-tools"), size=3, settings=settings) as process:
        yield process


def create_on(cluster: BrokerProcess, topic: str, replicas: Sequence[int], **configs: str) -> None:
    """Create a topic of one partition with these replicas."""
    options = [word for key, value in configs.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
    assignment = ":".join(map(str, replicas))
    run_tool(cluster, "TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment, *options)
    await_replicas(cluster, topic, replicas[0], replicas)


def replicas_of(cluster: BrokerProcess, topic: str) -> tuple[int, set[int]]:
    """The leader, or -1, and the ISR of a topic's first partition."""
    described = admin_client(cluster).describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
    partition = described.partitions[0]
    return partition.leader.id if partition.leader else -1, {node.id for node in partition.isr}


def await_replicas(cluster: BrokerProcess, topic: str, leader: int, isr: Sequence[int]) -> None:
    eventually(lambda: replicas_of(cluster, topic), lambda found: found == (leader, set(isr)))


def listed(cluster: BrokerProcess, kind: str) -> str:
    return run_tool(cluster, "TopicCommand", "--describe", f"--{kind}-partitions")


def test_leadership_goes_back_to_the_preferred_replica(cluster: ClusterProcess, name: str) -> None:
    create_on(cluster, name, [2, 3, 1])
    second = cluster.nodes[1]
    second.kill()
    await_replicas(cluster, name, 3, [1, 3])
    assert name in listed(cluster, "under-replicated")
    assert name in listed(cluster, "at-min-isr")
    assert name not in listed(cluster, "under-min-isr")
    assert name not in listed(cluster, "unavailable")
    second.start()
    await_replicas(cluster, name, 3, [1, 2, 3])
    assert name not in listed(cluster, "under-replicated")
    elect = ("--election-type", "preferred", "--topic", name, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {name}-0" in run_tool(
        cluster, ELECT, *elect
    )
    await_replicas(cluster, name, 2, [1, 2, 3])
    assert f"Valid replica already elected for partitions {name}-0" in run_tool(cluster, ELECT, *elect)
    run_tool(cluster, ELECT, "--election-type", "preferred", "--all-topic-partitions")


def test_a_replica_that_lags_leads_after_an_unclean_election_only(cluster: ClusterProcess, name: str) -> None:
    create_on(cluster, name, [3, 2], min_insync_replicas="1")
    second, third = cluster.nodes[1:]
    second.kill()
    await_replicas(cluster, name, 3, [3])
    ConfluentClient().produce(cluster.bootstrap, name, RECORDS)
    third.kill()
    second.start()
    eventually(lambda: replicas_of(cluster, name)[0], lambda leader: leader == -1)
    assert name in listed(cluster, "unavailable")
    elect = ("--topic", name, "--partition", "0", "--election-type")
    with pytest.raises(AssertionError, match="PreferredLeaderNotAvailable|preferred"):
        run_tool(cluster, ELECT, *elect, "preferred")
    assert f"Successfully completed leader election (UNCLEAN) for partitions {name}-0" in run_tool(
        cluster, ELECT, *elect, "unclean"
    )
    await_replicas(cluster, name, 2, [2])
    third.start()
    await_replicas(cluster, name, 2, [2, 3])
    assert read_to_end(cluster.bootstrap, name) == [], "what only the dead leader had is lost, as was asked for"


def quorum(cluster: BrokerProcess, *arguments: str) -> str:
    return run_java("org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", cluster.bootstrap, *arguments)


def voters_and_observers(status: str) -> tuple[dict[int, str], dict[int, str]]:
    """From the id of each to its directory id."""
    lines = [next(line for line in status.splitlines() if line.startswith(kind)) for kind in MEMBERS]
    voters, observers = (json.loads(line.partition(":")[2]) for line in lines)
    return {each["id"]: each["directoryId"] for each in voters}, {each["id"]: each["directoryId"] for each in observers}


def test_the_quorum_is_described(cluster: ClusterProcess) -> None:
    status = eventually(
        lambda: quorum(cluster, "describe", "--status"),
        lambda status: voters_and_observers(status)[0].keys() == {1, 2, 3},
    )
    assert f"CONTROLLER://127.0.0.1:{cluster.controller_port}" in status
    rows = [line.split() for line in quorum(cluster, "describe", "--replication").splitlines()[1:]]
    assert sorted(row[-1] for row in rows) == ["Follower", "Follower", "Leader"]
    assert "ms ago" in quorum(cluster, "describe", "--replication", "--human-readable")
    controller = f"127.0.0.1:{cluster.controller_port}"
    output = run_java(
        "org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-controller", controller, "describe", "--status"
    )
    assert voters_and_observers(output) == voters_and_observers(status)


def test_log_dirs_of_every_broker_are_described(cluster: ClusterProcess, name: str) -> None:
    create_topic(cluster, name)
    ConfluentClient().produce(cluster.bootstrap, name, RECORDS)
    output = run_tool(cluster, "LogDirsCommand", "--describe", "--broker-list", "1,2,3", "--topic-list", name)
    brokers = json.loads(next(line for line in output.splitlines() if line.startswith("{")))["brokers"]
    (size,) = {
        replica["size"]
        for broker in brokers
        for directory in broker["logDirs"]
        for replica in directory["partitions"]
        if replica["partition"] == f"{name}-0" and replica["offsetLag"] == 0
    }
    assert sorted(broker["broker"] for broker in brokers) == [1, 2, 3]
    assert size == cluster.stored_bytes(name)


def test_a_plan_is_generated_executed_and_verified(cluster: ClusterProcess, name: str, tmp_path: Path) -> None:
    create_on(cluster, name, [1])
    ConfluentClient().produce(cluster.bootstrap, name, RECORDS)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    output = run_tool(
        cluster, REASSIGN, "--topics-to-move-json-file", str(topics), "--broker-list", "2,3", "--generate"
    )
    current, proposed = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    assert current["partitions"][0]["replicas"] == [1]
    (new,) = proposed["partitions"][0]["replicas"]
    assert new in {2, 3}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(proposed))
    execute = run_tool(cluster, REASSIGN, "--reassignment-json-file", str(plan), "--execute")
    assert f"Successfully started partition reassignment for {name}-0" in execute
    await_replicas(cluster, name, new, [new])
    verify = run_tool(cluster, REASSIGN, "--reassignment-json-file", str(plan), "--verify")
    assert f"Reassignment of partition {name}-0 is completed." in verify
    assert [record.value for record in read_to_end(cluster.bootstrap, name)] == [sent.value for sent in RECORDS]


def test_the_cluster_tells_its_id_and_endpoints(cluster: ClusterProcess) -> None:
    described = admin_client(cluster).describe_cluster().result(TIMEOUT_S)
    assert f"Cluster ID: {described.cluster_id}" in run_tool(cluster, "ClusterTool", "cluster-id")
    brokers = run_tool(cluster, "ClusterTool", "list-endpoints", "--include-fenced-brokers")
    for node in cluster.nodes:
        line = rf"^{node.node_id}\s+127.0.0.1\s+{node.port}\s.*unfenced\s+broker"
        assert re.search(line, brokers, re.MULTILINE)
    controllers = run_java(
        "org.apache.kafka.tools.ClusterTool",
        "list-endpoints",
        "--bootstrap-controller",
        f"127.0.0.1:{cluster.controller_port}",
    )
    for node in cluster.nodes:
        assert re.search(
            rf"^{node.node_id}\s+127.0.0.1\s+{node.controller_port}\s.*controller", controllers, re.MULTILINE
        )


def test_features_and_versions_of_every_broker_are_described(cluster: ClusterProcess) -> None:
    features = run_java("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", cluster.bootstrap, "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", features))
    assert levels["transaction.version"] == "2"
    assert levels["kraft.version"] == "1"
    assert "-IV" in levels["metadata.version"]
    versions = run_tool(cluster, "BrokerApiVersionsCommand")
    for node in cluster.nodes:
        assert f"127.0.0.1:{node.port} (id: {node.node_id} " in versions
    assert versions.count("Produce(0): ") == 3
    assert "ERROR" not in versions


def test_replicas_are_verified_to_be_equal(cluster: ClusterProcess, name: str) -> None:
    create_topic(cluster, name)
    ConfluentClient().produce(cluster.bootstrap, name, RECORDS)
    options = ("--broker-list", cluster.bootstrap, "--topics-include", name, "--report-interval-ms", "500")
    with running_tool("ReplicaVerificationTool", *options) as lines:
        report = next(line for line in lines if "max lag is" in line and f"at offset {len(RECORDS)}" in line)
    assert f"max lag is 0 for partition {name}-0 at offset {len(RECORDS)} among 1 partitions" in report


def dump(*options: str, file: Path) -> str:
    return run_java("org.apache.kafka.tools.DumpLogSegments", *options, "--files", str(file))


def test_segments_and_their_indexes_are_dumped(cluster: ClusterProcess, name: str) -> None:
    create_on(cluster, name, [1], index_interval_bytes="0")
    for record in RECORDS:
        ConfluentClient().produce(cluster.bootstrap, name, [record])
    folder = cluster.data / f"{name}-0"
    (segment,) = folder.glob("*.log")
    output = dump("--print-data-log", file=segment)
    assert re.findall(r"offset: (\d+) .*payload: v(\d+)", output) == [(str(n), str(n)) for n in range(len(RECORDS))]
    assert "isvalid: true" in output
    assert "isvalid: false" not in output
    for kind in ("index", "timeindex"):
        checked = dump(file=segment.with_suffix(f".{kind}"))
        assert "offset: " in checked
        assert not re.search("Mismatches|Found|not found", checked), checked


def internal_segments(cluster: ClusterProcess, topic: str) -> list[Path]:
    return sorted(path for path in cluster.data.glob(f"{topic}-*/*.log") if path.stat().st_size)


def test_logs_of_groups_and_transactions_are_decoded(cluster: ClusterProcess, name: str) -> None:
    create_topic(cluster, name)
    ConfluentClient().transact(cluster.bootstrap, name, name, [Transaction(records=RECORDS, commit=True)])
    ConfluentClient().consume_group(cluster.bootstrap, name, name, len(RECORDS))
    offsets = "".join(dump("--offsets-decoder", file=path) for path in internal_segments(cluster, "__consumer_offsets"))
    assert f'"group":"{name}","topic":"{name}","partition":0' in offsets
    states = "".join(
        dump("--transaction-log-decoder", file=path) for path in internal_segments(cluster, "__transaction_state")
    )
    assert f'"transactionalId":"{name}"' in states


def test_the_metadata_log_and_its_snapshots_are_decoded(cluster: ClusterProcess, name: str) -> None:
    create_topic(cluster, name)
    folder = cluster.data / "__cluster_metadata-0"
    files = [*folder.glob("*.checkpoint"), *folder.glob("*.log")]
    options = ("--cluster-metadata-decoder", "--skip-record-metadata")
    output = "".join(dump(*options, file=file) for file in sorted(files))
    assert f'"type":"TOPIC_RECORD","version":0,"data":{{"name":"{name}"' in output
    assert '"type":"REGISTER_BROKER_RECORD"' in output
    assert "Could not decode" not in output
    assert "isvalid: false" not in output


def test_the_shell_shows_topics_and_brokers_of_a_snapshot(cluster: ClusterProcess, name: str) -> None:
    create_topic(cluster, name)
    third = cluster.nodes[2]
    third.stop()  # which writes a snapshot, and leaves the folder to the shell
    try:
        snapshot = str(max((third.data / "__cluster_metadata-0").glob("*.checkpoint")))

        def ls(path: str) -> list[str]:
            return run_java("org.apache.kafka.shell.MetadataShell", "--snapshot", snapshot, "ls", path).split()

        # On a loaded machine the shell may answer before it has loaded the snapshot, with an empty image.
        eventually(lambda: ls("/image/topics/byName"), lambda topics: name in topics)
        eventually(lambda: ls("/image/cluster/brokers"), lambda brokers: brokers == ["1", "2", "3"])
    finally:
        third.start()


@pytest.fixture
def observers(tmp_path: Path) -> Iterator[ClusterProcess]:
    """Three brokers, two of which do not vote until they are added as voters."""
    settings = {**FAST_FAILOVER, "controller.quorum.auto.join.enable": "false"}
    with ClusterProcess(tmp_path, size=3, settings=settings) as process:
        yield process


def test_controllers_are_added_and_removed_and_a_dead_broker_unregistered(
    observers: ClusterProcess, tmp_path: Path
) -> None:
    def members() -> tuple[dict[int, str], dict[int, str]]:
        return voters_and_observers(quorum(observers, "describe", "--status"))

    voters, others = members()
    assert (list(voters), sorted(others)) == ([1], [2, 3])
    second, third = observers.nodes[1:]
    config = tmp_path / "second.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=2\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://{second.address},CONTROLLER://127.0.0.1:{second.controller_port}\n"
        f"log.dirs={second.data}\n"
    )
    assert "Added controller 2" in quorum(observers, "--command-config", str(config), "add-controller")
    voters, others = members()
    assert (sorted(voters), list(others)) == ([1, 2], [3])
    quorum(observers, "remove-controller", "--controller-id", "2", "--controller-directory-id", voters[2])
    assert members()[0].keys() == {1}
    third.kill()
    fenced = r"^3\s.*\sfenced\s"
    list_all = ("ClusterTool", "list-endpoints", "--include-fenced-brokers")
    eventually(lambda: re.search(fenced, run_tool(observers, *list_all), re.MULTILINE))
    assert "Broker 3 is no longer registered." in run_tool(observers, "ClusterTool", "unregister", "--id", "3")
    assert not re.search(r"^3\s", run_tool(observers, *list_all), re.MULTILINE)
