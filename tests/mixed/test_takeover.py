"""A coordinator and leader of one kind is killed; the only other replica, which takes over, is of the other kind."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Final

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from core_broker.errors import ErrorCode
from core_broker.protocol.messages import list_offsets
from core_broker.protocol.messages import offset_for_leader_epoch as leader_epochs
from tests.support.admin import eventually
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.mixed_cluster import MixedCluster, needs_kafka
from tests.support.transactor import Transactor
from tests.support.wire import WireConnection
from tests.support.wire_member import WireMember

pytestmark = needs_kafka

KILLED: Final = ("voter", "guest")
"""Who coordinates the partition with this number."""

DATA: Final = "data"
TRANSACTIONS: Final = ("open", "offsets", "old", "ended")
"""States of a transaction when its coordinator is killed. Each has a topic, whose readers the others do not hold up."""
REPLICAS: Final[Mapping[str, list[list[int]]]] = {
    OFFSETS_TOPIC: [[1, 4], [4, 1]],
    TRANSACTIONS_TOPIC: [[1, 4], [4, 1]],
    **{name: [[2, 5, 3]] for name in (DATA, *TRANSACTIONS)},
    "moved-0": [[1, 4]],
    "moved-1": [[4, 1]],
}
"""Of 1 and 4 one leads and one follows, and they are of different kinds."""
RECORDS: Final = 20
DELETED: Final = 7


def name_of(kind: str, partition: int) -> str:
    """A group or transactional id that belongs to a partition of the internal topics."""
    return next(
        name for name in (f"{kind}-{number}" for number in count()) if partition_for(name, len(KILLED)) == partition
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """What was there before the kill, and a connection to the broker that took over."""

    mixed: MixedCluster
    successor: WireConnection
    classic: WireMember
    consumer: WireMember
    transactions: Mapping[str, Transactor]
    moved: str
    offsets: list[tuple[int, ...]]
    """What the former leader of the topic `moved` said about its offsets and leader epochs."""

    def committed(self, kind: str) -> list[bytes]:
        """What readers of committed records see of a transactional id."""
        values = [record.value or b"" for record in read_to_end(self.mixed.bootstrap, kind, isolation="read_committed")]
        return [value for value in values if value.startswith(self.transactions[kind].name.encode())]


@pytest.fixture(scope="module", params=["caudal", "kafka"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    """Five brokers with the topics; members may be silent for as long as a takeover lasts."""
    settings = {
        "min.insync.replicas": "1",
        "transaction.state.log.min.isr": "1",
        "offsets.topic.num.partitions": str(len(KILLED)),
        "transaction.state.log.num.partitions": str(len(KILLED)),
        "group.consumer.session.timeout.ms": "60000",
    }
    directory = tmp_path_factory.mktemp("takeover")
    with MixedCluster(directory, quorum=request.param, settings=settings).running() as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        compacted, kept = {"cleanup.policy": "compact"}, {"retention.ms": "-1"}
        topics = [
            NewTopic(name, len(on), replica_assignment=on, config=compacted if name.startswith("_") else kept)
            for name, on in REPLICAS.items()
        ]
        for created in admin.create_topics(topics).values():
            created.result(TIMEOUT_S)
        yield cluster


@pytest.fixture(scope="module", params=KILLED)
def takeover(cluster: MixedCluster, request: pytest.FixtureRequest) -> Iterator[Takeover]:
    """Groups and transactions of a coordinator that is killed; the other kind takes over."""
    partition = KILLED.index(request.param)
    former, successor = (cluster.nodes[number] for number in REPLICAS[OFFSETS_TOPIC][partition])
    moved = f"moved-{partition}"
    with ExitStack() as stack:
        wait_for_preferred_leaders(cluster)
        connection = stack.enter_context(WireConnection(former.address))
        classic, consumer = (WireMember(name_of(kind, partition), DATA) for kind in ("classic", "consumer"))
        classic.join_classic(connection)
        assert classic.commit(connection, 7) == 0
        answer = eventually(lambda: consumer.beat_new(connection, joins=True), lambda answer: answer.error_code == 0)
        consumer.epoch = answer.member_epoch
        assert consumer.commit(connection, 8) == 0
        offsets = describe_moved(cluster, connection, moved)
        surviving = ",".join(node.address for node in cluster.nodes.values() if node is not former)
        transactions = {
            kind: stack.enter_context(Transactor(surviving, name_of(kind, partition), topic=kind))
            for kind in TRANSACTIONS
        }
        begin_transactions(transactions)
        former.kill()
        for transactor in transactions.values():
            transactor.use_coordinators(successor.address, successor.address)
        new = stack.enter_context(WireConnection(successor.address))
        eventually(lambda: classic.committed(new), lambda offset: offset >= 0)
        yield Takeover(
            mixed=cluster,
            successor=new,
            classic=classic,
            consumer=consumer,
            transactions=transactions,
            moved=moved,
            offsets=offsets,
        )
        former.start()


def wait_for_preferred_leaders(cluster: MixedCluster) -> None:
    """Return once all replicas are in sync and the first of each partition leads it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partitions = [TopicPartition(name, index) for name, on in REPLICAS.items() for index in range(len(on))]

    def is_led() -> bool:
        try:
            admin.elect_leaders(ElectionType.PREFERRED, partitions).result(TIMEOUT_S)
            topics = admin.list_topics(timeout=TIMEOUT_S).topics
        except KafkaException:  # a broker that is not there yet, or no controller
            return False
        found = [
            (topics[name].partitions[index], on) for name, all_on in REPLICAS.items() for index, on in enumerate(all_on)
        ]
        return all(partition.leader == on[0] and set(partition.isrs) == set(on) for partition, on in found)

    eventually(is_led, pause_s=0.5)


