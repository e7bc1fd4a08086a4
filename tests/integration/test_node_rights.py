"""Nothing works between nodes without rights: a login alone makes nobody a broker or a controller."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from core_broker.errors import ErrorCode
from core_broker.peers.peers import Address, Peers
from core_broker.peers.security import PeerSecurity
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    end_quorum_epoch,
    envelope,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
    write_txn_markers,
)
from core_broker.security.sasl.client import PasswordLogin
from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.cluster_security import ClusterSecurity
from tests.support.kafka import stored_cluster_id

GUEST = "guest"
"""A user that may log in, and nothing else."""
PROTOCOL = "SASL_PLAINTEXT"

OF_CONTROLLERS: tuple[Message, ...] = (
    vote.VoteRequest(),
    begin_quorum_epoch.BeginQuorumEpochRequest(),
    end_quorum_epoch.EndQuorumEpochRequest(),
    fetch.FetchRequest(),
    fetch_snapshot.FetchSnapshotRequest(),
    broker_registration.BrokerRegistrationRequest(),
    broker_heartbeat.BrokerHeartbeatRequest(),
    controller_registration.ControllerRegistrationRequest(),
    alter_partition.AlterPartitionRequest(),
    allocate_producer_ids.AllocateProducerIdsRequest(),
    assign_replicas_to_dirs.AssignReplicasToDirsRequest(),
    update_raft_voter.UpdateRaftVoterRequest(),
    envelope.EnvelopeRequest(),
)
OF_BROKERS: tuple[Message, ...] = (
    add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=[add_partitions_to_txn.AddPartitionsToTxnTransaction("t", 1, 0, verify_only=True)]
    ),
)


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> ClusterSecurity:
    return ClusterSecurity(tmp_path_factory.mktemp("security"), protocol=PROTOCOL, others=[GUEST])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, security: ClusterSecurity) -> Iterator[BrokerCluster]:
    settings = {"default.replication.factor": "1", "min.insync.replicas": "1"}
    cluster = BrokerCluster(tmp_path_factory.mktemp("cluster"), size=2, security=security, settings=settings)
    with ExitStack() as stack:
        stack.push(cluster)  # which stops it
        cluster.start([1])
        yield cluster


async def ask(security: ClusterSecurity, port: int, request: Message) -> Message:
    """The response to the guest."""
    login = PasswordLogin(security.mechanism, GUEST, security.passwords[GUEST])
    peers = Peers(client_id="guest", security=PeerSecurity("SECURE", PROTOCOL, login=login))
    try:
        return await peers.call(Address("127.0.0.1", port), request, timeout_seconds=20)
    finally:
        await peers.close()


@pytest.mark.parametrize("request_", OF_CONTROLLERS, ids=lambda request: type(request).__name__)
async def test_a_guest_cannot_act_as_a_node_at_a_controller(
    cluster: BrokerCluster, security: ClusterSecurity, request_: Message
) -> None:
    response = await ask(security, cluster[1].controller_port, request_)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # type: ignore[attr-defined]  # all have it


@pytest.mark.parametrize("request_", OF_BROKERS, ids=lambda request: type(request).__name__)
async def test_a_guest_cannot_act_as_a_broker_at_another(
    cluster: BrokerCluster, security: ClusterSecurity, request_: Message
) -> None:
    response = await ask(security, cluster[1].port, request_)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # type: ignore[attr-defined]  # all have it


async def test_a_guest_cannot_write_markers(cluster: BrokerCluster, security: ClusterSecurity) -> None:
    topic = write_txn_markers.WritableTxnMarkerTopic("orders", [0])
    marker = write_txn_markers.WritableTxnMarker(1, 0, True, [topic])
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    response = await ask(security, cluster[1].port, request)
    assert isinstance(response, write_txn_markers.WriteTxnMarkersResponse)
    (partition,) = response.markers[0].topics[0].partitions
    assert partition.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_broker_without_rights_stays_outside_until_an_acl_lets_it_in(
    cluster: BrokerCluster, security: ClusterSecurity
) -> None:
    admin = AdminClient({**cluster.connection, "log_level": 0})
    guest = cluster[2]
    own = {"cluster.id": stored_cluster_id(cluster[1].data), "controller.quorum.auto.join.enable": "false"}
    guest.settings |= {**security.of_node(2, user=GUEST), **own}
    guest.launch()
    eventually(lambda: "CLUSTER_AUTHORIZATION_FAILED" in guest.log_text())
    assert list(admin.list_topics(timeout=20).brokers) == [1]
    assert '"principal": "User:guest"' in guest.log_text()
    binding = AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        f"User:{GUEST}",
        "*",
        AclOperation.CLUSTER_ACTION,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([binding]).values():
        future.result(30)
    eventually(lambda: sorted(admin.list_topics(timeout=20).brokers), lambda found: found == [1, 2])
    admin.create_topics([NewTopic("orders", 4, 2)])["orders"].result(30)
    eventually(partial(in_sync, admin, "orders"))


def in_sync(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return all(len(partition.isrs) == 2 for partition in found.values())
