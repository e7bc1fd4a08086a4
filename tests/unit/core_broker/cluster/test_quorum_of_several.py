"""Several nodes of the metadata quorum on real disks, connected by a network in memory that speaks the wire format."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.peers.peers import Address, PeerError, PeerRefusedError, Peers, response_type
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.vote import VoteRequest
from core_broker.protocol.principals import Principal
from core_broker.protocol.stored.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    EntityData,
    RemoveAccessControlEntryRecord,
    TopicRecord,
)
from core_broker.raft.voters import Endpoint, ReplicaKey, Voter
from core_broker.security.authorizer import Authorizer
from core_broker.security.operations import Operation, ResourceType
from core_broker.security.quotas import ClientQuotas
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener


class Network:
    """Delivers requests to nodes by their port; those that are cut off neither send nor receive."""

    def __init__(self) -> None:
        self.nodes: dict[int, MetadataQuorum] = {}
        self.cut: set[int] = set()


class MemoryPeers(Peers):
    """The connections of one node."""

    def __init__(self, network: Network, port: int) -> None:
        super().__init__(client_id=f"node-{port}")
        self._network = network
        self._port = port

    async def call(
        self,
        address: Address,
        request: Message,
        *,
        timeout_seconds: float,
        purpose: str = "",
        version: int | None = None,
    ) -> Message:
        network = self._network
        quorum = network.nodes.get(address.port)
        await asyncio.sleep(0)
        if {self._port, address.port} & network.cut:
            await asyncio.sleep(0.02)
            raise PeerError(f"{address} cannot be reached")
        if quorum is None:
            await asyncio.sleep(0.005)
            raise PeerRefusedError(f"{address} cannot be reached")
        newest = request.VERSIONS[1]
        received = decode(type(request), newest, bytes(encode(request, newest)), 0)
        try:
            async with asyncio.timeout(timeout_seconds):
                response = await quorum.on_request(received, "CONTROLLER")
        except BrokerError as error:
            response = response_type(type(request))(error_code=int(error.code))
        except TimeoutError as error:
            raise PeerError("timed out") from error
        if {self._port, address.port} & network.cut:
            raise PeerError(f"{address} cannot be reached")
        return decode(type(response), newest, bytes(encode(response, newest)), 0)


class Cluster:
    """Nodes 1, 2, … with the controller ports 9001, 9002, …"""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.network = Network()
        self.nodes: dict[int, MetadataQuorum] = {}

    def start(
        self, number: int, *, voters: Sequence[int] = (), bootstrap: int | None = None, snapshot_bytes: int = 1 << 20
    ) -> None:
        settings = BrokerSettings(
            node_id=number,
            listeners=(
                Listener("PLAINTEXT", "localhost", 8000 + number),
                Listener("CONTROLLER", "localhost", 9000 + number),
            ),
            controller_listener_names=("CONTROLLER",),
            controller_quorum_voters=tuple(f"{voter}@localhost:{9000 + voter}" for voter in voters),
            controller_quorum_bootstrap_servers=(f"localhost:{9000 + bootstrap}",) if bootstrap else (),
            controller_quorum_election_timeout_ms=100,
            controller_quorum_election_backoff_max_ms=100,
            controller_quorum_fetch_timeout_ms=300,
            metadata_log_max_record_bytes_between_snapshots=snapshot_bytes,
        )
        port = 9000 + number
        quorum = MetadataQuorum(
            self.path / str(number),
            cluster_id="c",
            settings=settings,
            clock=ManualClock(1_000),
            peers=MemoryPeers(self.network, port),
            directory_id=bytes([number]) * 16,
            endpoints=[("CONTROLLER", Endpoint("localhost", port))],
        )
        quorum.start()
        self.nodes[number] = self.network.nodes[port] = quorum

    async def stop(self, number: int) -> None:
        quorum = self.nodes.pop(number)
        self.network.nodes.pop(9000 + number)
        await quorum.close()

    async def leader(self) -> MetadataQuorum:
        await until(lambda: any(node.is_leader for node in self.nodes.values()))
        return next(node for node in self.nodes.values() if node.is_leader)

    async def append(self, *records: Message) -> None:
        """Change something, through whichever leader there is."""
        for _ in range(100):
            try:
                await (await self.leader()).append(records)
                return
            except BrokerError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
        raise AssertionError("no leader committed the change")

    async def add_voter(self, number: int) -> None:
        """Let a node vote, as soon as its fetches show that it has caught up."""
        voter = Voter(ReplicaKey(number, bytes([number]) * 16), (("CONTROLLER", Endpoint("localhost", 9000 + number)),))
        for _ in range(500):
            try:
                await (await self.leader()).change_voters(lambda node, now: node.add_voter(voter, now))
                return
            except BrokerError as error:
                if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                    raise
                await asyncio.sleep(0.02)
        raise AssertionError("the node did not catch up")

    async def all_have(self, *topics: str) -> None:
        await until(lambda: all(list(node.image.topics) == list(topics) for node in self.nodes.values()))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"topic-{number}", number.to_bytes(16, "big"))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.network.cut.clear()
    for number in list(cluster.nodes):
        await cluster.stop(number)


async def test_three_static_voters_elect_a_leader_and_replay_the_same_records(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1), topic(2))
    await cluster.append(topic(3))
    await cluster.all_have("topic-1", "topic-2", "topic-3")
    leader = await cluster.leader()
    assert all(node.leader_id == leader.node_id for node in cluster.nodes.values())


async def test_another_node_takes_over_when_the_leader_is_cut_off_and_the_old_one_rejoins(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1))
    old = await cluster.leader()
    cluster.network.cut.add(9000 + old.node_id)
    lost = old.propose([topic(66)])
    await until(lambda: any(node.is_leader for node in cluster.nodes.values() if node is not old))
    with pytest.raises(BrokerError) as refusal:
        await lost
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    assert not old.is_leader
    await cluster.append(topic(2))
    cluster.network.cut.clear()
    await cluster.all_have("topic-1", "topic-2")


async def test_a_node_that_was_away_for_long_gets_a_snapshot(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3), snapshot_bytes=500)
    await cluster.append(topic(1))
    await cluster.all_have("topic-1")
    absent = next(number for number, node in cluster.nodes.items() if not node.is_leader)
    await cluster.stop(absent)
    for number in range(2, 60):
        await cluster.append(topic(number))
    leader = await cluster.leader()
    await until(lambda: leader.log.start_offset > 20)
    cluster.start(absent, voters=(1, 2, 3), snapshot_bytes=500)
    await cluster.all_have(*(f"topic-{number}" for number in range(1, 60)))
    assert cluster.nodes[absent].log.start_offset > 20


async def test_a_node_that_gets_a_snapshot_while_it_runs_forgets_the_acls_that_are_gone(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3), snapshot_bytes=500)
    gone, kept = (acl(name, name.encode() * 16) for name in ("a", "b"))
    await cluster.append(topic(1), gone, kept)
    await cluster.all_have("topic-1")
    follower = next(node for node in cluster.nodes.values() if not node.is_leader)
    await follower.caught_up.wait()
    authorizer = Authorizer()
    authorizer.load(follower.image.carried.values())
    follower.subscribe(lambda _, records: authorizer.apply(records))
    assert may_read(authorizer, "a")
    cluster.network.cut.add(9000 + follower.node_id)
    await until(lambda: any(node.is_leader for node in cluster.nodes.values() if node is not follower))
    leader = next(node for node in cluster.nodes.values() if node.is_leader and node is not follower)
    await leader.append([RemoveAccessControlEntryRecord(id=gone.id)])
    for number in range(2, 60):
        await leader.append([topic(number)])
    await until(lambda: leader.log.start_offset > 20)
    cluster.network.cut.clear()
    await cluster.all_have(*(f"topic-{number}" for number in range(1, 60)))
    assert follower.log.start_offset > 20
    assert (may_read(authorizer, "a"), may_read(authorizer, "b")) == (False, True)


def acl(name: str, acl_id: bytes) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(acl_id, 2, name, 3, "User:alice", "*", Operation.READ, 3)


def may_read(authorizer: Authorizer, name: str) -> bool:
    return authorizer.allows(Principal("User", "alice"), "::1", Operation.READ, ResourceType.TOPIC, name)


def quota(**change: bool) -> ClientQuotaRecord:
    return ClientQuotaRecord(entity=[EntityData("user", "alice")], key="producer_byte_rate", value=7, **change)


async def test_a_node_that_gets_a_snapshot_while_it_runs_forgets_the_quotas_that_were_removed(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3), snapshot_bytes=500)
    await cluster.append(quota(), topic(1))
    await cluster.all_have("topic-1")
    absent = next(number for number, node in cluster.nodes.items() if not node.is_leader)
    follower, quotas = cluster.nodes[absent], ClientQuotas(ManualClock())
    quotas.follow(follower.image.carried)
    follower.subscribe(lambda image, records: quotas.follow(image.carried, records))
    assert quotas.is_active
    cluster.network.cut.add(9000 + absent)
    await cluster.append(quota(remove=True))
    for number in range(2, 60):
        await cluster.append(topic(number))
    leader = await cluster.leader()
    await until(lambda: leader.log.start_offset > 20)
    cluster.network.cut.clear()
    await cluster.all_have(*(f"topic-{number}" for number in range(1, 60)))
    assert follower.log.start_offset > 20
    assert not quotas.is_active


async def test_one_node_grows_to_three_voters_and_survives_the_loss_of_any(cluster: Cluster) -> None:
    cluster.start(1)
    await cluster.append(topic(1))
    for number in (2, 3):
        cluster.start(number, bootstrap=1)
        await cluster.all_have("topic-1")
        await cluster.add_voter(number)
    assert {voter.key.id for voter in cluster.nodes[1].voters} == {1, 2, 3}
    await cluster.stop(1)
    await cluster.append(topic(2))
    cluster.start(1)
    await cluster.all_have("topic-1", "topic-2")


async def test_nodes_know_when_most_voters_have_ended_and_when_they_are_back(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    cluster.start(4, voters=(1, 2, 3))
    await cluster.append(topic(1))
    await cluster.all_have("topic-1")
    observer, voter = cluster.nodes[4], cluster.nodes[3]
    await cluster.stop(1)
    await cluster.append(topic(2))
    assert not voter.has_lost_majority
    await cluster.stop(2)
    await until(lambda: voter.has_lost_majority and observer.has_lost_majority)
    cluster.start(2, voters=(1, 2, 3))
    await until(lambda: not voter.has_lost_majority and not observer.has_lost_majority)
    await cluster.append(topic(3))


async def test_a_voter_that_is_cut_off_does_not_believe_that_the_others_have_ended(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1))
    old = await cluster.leader()
    cluster.network.cut.add(9000 + old.node_id)
    await until(lambda: not old.is_leader)
    assert not old.has_lost_majority


async def test_a_leader_knows_how_long_ago_it_heard_from_the_one_before(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1))
    await cluster.all_have("topic-1")
    old = await cluster.leader()
    await cluster.stop(old.node_id)
    leader = await cluster.leader()
    assert leader.predecessor is not None
    predecessor, seconds = leader.predecessor
    assert predecessor == old.node_id
    assert seconds > 0


async def test_a_node_of_another_cluster_is_refused(cluster: Cluster) -> None:
    cluster.start(1)
    quorum = cluster.nodes[1]
    with pytest.raises(BrokerError, match="cluster c, not to other") as refusal:
        await quorum.on_request(VoteRequest(cluster_id="other"), "CONTROLLER")
    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


async def test_followers_refuse_changes(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    leader = await cluster.leader()
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    with pytest.raises(BrokerError) as refusal:
        follower.propose([topic(1)])
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER


async def test_the_progress_of_the_others_can_be_asked_for_from_another_thread(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1))
    leader = await cluster.leader()
    await until(lambda: len(leader.replicas()) == 3)
    found = await asyncio.to_thread(leader.replicas)
    assert sorted(replica.key.id for replica in found) == [1, 2, 3]


async def test_a_node_that_cannot_write_the_start_of_its_epoch_fails_instead_of_leading(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        cluster.start(number, voters=(1, 2, 3))
    await cluster.append(topic(1))
    await cluster.all_have("topic-1")
    first = await cluster.leader()

    def full(_descriptor: int, _data: object, _position: int) -> int:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        cluster.network.cut.add(9000 + first.node_id)
        others = [node for node in cluster.nodes.values() if node is not first]
        await until(lambda: any(node.failed is not None and node.failed.done() for node in others))
    broken = next(node for node in others if node.failed is not None and node.failed.done())
    assert not broken.is_leader
    with pytest.raises(BrokerError, match="no space left"):
        await broken.watch()
