"""Kafka's own tools against clusters of both kinds of brokers."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.admin import eventually
from tests.support.java_tools import run_java, run_tool
from tests.support.mixed_cluster import MixedCluster, needs_kafka

pytestmark = needs_kafka

REASSIGN = "reassign.ReassignPartitionsCommand"
RECORDS = 2000
EVERY_BROKER = (1, 2, 3, 4, 5)


@pytest.fixture
def topic(mixed: MixedCluster, name: str) -> str:
    """A topic with a replica on each kind, and records in it."""
    run_tool(mixed, "TopicCommand", "--create", "--topic", name, "--replica-assignment", "1:4,5:2")
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "linger.ms": 5})
    for number in range(RECORDS):
        producer.produce(name, f"record {number}", partition=number % 2)
    assert producer.flush(60) == 0
    return name


def described(mixed: MixedCluster, topic: str) -> dict[int, tuple[str, str]]:
    """Leader and replicas of each partition, as the tool prints them."""
    output = run_tool(mixed, "TopicCommand", "--describe", "--topic", topic)
    found = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", output)
    return {int(index): (leader, replicas) for index, leader, replicas, isr in found if len(isr) == len(replicas)}


def test_topics_are_created_described_grown_and_deleted(mixed: MixedCluster, topic: str) -> None:
    assert eventually(partial(described, mixed, topic), lambda found: len(found) == 2) == {
        0: ("1", "1,4"),
        1: ("5", "5,2"),
    }
    run_tool(mixed, "TopicCommand", "--alter", "--topic", topic, "--partitions", "3")
    eventually(partial(described, mixed, topic), lambda found: len(found) == 3)
    run_tool(mixed, "TopicCommand", "--delete", "--topic", topic)
    eventually(lambda: run_tool(mixed, "TopicCommand", "--list"), lambda names: topic not in names.split())


def test_replicas_move_between_the_kinds_with_a_throttle(mixed: MixedCluster, topic: str, tmp_path: Path) -> None:
    targets = {0: [4, 5], 1: [1, 2]}
    wanted = [{"topic": topic, "partition": index, "replicas": brokers} for index, brokers in targets.items()]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    options = ("--reassignment-json-file", str(plan))
    said = run_tool(mixed, REASSIGN, *options, "--execute", "--throttle", "50000000")
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in said

    def verify() -> str:
        return run_tool(mixed, REASSIGN, *options, "--verify")

    said = eventually(verify, lambda said: said.count("is completed.") == 2, pause_s=0.5)
    assert f"Clearing topic-level throttles on topic {topic}" in said
    assert eventually(partial(described, mixed, topic), lambda found: len(found) == 2) == {
        0: ("4", "4,5"),
        1: ("1", "1,2"),
    }


def test_log_directories_of_both_kinds_are_described(mixed: MixedCluster, topic: str) -> None:
    def sizes() -> dict[int, dict[str, int]]:
        listed = ",".join(map(str, EVERY_BROKER))
        output = run_tool(mixed, "LogDirsCommand", "--describe", "--broker-list", listed, "--topic-list", topic)
        brokers = json.loads(next(line for line in output.splitlines() if line.startswith("{")))["brokers"]
        return {
            broker["broker"]: {item["partition"]: item["size"] for item in broker["logDirs"][0]["partitions"]}
            for broker in brokers
        }

    found = eventually(sizes, lambda found: found[1] == found[4] and found[5] == found[2])
    assert found.keys() == set(EVERY_BROKER)
    assert found[3] == {}
    assert found[1].keys() == {f"{topic}-0"}
    assert found[2].keys() == {f"{topic}-1"}
    assert all(size > 0 for broker in (1, 2) for size in found[broker].values())


def test_features_are_described(mixed: MixedCluster) -> None:
    said = run_java("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", mixed.bootstrap, "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", said))
    assert levels["metadata.version"].startswith("4.")
    assert levels["transaction.version"] == "2"
    assert levels.get("caudal.version", "0") == "0", "which broker answers is the tool's choice"


def test_the_feature_that_tells_our_version_cannot_be_finalised(mixed: MixedCluster) -> None:
    options = ("--bootstrap-server", mixed.bootstrap, "upgrade", "--feature", "caudal.version=1")
    with pytest.raises(AssertionError, match=r"Could not upgrade caudal\.version"):
        run_java("org.apache.kafka.tools.FeatureCommand", *options)


@pytest.mark.parametrize("node", [1, 4])
def test_the_metadata_log_of_either_kind_is_dumped(mixed: MixedCluster, topic: str, node: int) -> None:
    def dump() -> str:
        folder = mixed.nodes[node].data / "__cluster_metadata-0"
        files = sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])
        options = ("--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
        return run_java("org.apache.kafka.tools.DumpLogSegments", *options)

    said = eventually(dump, lambda said: f'"name":"{topic}"' in said)
    registered = {int(number) for number in re.findall(r'"REGISTER_BROKER_RECORD".*?"brokerId":(\d+)', said)}
    assert registered == set(EVERY_BROKER)
    assert "Could not decode" not in said


@pytest.mark.parametrize("broker", [1, 4])
def test_segments_of_either_kind_are_dumped(mixed: MixedCluster, topic: str, broker: int) -> None:
    file = mixed.nodes[broker].data / f"{topic}-0" / "00000000000000000000.log"
    options = ("--deep-iteration", "--print-data-log", "--files", str(file))
    said = run_java("org.apache.kafka.tools.DumpLogSegments", *options)
    assert re.findall(r"payload: (.+)", said) == [f"record {number}" for number in range(0, RECORDS, 2)]