def begin_transactions(transactions: Mapping[str, Transactor]) -> None:
    """Transactions in every state in which a coordinator may be killed; the last one has just been ended."""
    for transactor in transactions.values():
        transactor.init()
    for kind in ("open", "offsets"):
        transactions[kind].produce_soon(transactions[kind].name.encode() + b" before")
    assert transactions["offsets"].commit_offset(42) == 0
    old, ended = transactions["old"], transactions["ended"]
    eventually(old.add_partition, lambda code: code == 0)
    assert old.produce(old.name.encode() + b" before", version=9) == 0
    ended.produce_soon(ended.name.encode() + b" before")
    ended.end_and_go_on(commit=True)


def describe_moved(cluster: MixedCluster, leader: WireConnection, topic: str) -> list[tuple[int, ...]]:
    """Write records and delete the first of them; what the leader then says about offsets and leader epochs."""
    if not read_to_end(cluster.bootstrap, topic):
        records = [Sent(value=b"%d" % number, timestamp_ms=1000 * number + 1, partition=0) for number in range(RECORDS)]
        ConfluentClient().produce(cluster.bootstrap, topic, records)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for deleted in admin.delete_records([TopicPartition(topic, 0, DELETED)]).values():
            deleted.result(TIMEOUT_S)
    return ask_offsets(leader, topic)


def ask_offsets(leader: WireConnection, topic: str) -> list[tuple[int, ...]]:
    """The offset after the last record, those of the first, the latest and some by time; where leader epochs end."""
    found: list[tuple[int, ...]] = []
    for timestamp in (-1, -2, -3, 0, 1000 * (DELETED + 3), 1000 * RECORDS):
        partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        asked = list_offsets.ListOffsetsTopic(name=topic, partitions=[partition])
        listing = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[asked])
        answer = leader.request(listing, 7, list_offsets.ListOffsetsResponse).topics[0].partitions[0]
        epoch = answer.leader_epoch if timestamp != -1 else -1  # the end belongs to the leader's own epoch
        found.append((timestamp, answer.error_code, answer.timestamp, answer.offset, epoch))
    for epoch in range(max(row[4] for row in found) + 1):
        wanted = leader_epochs.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        topics = [leader_epochs.OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
        request = leader_epochs.OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
        ends = leader.request(request, 4, leader_epochs.OffsetForLeaderEpochResponse).topics[0].partitions[0]
        found.append((epoch, ends.error_code, ends.leader_epoch, ends.end_offset))
    return found


def test_members_of_a_classic_group_keep_their_generation(takeover: Takeover) -> None:
    member, connection = takeover.classic, takeover.successor
    assert member.committed(connection) == 7
    assert member.beat_classic(connection) == 0
    assert member.assignment_classic(connection) == member.assignment
    assert member.commit(connection, 70) == 0
    assert member.committed(connection) == 70


def test_members_of_a_consumer_group_stay_in_it(takeover: Takeover) -> None:
    member, connection = takeover.consumer, takeover.successor
    assert member.committed(connection) == 8
    answer = member.beat_new(connection)
    assert answer.error_code == 0
    assert answer.member_epoch == member.epoch, "the kinds must compute the same hash of the subscribed topics"
    assert answer.assignment is not None
    assert [topic.partitions for topic in answer.assignment.topic_partitions] == [[0]]
    assert member.commit(connection, 80) == 0
    assert member.committed(connection) == 80


def test_an_open_transaction_goes_on(takeover: Takeover) -> None:
    transactor = takeover.transactions["open"]
    before = transactor.epoch
    transactor.produce_soon(transactor.name.encode() + b" after")
    transactor.end_and_go_on(commit=True)
    assert transactor.epoch == before + 1
    wanted = [transactor.name.encode() + b" before", transactor.name.encode() + b" after"]
    eventually(lambda: takeover.committed("open"), lambda values: values == wanted)


def test_offsets_of_an_open_transaction_stay_pending(takeover: Takeover) -> None:
    transactor = takeover.transactions["offsets"]
    assert transactor.fetch_offset() == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    transactor.end_and_go_on(commit=True)
    eventually(transactor.fetch_offset, lambda found: found == (0, 42))


def test_a_transaction_that_was_ended_is_completed(takeover: Takeover) -> None:
    transactor = takeover.transactions["ended"]
    name = transactor.name.encode()
    eventually(lambda: takeover.committed("ended"), lambda values: values == [name + b" before"])
    transactor.produce_soon(name + b" next")
    transactor.end_and_go_on(commit=False)
    transactor.produce_soon(name + b" last")
    transactor.end_and_go_on(commit=True)
    eventually(lambda: takeover.committed("ended"), lambda values: values == [name + b" before", name + b" last"])


def test_an_open_transaction_of_an_older_client_goes_on(takeover: Takeover) -> None:
    transactor = takeover.transactions["old"]
    name = transactor.name.encode()
    assert transactor.end(commit=True, version=1).error_code == 0
    eventually(lambda: takeover.committed("old"), lambda values: values == [name + b" before"])
    eventually(transactor.add_partition, lambda code: code == 0)
    assert transactor.produce(name + b" next", version=9) == 0
    assert transactor.end(commit=False, version=1).error_code == 0
    assert takeover.committed("old") == [name + b" before"]


def test_offsets_and_leader_epochs_are_the_same(takeover: Takeover) -> None:
    leader, topic = takeover.successor, takeover.moved
    assert eventually(lambda: ask_offsets(leader, topic), lambda found: found[0][1] == 0) == takeover.offsets
    assert [record.value for record in read_to_end(takeover.mixed.bootstrap, topic)] == [
        b"%d" % number for number in range(DELETED, RECORDS)
    ]
