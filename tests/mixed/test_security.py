"""A cluster of both kinds whose nodes and clients use TLS and log in: each kind joins the quorum of the other."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import FAST_FAILOVER, ClusterNode
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.cluster_security import SECURE, ClusterSecurity
from tests.support.kafka import CLUSTER_ID, SMALL_JAVA, KafkaNode, stored_cluster_id
from tests.support.mixed_cluster import FEATURES_WE_LACK, needs_kafka
from tests.support.role_cluster import PureBrokerProcess

pytestmark = needs_kafka

MECHANISMS = ["PLAIN", "SCRAM-SHA-512"]
SETTINGS = {
    **FAST_FAILOVER,
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "min.insync.replicas": "1",
}


def listeners(port: int, controller_port: int | None = None) -> str:
    """Where a node listens."""
    own = f"{SECURE}://127.0.0.1:{port}"
    return own if controller_port is None else f"{own},CONTROLLER://127.0.0.1:{controller_port}"


def kafka(folder: Path, node_id: int, security: ClusterSecurity, *, cluster_id: str = CLUSTER_ID) -> KafkaNode:
    """A node of Kafka: the controller and first broker, or a broker that joins."""
    is_first = node_id == 1
    node = KafkaNode(
        folder,
        node_id=node_id,
        settings={**SETTINGS, "inter.broker.listener.name": SECURE, **security.of_node(node_id)},
        roles="broker,controller" if is_first else "broker",
        cluster_id=cluster_id,
        features=FEATURES_WE_LACK if is_first else None,
        format_options=security.format_options() if is_first else (),
        java_options=SMALL_JAVA,
    )
    node.settings["listeners"] = listeners(node.port, node.controller_port if is_first else None)
    return node


def caudal_guest(folder: Path, node_id: int, security: ClusterSecurity) -> PureBrokerProcess:
    """A broker of ours that joins."""
    node = PureBrokerProcess(folder, node_id=node_id, settings={**SETTINGS, **security.of_node(node_id)})
    node.settings |= {
        "listeners": listeners(node.port),
        "inter.broker.listener.name": SECURE,
        "controller.listener.names": "CONTROLLER",
    }
    return node


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("quorum", ["caudal", "kafka"])
def test_a_broker_of_the_other_kind_joins_and_replicates(quorum: str, mechanism: str, tmp_path: Path) -> None:
    security = ClusterSecurity(tmp_path / "security", mechanism=mechanism)
    guest: BrokerProcess
    if quorum == "caudal":
        first: ClusterNode | KafkaNode = ClusterNode(
            tmp_path / "first", node_id=1, settings=SETTINGS, security=security
        )
    else:
        first = kafka(tmp_path / "first", 1, security)
    with first:
        if isinstance(first, KafkaNode):
            guest = caudal_guest(tmp_path / "guest", 2, security)
            guest.settings |= {**first.quorum, "cluster.id": CLUSTER_ID}
        else:
            guest = kafka(tmp_path / "guest", 2, security, cluster_id=stored_cluster_id(first.data))
            guest.quorum = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{first.controller_port}"}
        with guest:
            check_replication(f"127.0.0.1:{first.port},127.0.0.1:{guest.port}", security)


def check_replication(bootstrap: str, security: ClusterSecurity) -> None:
    """Brokers 1 and 2 both lead, and follow each other."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **security.of_client})
    eventually(lambda: sorted(admin.list_topics(timeout=20).brokers), lambda found: found == [1, 2])
    admin.create_topics([NewTopic("orders", 4, 2)])["orders"].result(60)
    with ClusterLoad(bootstrap, "orders", security.of_client) as load:
        load.wait_for_more()
        eventually(lambda: in_sync(admin))
        load.wait_for_more()
    assert load.failed == []
    assert dict(read_all(bootstrap, "orders", 4, security.of_client)) == load.acknowledged


def in_sync(admin: AdminClient) -> bool:
    found = admin.list_topics("orders", timeout=60).topics["orders"].partitions
    return {partition.leader for partition in found.values()} == {1, 2} and all(
        len(partition.isrs) == 2 for partition in found.values()
    )
