"""Kafka's own command-line tools as judges, as an operator runs them.

They need Java and the jar of the tools with all it needs, in one folder: `make test-java` fetches them and runs this.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import TIMEOUT_S, Sent

JARS = os.environ.get("CAUDAL_KAFKA_TOOLS")
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
RUN_TIMEOUT_S = 120

pytestmark = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_KAFKA_TOOLS names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("java") is None, reason="the command java is not installed"),
    pytest.mark.timeout(6 * RUN_TIMEOUT_S),
    pytest.mark.xdist_group("java"),
]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with two folders for its partitions, whose settings the tools change."""
    directory = tmp_path_factory.mktemp("tools")
    with BrokerProcess(directory, settings={"log.dirs": f"{directory / 'a'},{directory / 'b'}"}) as broker:
        yield broker


def run_tool(broker: BrokerProcess, tool: str, *arguments: str) -> str:
    """Run a tool to its end; returns what it wrote, and fails when the tool did."""
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"]
    process = subprocess.run(
        [*java, tool, *arguments, "--bootstrap-server", broker.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return process.stdout


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
    told = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--execute", "--throttle", "1000000")
    assert "The inter-broker throttle limit was set to 1000000 B/s" in told
    assert broker_value(own_broker, "leader.replication.throttled.rate") == "1000000"
    assert "No partition reassignments found." in run_tool(own_broker, REASSIGN, "--list")
    told = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--verify")
    assert "Reassignment of partition throttled-0 is completed." in told
    assert broker_value(own_broker, "leader.replication.throttled.rate") == str(2**63 - 1)


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
    told = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--execute", *throttle)
    assert f"Successfully started moving log directory to {there} for replica moved-0 with broker 1" in told
    assert broker_value(own_broker, rate) == "1000000"
    eventually((there / "moved-0").exists)
    told = run_tool(own_broker, REASSIGN, "--reassignment-json-file", plan, "--verify")
    assert "Reassignment of replica moved-0-1 completed successfully." in told
    assert broker_value(own_broker, rate) == str(2**63 - 1)
    assert [record.value for record in read_to_end(own_broker.bootstrap, "moved")] == [item.value for item in sent]


def test_an_unknown_broker_is_not_unregistered(own_broker: BrokerProcess) -> None:
    with pytest.raises(AssertionError, match="Broker ID 77 is not currently registered"):
        run_tool(own_broker, "org.apache.kafka.tools.ClusterTool", "unregister", "--id", "77")
