"""Kafka's own command-line tools as judges, as an operator runs them.

They need Java and the jar of the tools with all it needs, in one folder: `make test-java` fetches them and runs this.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.cluster import BrokerCluster
from tests.support.java_tools import RUN_TIMEOUT_S, needs_tools, run_tool

REASSIGN = "reassign.ReassignPartitionsCommand"

pytestmark = needs_tools


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with two folders for its partitions, whose settings the tools change."""
    directory = tmp_path_factory.mktemp("tools")
    with BrokerProcess(directory, settings={"log.dirs": f"{directory / 'a'},{directory / 'b'}"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    # A follower copies ten times the limit with each fetch, and then has to wait for as many seconds.
    settings = {"replica.fetch.max.bytes": "100000"}
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), settings=settings) as cluster:
        yield cluster


def plan_file(path: Path, *partitions: dict[str, object]) -> str:
    path.write_text(json.dumps({"version": 1, "partitions": list(partitions)}), "utf-8")
    return str(path)


def broker_value(broker: BrokerProcess, key: str) -> str | None:
    (found,) = admin_client(broker).describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    value: str | None = found.result(TIMEOUT_S)[key].value
    return value


def test_a_reassignment_is_throttled_verified_and_listed(own_broker: BrokerProcess, tmp_path: Path) -> None:
    create_topic(own_broker, "throttled")
    plan = plan_file(tmp_path / "plan.json", {"topic": "throttled", "partition": 0, "replicas": [1]})
    output = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--execute", "--throttle", "1000000")
    assert "The inter-broker throttle limit was set to 1000000 B/s" in output
    assert broker_value(own_broker, "leader.replication.throttled.rate") == "1000000"
    assert "No partition reassignments found." in run_tool(own_broker, REASSIGN, "--list")
    output = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--verify")
    assert "Reassignment of partition throttled-0 is completed." in output
    assert broker_value(own_broker, "leader.replication.throttled.rate") == str(2**63 - 1)


def throttles(cluster: BrokerCluster, topic: str) -> dict[str, str | None]:
    """The throttles of the topic, and of each broker that has one."""
    admin = admin_client(cluster[1])
    resources = [ConfigResource(ResourceType.TOPIC, topic)]
    resources += [ConfigResource(ResourceType.BROKER, str(node.node_id)) for node in cluster]
    found = {}
    for resource in resources:
        (future,) = admin.describe_configs([resource]).values()
        for key, entry in future.result(TIMEOUT_S).items():
            if ".replication.throttled." in key and not entry.is_default:
                found[f"{resource.name} {key.removesuffix('.replication.throttled.rate')}"] = entry.value
    return found


def test_a_throttled_reassignment_between_brokers_is_cancelled_or_completed(
    three_brokers: BrokerCluster, tmp_path: Path
) -> None:
    admin = admin_client(three_brokers[1])
    new = NewTopic("moving", 1, replica_assignment=[[1]], config={"min.insync.replicas": "1"})
    admin.create_topics([new])["moving"].result(TIMEOUT_S)
    sent = [Sent(value=os.urandom(10_000), partition=0) for _ in range(300)]
    ConfluentClient().produce(three_brokers.bootstrap, "moving", sent)
    plan = plan_file(tmp_path / "plan.json", {"topic": "moving", "partition": 0, "replicas": [2, 3]})

    def reassign(*arguments: str) -> str:
        return run_tool(three_brokers, REASSIGN, "--reassignment-json-file", plan, *arguments)

    output = reassign("--execute", "--throttle", "10000")
    assert "The inter-broker throttle limit was set to 10000 B/s" in output
    assert "Successfully started partition reassignment for moving-0" in output
    both = {f"{number} {side}": "10000" for number in (1, 2, 3) for side in ("leader", "follower")}
    lists = {
        "moving leader.replication.throttled.replicas": "0:1",
        "moving follower.replication.throttled.replicas": "0:2,0:3",
    }
    eventually(lambda: throttles(three_brokers, "moving"), lambda found: found == both | lists)
    assert "moving-0: replicas: 2,3,1. adding: 2,3. removing: 1." in run_tool(three_brokers, REASSIGN, "--list")
    assert "Reassignment of partition moving-0 is still in progress." in reassign("--verify")
    assert throttles(three_brokers, "moving") == both | lists
    output = reassign("--cancel")
    assert "Successfully cancelled partition reassignment for: moving-0" in output
    eventually(lambda: throttles(three_brokers, "moving"), lambda found: found == {})
    reassign("--execute", "--throttle", "100000000")
    output = eventually(lambda: reassign("--verify"), lambda said: "is completed" in said, timeout_s=RUN_TIMEOUT_S)
    assert "Clearing broker-level throttles on brokers 1,2,3" in output
    assert "Clearing topic-level throttles on topic moving" in output
    eventually(lambda: throttles(three_brokers, "moving"), lambda found: found == {})
    found = read_to_end(three_brokers.bootstrap, "moving")
    assert [record.value for record in found] == [item.value for item in sent]


def test_a_reassignment_moves_a_partition_to_another_folder(own_broker: BrokerProcess, tmp_path: Path) -> None:
    create_topic(own_broker, "moved")
    sent = [Sent(value=b"v%d" % number, partition=0) for number in range(100)]
    ConfluentClient().produce(own_broker.bootstrap, "moved", sent)
    folders = [own_broker.directory / "a", own_broker.directory / "b"]
    there = next(folder for folder in folders if not (folder / "moved-0").exists())
    partition: dict[str, object] = {"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": [str(there)]}
    plan = plan_file(tmp_path / "plan.json", partition)
    rate = "replica.alter.log.dirs.io.max.bytes.per.second"
    throttle = ("--replica-alter-log-dirs-throttle", "1000000")
    output = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--execute", *throttle)
    assert f"Successfully started moving log directory to {there} for replica moved-0 with broker 1" in output
    assert broker_value(own_broker, rate) == "1000000"
    eventually((there / "moved-0").exists)
    output = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--verify")
    assert "Reassignment of replica moved-0-1 completed successfully." in output
    assert broker_value(own_broker, rate) == str(2**63 - 1)
    assert [record.value for record in read_to_end(own_broker.bootstrap, "moved")] == [item.value for item in sent]


def test_an_unknown_broker_is_not_unregistered(own_broker: BrokerProcess) -> None:
    with pytest.raises(AssertionError, match="Broker ID 77 is not currently registered"):
        run_tool(own_broker, "ClusterTool", "unregister", "--id", "77")
