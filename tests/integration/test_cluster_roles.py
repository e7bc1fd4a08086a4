"""Controllers and brokers as separate processes, with the voters in the settings and with voters that join."""

import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from core_broker.client.connection import Connection
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages import describe_quorum as wire
from tests.support.admin import eventually
from tests.support.cluster import free_port
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.role_cluster import BROKERS, CONTROLLERS, RoleCluster
from tests.support.service import run_module

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=[True, False], ids=["voters", "bootstrap-servers"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoleCluster]:
    with RoleCluster(tmp_path_factory.mktemp("roles"), is_static=request.param).running() as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(60)
        yield running


def quorum(cluster: RoleCluster) -> wire.DescribeQuorumResponsePartitionData:
    """The quorum, as a live broker forwards it from the controller."""
    port = next(node.port for node in cluster.brokers.values() if node.is_running)
    with Connection(ClientSettings(), "127.0.0.1", port) as connection:
        asked = wire.DescribeQuorumRequest([wire.TopicData("__cluster_metadata", [wire.PartitionData(0)])])
        response = connection.send(asked, 2, wire.DescribeQuorumResponse)
    return response.topics[0].partitions[0]


def in_sync(cluster: RoleCluster) -> bool:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partitions = admin.list_topics("orders", timeout=60).topics["orders"].partitions
    return all(len(partition.isrs) == 3 for partition in partitions.values())


def test_only_controllers_vote_and_only_brokers_serve_clients(cluster: RoleCluster) -> None:
    found = quorum(cluster)
    assert sorted(voter.replica_id for voter in found.current_voters) == list(CONTROLLERS)
    observers = eventually(lambda: {node.replica_id for node in quorum(cluster).observers}, lambda now: len(now) == 3)
    assert observers == set(BROKERS)
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=60)
    assert sorted(metadata.brokers) == list(BROKERS)
    replicas = {
        replica for partition in metadata.topics["orders"].partitions.values() for replica in partition.replicas
    }
    assert replicas == set(BROKERS)


def test_a_killed_controller_costs_clients_nothing(cluster: RoleCluster) -> None:
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        load.wait_for_more()
        active = quorum(cluster).leader_id
        cluster.controllers[active].kill()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        name = f"made-without-{active}"
        admin.create_topics([NewTopic(name, 1, 3)])[name].result(60)
        assert quorum(cluster).leader_id != active
        load.wait_for_more()
        cluster.controllers[active].start()
    assert load.failed == []


def test_a_killed_broker_costs_clients_a_pause_and_no_record(cluster: RoleCluster) -> None:
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        load.wait_for_more()
        cluster.brokers[5].kill()
        load.wait_for_more()
        cluster.brokers[5].start()
        eventually(lambda: in_sync(cluster))
    assert load.failed == []
    found = read_all(cluster.bootstrap, "orders", 3)
    assert set(load.acknowledged.items()) <= set(found)


def test_a_broker_without_its_controllers_stops_soon_and_comes_back_with_them(cluster: RoleCluster) -> None:
    for controller in cluster.controllers.values():
        controller.kill()
    node = cluster.brokers[6]
    node.stop()
    assert "may still lead partitions" in node.log_text()
    for controller in cluster.controllers.values():
        controller.launch()
    node.start()
    eventually(lambda: in_sync(cluster))


def test_a_node_whose_roles_and_listeners_contradict_each_other_does_not_start() -> None:
    both = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:{free_port()}"
    command = run_module("core_broker", {"process.roles": "controller", "listeners": both})
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0
    reason = "must contain only controller.listener.names if process.roles=controller: CONTROLLER"
    assert f"listeners={both}: {reason}" in refused.stderr
