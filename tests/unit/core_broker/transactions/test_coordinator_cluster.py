"""Transactions over several brokers: real logs and coordinators, with leaders that change."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer, TransactionalProducer
from core_broker.groups.offsets import CommittedOffset
from core_broker.transactions.markers import MarkerRequest
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer, TransactionState
from tests.support.coordinator_cluster import ClusterBroker, CoordinatorCluster, coordinator_cluster, eventually

TX = "tx"
TIMEOUT_MS = 60_000


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[CoordinatorCluster]:
    """Broker 1 coordinates; `orders` is led by brokers 1, 2 and 3, the offsets of groups by broker 2."""
    async with coordinator_cluster(tmp_path, 1, 2, 3) as cluster:
        cluster.create(TRANSACTIONS_TOPIC, 1)
        cluster.create(OFFSETS_TOPIC, 2)
        cluster.create("orders", 1, 2, 3)
        yield cluster


async def begin(broker: ClusterBroker, *, version: int = TRANSACTION_V0) -> Producer:
    producer = await broker.transactions.init_producer_id(TX, TIMEOUT_MS)
    partitions = [("orders", index) for index in range(3)]
    await broker.transactions.add_partitions(TX, producer, partitions, client_version=version)
    return producer


def produce_everywhere(cluster: CoordinatorCluster, producer: Producer) -> None:
    for index in range(3):
        cluster.produce("orders", index, b"v", producer)


async def state(broker: ClusterBroker, wanted: TransactionState) -> None:
    """Wait until a coordinator shows a state."""

    def is_there() -> bool:
        try:
            return broker.transactions.describe(TX).state is wanted
        except BrokerError:
            return False

    await eventually(is_there)


@pytest.mark.parametrize("version", [TRANSACTION_V0, TRANSACTION_V2])
async def test_commit_reaches_the_partitions_of_every_broker(cluster: CoordinatorCluster, version: int) -> None:
    producer = await begin(cluster[1], version=version)
    produce_everywhere(cluster, producer)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=version)
    await state(cluster[1], TransactionState.COMPLETE_COMMIT)
    assert [cluster[index + 1].values("orders", index) for index in range(3)] == [[b"v"]] * 3


async def test_markers_for_one_broker_share_a_request(cluster: CoordinatorCluster) -> None:
    cluster.create("payments", *[2] * 10)
    producer = await cluster[1].transactions.init_producer_id(TX, TIMEOUT_MS)
    partitions = [("payments", index) for index in range(10)]
    await cluster[1].transactions.add_partitions(TX, producer, partitions, client_version=TRANSACTION_V0)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    await state(cluster[1], TransactionState.COMPLETE_COMMIT)
    assert len([request for request in cluster.requests if request == (1, 2, "markers")]) <= 2


async def test_offsets_of_a_transaction_are_committed_on_the_broker_of_the_group(cluster: CoordinatorCluster) -> None:
    producer = await cluster[1].transactions.init_producer_id(TX, TIMEOUT_MS)
    code = await cluster[2].verifier.verify_or_add(TX, *producer, OFFSETS_TOPIC, 0, add=True)
    assert code is ErrorCode.NONE
    commits = cluster[2].groups.offset_commits
    await commits.commit_in_transaction(
        Committer(group_id="readers"),
        [("orders", 0, CommittedOffset(5))],
        producer=TransactionalProducer(producer_id=producer.producer_id, producer_epoch=producer.epoch),
        api_version=5,
    )
    assert commits.fetch("readers").is_unstable("orders", 0)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V2)
    await state(cluster[1], TransactionState.COMPLETE_COMMIT)
    found = commits.fetch("readers").get("orders", 0)
    assert found is not None
    assert found.offset == 5


async def test_open_transaction_continues_with_the_next_coordinator(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    produce_everywhere(cluster, producer)
    cluster.elect(TRANSACTIONS_TOPIC, 3, former=1)
    await state(cluster[3], TransactionState.ONGOING)
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    await cluster[3].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    await state(cluster[3], TransactionState.COMPLETE_COMMIT)
    assert [cluster[index + 1].values("orders", index) for index in range(3)] == [[b"v"]] * 3


async def test_next_coordinator_writes_the_markers_that_are_missing(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    produce_everywhere(cluster, producer)
    cluster.cut_off.add(3)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    await eventually(lambda: cluster[2].partitions.get("orders", 1).log.end_offset == 2)
    cluster.cut_off.clear()
    cluster.elect(TRANSACTIONS_TOPIC, 2, former=1)
    await state(cluster[2], TransactionState.COMPLETE_COMMIT)
    assert [cluster[index + 1].values("orders", index) for index in range(3)] == [[b"v"]] * 3


async def test_coordinator_that_does_not_know_of_its_successor_is_fenced(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    produce_everywhere(cluster, producer)
    cluster.cut_off.add(1)
    cluster.elect("orders", 2, 0, former=1)
    cluster.elect(TRANSACTIONS_TOPIC, 2, former=1)
    await state(cluster[2], TransactionState.ONGOING)
    await cluster[2].transactions.end(TX, producer, commit=False, client_version=TRANSACTION_V0)
    await state(cluster[2], TransactionState.COMPLETE_ABORT)
    # The old coordinator decides, alone with its log, and its marker comes late.
    cluster.cut_off.clear()
    late = MarkerRequest(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        commit=True,
        coordinator_epoch=0,
        transaction_version=TRANSACTION_V0,
    )
    assert await cluster[1].markers.write("orders", 1, late) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert cluster[2].values("orders", 1) == []


async def test_fenced_coordinator_stops_sending_markers(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    cluster.cut_off.add(1)
    cluster.elect(TRANSACTIONS_TOPIC, 2, former=1)
    await state(cluster[2], TransactionState.ONGOING)
    await cluster[2].transactions.end(TX, producer, commit=False, client_version=TRANSACTION_V0)
    # Broker 1 still leads `orders-0` as far as all brokers know, so its own coordinator must not be the first to write.
    await eventually(lambda: cluster[3].partitions.get("orders", 2).log.end_offset == 1)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    cluster.cut_off.clear()
    assert await cluster[1].transactions.wait_until_idle(timeout_ms=30_000)
    assert cluster[1].transactions.describe(TX).state is TransactionState.PREPARE_COMMIT


async def test_marker_follows_a_partition_to_its_next_leader(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    produce_everywhere(cluster, producer)
    cluster.cut_off.add(3)
    await cluster[1].transactions.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
    await eventually(lambda: (1, 3, "markers") in cluster.requests)
    cluster.elect("orders", 2, 2, former=3)
    await state(cluster[1], TransactionState.COMPLETE_COMMIT)
    assert cluster[2].values("orders", 2) == [b"v"]


async def test_transaction_of_a_dead_producer_is_aborted_by_the_next_coordinator(cluster: CoordinatorCluster) -> None:
    producer = await begin(cluster[1])
    produce_everywhere(cluster, producer)
    cluster.elect(TRANSACTIONS_TOPIC, 2, former=1)
    await state(cluster[2], TransactionState.ONGOING)
    cluster.clock.advance(TIMEOUT_MS + 1)
    await cluster[2].transactions.abort_timed_out()
    await state(cluster[2], TransactionState.COMPLETE_ABORT)
    assert [cluster[index + 1].values("orders", index) for index in range(3)] == [[]] * 3
