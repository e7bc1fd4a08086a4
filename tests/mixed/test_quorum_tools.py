"""Kafka's own tools as judges of a quorum of both kinds, and of the metadata that each kind has on disk."""

import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.admin import create_topic, eventually
from tests.support.command import Caudal
from tests.support.java_tools import run_java
from tests.support.kafka import KAFKA_JARS
from tests.support.mixed_cluster import needs_kafka
from tests.support.mixed_quorum import MixedQuorum

pytestmark = needs_kafka

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
"""So that each kind writes snapshots within seconds."""


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    """Node 1, Caudal's, leads and votes alone; node 2, Kafka's, and node 3, Caudal's, observe."""
    directory = tmp_path_factory.mktemp("quorum-tools")
    with MixedQuorum(directory, founder="caudal", settings=OFTEN).running() as started:
        for number in range(5):
            create_topic(started.nodes[1], f"topic-{number}", partitions=3)
        yield started


def members(status: str, kind: str) -> dict[int, str]:
    """The ids of voters or observers, with their directories."""
    line = next(line for line in status.splitlines() if line.startswith(f"Current{kind}:"))
    return {each["id"]: each["directoryId"] for each in json.loads(line.partition(":")[2])}


def test_voters_are_added_and_removed_and_every_controller_describes_them(
    quorum: MixedQuorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum.add_voter_by_tool(2)
    for node_id, by_controller in ((1, False), (2, False), (1, True), (2, True)):
        status = quorum.tool("describe", "--status", at=node_id, by_controller=by_controller)
        assert members(status, "Voters").keys() == {1, 2}, f"at node {node_id}"
        assert members(status, "Observers").keys() == {3}, f"at node {node_id}"
    rows = [line.split() for line in quorum.tool("describe", "--replication").splitlines()[1:]]
    assert {(row[0], row[-1]) for row in rows} == {("1", "Leader"), ("2", "Follower"), ("3", "Observer")}
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", quorum.bootstrap)
    described = Caudal(monkeypatch).json("cluster")["quorum"]
    assert {voter["id"] for voter in described["voters"]} == {1, 2}
    directory = members(quorum.tool("describe", "--status"), "Voters")[2]
    quorum.tool("remove-controller", "--controller-id", "2", "--controller-directory-id", directory)
    assert members(quorum.tool("describe", "--status"), "Voters").keys() == {1}


@pytest.mark.skipif(
    not any(Path(KAFKA_JARS or "").glob("kafka-raft-4.[2-9]*")), reason="Kafka before 4.2 does not join by itself"
)
def test_a_kafka_controller_joins_by_itself(quorum: MixedQuorum) -> None:
    quorum.nodes[2].restart(settings={"controller.quorum.auto.join.enable": "true"})
    eventually(lambda: {voter.id for voter in quorum.described().voters}, lambda voters: voters == {1, 2})


@pytest.mark.parametrize("node_id", [1, 2])
def test_features_are_described_by_a_controller_of_either_kind(quorum: MixedQuorum, node_id: int) -> None:
    address = f"127.0.0.1:{quorum.nodes[node_id].controller_port}"
    features = run_java("org.apache.kafka.tools.FeatureCommand", "--bootstrap-controller", address, "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", features))
    assert {"metadata.version", "kraft.version", "eligible.leader.replicas.version"} <= levels.keys()
    assert levels["kraft.version"] == "1"


def files(data: Path, suffix: str) -> list[Path]:
    """The files of a node's metadata log, oldest first."""
    folder = data / "__cluster_metadata-0"
    return eventually(lambda: sorted(path for path in folder.glob(f"*.{suffix}") if path.stat().st_size))


@pytest.mark.parametrize("suffix", ["log", "checkpoint"])
@pytest.mark.parametrize("node_id", [1, 2])
def test_dump_log_reads_the_metadata_of_either_kind(quorum: MixedQuorum, node_id: int, suffix: str) -> None:
    paths = ",".join(map(str, files(quorum.nodes[node_id].data, suffix)))
    dumped = run_java("org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", paths)
    assert "isvalid: true" in dumped
    assert "isvalid: false" not in dumped
    assert "Error" not in dumped
    types = set(re.findall(r'"type":"(\w+)"', dumped))
    assert types, "the newest records are in no snapshot yet"
    if suffix == "checkpoint":
        assert {"REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD", "CONFIG_RECORD", "TOPIC_RECORD"} <= types


@pytest.mark.parametrize("node_id", [1, 2])
def test_the_metadata_shell_reads_a_snapshot_of_either_kind(quorum: MixedQuorum, node_id: int, tmp_path: Path) -> None:
    newest = files(quorum.nodes[node_id].data, "checkpoint")[-1]
    # Of a copy: the shell wants the folder of a node that runs for itself.
    snapshot = shutil.copy(newest, tmp_path / newest.name)
    shell = ("org.apache.kafka.shell.MetadataShell", "--snapshot", str(snapshot))
    # Again if need be: the shell now and then answers before it has read the snapshot.
    eventually(lambda: run_java(*shell, "ls", "/image/topics/byName"), lambda listed: "topic-0" in listed)
    controllers = partial(run_java, *shell, "ls", "/image/cluster/controllers")
    eventually(controllers, lambda listed: {"1", "2", "3"} <= set(listed.split()))
