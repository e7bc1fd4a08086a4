"""`caudal cluster` as operators use it, on three brokers."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from core_broker.client.admin import Admin
from core_broker.client.connection import Connection
from core_broker.client.errors import Unreachable
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.command import Caudal
from tests.support.platform import caudal as caudal_command
from tests.support.role_cluster import ControllerProcess
from tests.support.service import service_environment

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    brokers = BrokerCluster(tmp_path_factory.mktemp("cluster"))
    for node in brokers:
        node.settings["broker.rack"] = f"rack-{node.node_id}"
    with brokers:
        yield brokers


@pytest.fixture
def caudal(cluster: BrokerCluster, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", cluster.bootstrap)
    return Caudal(monkeypatch)


def replicas_of(cluster: BrokerCluster, topic: str) -> list[list[int]]:
    """The replicas of each partition, once all live brokers agree, the controller among them."""

    def answers() -> list[list[list[int]]]:
        found = []
        for node in cluster:
            with suppress(Unreachable), Connection(ClientSettings(), "127.0.0.1", node.port) as connection:
                response = connection.send(MetadataRequest([MetadataRequestTopic(name=topic)]), 9, MetadataResponse)
                partitions = sorted(response.topics[0].partitions, key=lambda item: item.partition_index)
                found.append([item.replica_nodes for item in partitions])
        return found

    return eventually(answers, lambda found: bool(found[0]) and all(item == found[0] for item in found))[0]


def test_describe_shows_brokers_with_racks_and_disks_and_the_quorum(caudal: Caudal) -> None:
    found = eventually(
        lambda: caudal.json("cluster"), lambda now: [item["lag_records"] for item in now["quorum"]["voters"]] == [0] * 3
    )
    assert [(item["id"], item["rack"], item["fenced"]) for item in found["brokers"]] == [
        (1, "rack-1", False),
        (2, "rack-2", False),
        (3, "rack-3", False),
    ]
    assert {(item["software"], item["version"]) for item in found["brokers"]} == {("Caudal", version("caudal"))}
    assert all(disk["total_bytes"] > 0 for item in found["brokers"] for disk in item["disks"])
    assert found["controller"] == found["quorum"]["leader"]
    assert found["offline"] == found["under_replicated"] == found["reassignments"] == []
    shown = caudal("cluster", "describe").stdout
    assert "rack-3" in shown
    assert f"Caudal {version('caudal')}" in shown
    assert "Quorum, epoch" in shown


def test_options_before_a_command_are_not_ignored_silently(caudal: Caudal) -> None:
    assert "come after the command" in caudal("cluster", "--bootstrap", "x:1", "elect", code=2).stderr


def test_creating_a_topic_says_what_its_replicas_mean(caudal: Caudal, name: str) -> None:
    said = caudal("topic", "create", name).stderr
    assert "3 copies of each partition; a write with acks=all is on at least 2 of them, and 1 broker may fail" in said
    single = caudal("topic", "create", f"{name}-1", "--replicas", "1", "-c", "min.insync.replicas=1").stderr
    assert "one copy of each partition" in single
    refused = caudal("topic", "create", f"{name}-4", "--replicas", "4", code=1).stderr
    assert "4 replicas need 4 live brokers, and the cluster has 3" in refused
    assert "--replicas 3" in refused
    caudal("topic", "delete", name, f"{name}-1", "--yes")


def test_at_a_terminal_a_new_topic_asks_for_its_replicas(cluster: BrokerCluster, name: str) -> None:
    keyboard, terminal = os.openpty()
    try:
        os.write(keyboard, b"2\n")
        words = caudal_command("topic", "create", name, "--bootstrap", cluster.bootstrap)
        completed = subprocess.run(
            words,
            stdin=terminal,
            stderr=terminal,
            stdout=subprocess.PIPE,
            check=False,
            timeout=60,
            env=service_environment(),
        )
        said = os.read(keyboard, 1 << 16).decode()
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert completed.returncode == 0, said
    assert "Copies of each partition, on different brokers (3 are live) [3]" in said
    assert [len(replicas) for replicas in replicas_of(cluster, name)] == [2]


def test_a_topic_grows_and_shrinks_again_while_brokers_are_drained(
    caudal: Caudal, cluster: BrokerCluster, name: str
) -> None:
    caudal("topic", "create", name, "--partitions", "4", "--replicas", "1", "-c", "min.insync.replicas=1")
    assert len(replicas_of(cluster, name)) == 4
    caudal("topic", "produce", name, "kept")
    grown = caudal.json("cluster", "grow", "--topic", name)
    assert len([move for move in grown["moved"] if move["topic"] == name]) == 4
    assert all(sorted(replicas) == [1, 2, 3] for replicas in replicas_of(cluster, name))
    refused = caudal("cluster", "drain", "3", code=1).stderr
    assert "no other live broker is free for" in refused
    assert "caudal cluster drain 3 --allow-fewer-replicas" in refused
    planned = caudal.json("cluster", "drain", "3", "--allow-fewer-replicas", "--plan")
    assert all(3 not in item["replicas"] for item in planned["partitions"])
    assert all(3 in replicas for replicas in replicas_of(cluster, name)), "a plan changes nothing"
    caudal("cluster", "drain", "3", "--allow-fewer-replicas", "--batch", "2")
    assert all(sorted(replicas) == [1, 2] for replicas in replicas_of(cluster, name))
    assert "kept" in caudal("topic", "consume", name, "--from", "beginning").stdout
    assert "every partition has all its replicas in sync" in caudal("cluster").stderr


def test_a_plan_is_run_watched_and_balances_replicas(
    caudal: Caudal, cluster: BrokerCluster, name: str, tmp_path: Path
) -> None:
    caudal("topic", "create", name, "--partitions", "3", "--replicas", "1", "-c", "min.insync.replicas=1")
    assert len(replicas_of(cluster, name)) == 3
    everything_on_one = [{"topic": name, "partition": index, "replicas": [1]} for index in range(3)]
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": everything_on_one}))
    caudal("cluster", "reassign", "run", str(file))
    assert replicas_of(cluster, name) == [[1], [1], [1]]
    file.write_text(caudal("cluster", "reassign", "plan", "--topic", name).stdout)
    outcome = caudal.json("cluster", "reassign", "run", str(file))
    assert sorted(replicas_of(cluster, name)) == [[1], [2], [3]]
    assert all(item["replicas"] == [1] for item in outcome["previous"]["partitions"])
    assert "nothing is moving" in caudal("cluster", "reassign", "watch").stderr
    assert caudal.json("cluster", "reassign", "cancel") == []
    caudal("topic", "delete", name, "--yes")


def test_files_that_cannot_be_run_are_refused_and_nothing_moves(caudal: Caudal, tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text("{}")
    assert "moves.json does not list moves: KeyError" in caudal("cluster", "reassign", "run", str(file), code=1).stderr
    file.write_text('{"partitions": [{"topic": "no-such-topic", "partition": 0, "replicas": [1]}]}')
    assert "no-such-topic-0" in caudal("cluster", "reassign", "run", str(file), code=1).stderr


def test_a_partition_without_its_last_replica_gets_a_leader_only_by_an_unclean_election(
    caudal: Caudal, cluster: BrokerCluster, name: str, tmp_path: Path
) -> None:
    caudal("topic", "create", name, "--partitions", "1", "--replicas", "1", "-c", "min.insync.replicas=1")
    assert len(replicas_of(cluster, name)) == 1
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"partitions": [{"topic": name, "partition": 0, "replicas": [3, 2]}]}))
    caudal("cluster", "reassign", "run", str(file))
    caudal("cluster", "elect", "--topic", name)

    def leader_and_in_sync() -> tuple[int, list[int]]:
        (partition,) = caudal.json("topic", "describe", name)["partitions"]
        return partition["leader"], partition["isr"]

    eventually(leader_and_in_sync, lambda now: (now[0], sorted(now[1])) == (3, [2, 3]))
    cluster[2].kill()
    eventually(leader_and_in_sync, lambda now: now == (3, [3]))
    cluster[3].kill()
    cluster[2].start()
    eventually(lambda: caudal.json("cluster"), lambda now: name in [item["topic"] for item in now["offline"]])
    asked = caudal("cluster", "elect", "--topic", name, "--unclean", code=1).stderr
    assert "those records are lost for good" in asked
    elected = caudal.json("cluster", "elect", "--topic", name, "--unclean", "--yes")
    assert elected == [{"topic": name, "partition": 0, "error": None}]
    eventually(leader_and_in_sync, lambda now: now[0] == 2)
    cluster[3].start()
    caudal("topic", "delete", name, "--yes")


def test_a_dead_broker_is_fenced_then_drained_and_forgotten(caudal: Caudal, cluster: BrokerCluster, name: str) -> None:
    caudal("topic", "create", name, "--partitions", "3", "--replicas", "3")
    refused = caudal("cluster", "unregister", "3", code=1).stderr
    assert "broker 3 is live" in refused
    assert "caudal cluster drain 3" in refused
    assert "there is no broker 7" in caudal("cluster", "unregister", "7", code=1).stderr
    cluster[3].kill()
    found = eventually(
        lambda: caudal.json("cluster"),
        lambda now: (
            [item["id"] for item in now["brokers"] if item["fenced"]] == [3]
            and len([item for item in now["under_replicated"] if item["topic"] == name]) == 3
        ),
    )
    assert [item["disks"] is None for item in found["brokers"]] == [False, False, True]
    assert "broker 3 still has" in caudal("cluster", "unregister", "3", "--yes", code=1).stderr
    client = Admin(ClientSettings(bootstrap_servers=cluster.bootstrap, properties={"log_level": "0"}))
    client.create_topic(f"{name}-moving", partitions=1, assignment=[[1]])
    assert client.maintenance.reassign({(f"{name}-moving", 0): (1, 3)}) == {(f"{name}-moving", 0): None}
    assert "replicas are moving already" in caudal("cluster", "drain", "3", code=1).stderr
    assert "Moving" in caudal("cluster").stdout
    assert "1 move cancelled" in caudal("cluster", "reassign", "cancel", "--yes").stderr
    assert replicas_of(cluster, f"{name}-moving") == [[1]]
    caudal("cluster", "drain", "3", "--allow-fewer-replicas")
    assert all(3 not in replicas for replicas in replicas_of(cluster, name))
    assert "caudal cluster remove-voter 3" in caudal("cluster", "unregister", "3", "--yes", code=1).stderr
    with ControllerProcess.in_place_of(cluster[3]):
        assert "it goes on as a controller" in caudal("cluster", "unregister", "3", "--yes").stderr
    assert sorted(caudal.json("cluster", "remove-voter", "3", "--yes")["voters"]) == [1, 2]
    assert [item["id"] for item in caudal.json("cluster")["brokers"]] == [1, 2]
    assert "no election is needed" in eventually(
        lambda: caudal("cluster", "elect").stderr, lambda text: "no election is needed" in text
    )
