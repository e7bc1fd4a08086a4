"""Clusters whose nodes and clients all use TLS and log in: from nothing, through failures, and to new certificates."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster, ClusterNode
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.cluster_security import NODE, ClusterSecurity

KINDS = {"certificates": ("SSL", ""), "PLAIN": ("SASL_SSL", "PLAIN"), "SCRAM": ("SASL_SSL", "SCRAM-SHA-512")}


@pytest.fixture(params=KINDS)
def security(request: pytest.FixtureRequest, tmp_path: Path) -> ClusterSecurity:
    protocol, mechanism = KINDS[request.param]
    return ClusterSecurity(tmp_path / "security", protocol=protocol, mechanism=mechanism)


def create(cluster: BrokerCluster, topic: str, replicas: int = 3) -> AdminClient:
    admin = AdminClient({**cluster.connection, "log_level": 0})
    admin.create_topics([NewTopic(topic, 3, replicas)])[topic].result(60)
    return admin


def in_sync(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return all(len(partition.isrs) == 3 for partition in found.values())


def test_a_cluster_forms_from_nothing_fails_over_and_starts_again(tmp_path: Path, security: ClusterSecurity) -> None:
    with BrokerCluster(tmp_path, security=security) as cluster:
        admin = create(cluster, "orders")
        with ClusterLoad(cluster.bootstrap, "orders", security.of_client) as load:
            for number in (1, 2):
                load.wait_for_more()
                cluster[number].kill()
                load.wait_for_more()
                cluster[number].start()
                eventually(lambda: in_sync(admin, "orders"))
        for node in cluster:
            node.kill()
        start_together(cluster)
        eventually(lambda: in_sync(admin, "orders"))
        assert load.failed == []
        assert dict(read_all(cluster.bootstrap, "orders", 3, security.of_client)) == load.acknowledged


def test_one_node_grows_into_a_cluster(tmp_path: Path, security: ClusterSecurity) -> None:
    settings = {"default.replication.factor": "1", "min.insync.replicas": "1"}
    cluster = BrokerCluster(tmp_path, security=security, settings=settings)
    with ExitStack() as stack:
        stack.push(cluster)  # which stops it
        cluster.start([1])
        create(cluster, "before", replicas=1)
        cluster.start([2, 3])
        admin = create(cluster, "orders")
        with ClusterLoad(cluster.bootstrap, "orders", security.of_client) as load:
            load.wait_for_more()
            cluster[1].kill()
            load.wait_for_more()
            cluster[1].start()
            eventually(lambda: in_sync(admin, "orders"))
        assert load.failed == []
        assert dict(read_all(cluster.bootstrap, "orders", 3, security.of_client)) == load.acknowledged


def test_controllers_of_a_fixed_quorum_log_in_by_scram_before_there_is_any_metadata(tmp_path: Path) -> None:
    security = ClusterSecurity(tmp_path / "security", mechanism="SCRAM-SHA-512")
    cluster = BrokerCluster(tmp_path, security=security)
    voters = ",".join(f"{node.node_id}@127.0.0.1:{node.controller_port}" for node in cluster)
    for node in cluster:
        node.settings |= {"controller.quorum.voters": voters, "cluster.id": "AAAAAAAAAAAAAAAAAAAAAA"}
        node.settings.pop("controller.quorum.bootstrap.servers", None)
        node.settings["controller.quorum.auto.join.enable"] = "false"
    with ExitStack() as stack:
        stack.push(cluster)  # which stops it
        start_together(cluster)
        create(cluster, "orders")
        password = renewed_password(cluster, security)
        for node in cluster:  # no snapshot has the new password
            node.kill()
            for key, value in node.settings.items():
                node.settings[key] = value.replace(security.passwords[NODE], password)
        start_together(cluster)
        create(cluster, "more")


def renewed_password(cluster: BrokerCluster, security: ClusterSecurity) -> str:
    """Give the nodes another password; those that run are still logged in by the old one."""
    password = "another" + security.passwords[NODE]
    mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(NODE, mechanism, password.encode())
    admin = AdminClient({**cluster.connection, "log_level": 0})
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result(30)
    return password


def start_together(cluster: BrokerCluster) -> None:
    with ThreadPoolExecutor() as threads:
        list(threads.map(ClusterNode.start, cluster))


def serial_shown(node: ClusterNode, security: ClusterSecurity) -> int:
    """The serial number of the certificate that a node shows to a client."""
    context = ssl.create_default_context(cafile=str(security.authority.trust_store))
    with (
        socket.create_connection(("127.0.0.1", node.port), timeout=20) as connection,
        context.wrap_socket(connection, server_hostname="127.0.0.1") as encrypted,
    ):
        der = encrypted.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def test_certificates_are_renewed_node_by_node_without_an_error(tmp_path: Path) -> None:
    security = ClusterSecurity(tmp_path / "security", protocol="SSL")
    with BrokerCluster(tmp_path, security=security) as cluster:
        admin = create(cluster, "orders")
        with ClusterLoad(cluster.bootstrap, "orders", security.of_client) as load:
            load.wait_for_more()
            for node in cluster:
                before = serial_shown(node, security)
                security.key_store(f"node-{node.node_id}")
                eventually(lambda: serial_shown(node, security) != before)  # noqa: B023
                load.wait_for_more()
            cluster[1].kill()  # so that the others open new connections, to it and among themselves
            load.wait_for_more()
            cluster[1].start()
            eventually(lambda: in_sync(admin, "orders"))
        assert load.failed == []
        assert dict(read_all(cluster.bootstrap, "orders", 3, security.of_client)) == load.acknowledged


def test_a_node_with_a_wrong_password_stays_outside_and_says_why(tmp_path: Path) -> None:
    security = ClusterSecurity(tmp_path / "security")
    cluster = BrokerCluster(tmp_path, size=2, security=security)
    with ExitStack() as stack:
        stack.push(cluster)  # which stops it
        cluster.start([1])
        outsider = cluster[2]
        prefix = "listener.name.controller.plain.sasl.jaas.config"
        outsider.settings[prefix] = outsider.settings[prefix].replace(security.passwords[NODE], "letmein", 1)
        outsider.launch()
        eventually(lambda: "cannot log in" in outsider.log_text())
        said = outsider.log_text()
        assert prefix in said
        assert "letmein" not in said
        assert security.passwords[NODE] not in said
        admin = AdminClient({**cluster.connection, "log_level": 0})
        assert list(admin.list_topics(timeout=20).brokers) == [1]
