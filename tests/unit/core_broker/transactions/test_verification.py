import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.coordinators import TRANSACTIONS_TOPIC
from core_broker.errors import ErrorCode
from core_broker.protocol.stored import metadata as stored
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer
from tests.support.coordinator_cluster import CoordinatorCluster, coordinator_cluster

TX = "tx"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[CoordinatorCluster]:
    """Broker 1 coordinates, broker 2 leads the partitions."""
    async with coordinator_cluster(tmp_path, 1, 2) as cluster:
        cluster.create(TRANSACTIONS_TOPIC, 1)
        cluster.create("orders", 2, 2)
        yield cluster


async def new_producer(cluster: CoordinatorCluster, transactional_id: str = TX) -> Producer:
    return await cluster[1].transactions.init_producer_id(transactional_id, 60_000)


async def test_kafka_14402_only_a_partition_that_was_added_is_verified(cluster: CoordinatorCluster) -> None:
    producer = await new_producer(cluster)
    await cluster[1].transactions.add_partitions(TX, producer, [("orders", 0)], client_version=TRANSACTION_V0)
    verify = cluster[2].verifier.verify_or_add
    assert await verify(TX, *producer, "orders", 0, add=False) is ErrorCode.NONE
    assert await verify(TX, *producer, "orders", 1, add=False) is ErrorCode.INVALID_TXN_STATE
    code = await verify(TX, *producer, "orders", 1, add=False, knows_abortable=True)
    assert code is ErrorCode.TRANSACTION_ABORTABLE
    assert set(cluster.requests) == {(2, 1, "txn-verify")}


async def test_partition_is_added_for_a_producer_of_the_newer_protocol(cluster: CoordinatorCluster) -> None:
    producer = await new_producer(cluster)
    assert await cluster[2].verifier.verify_or_add(TX, *producer, "orders", 0, add=True) is ErrorCode.NONE
    current = cluster[1].transactions.describe(TX)
    assert current.partitions == {("orders", 0)}
    assert current.client_version == TRANSACTION_V2


async def test_fenced_producer_gets_an_error_that_all_clients_know(cluster: CoordinatorCluster) -> None:
    zombie = await new_producer(cluster)
    await new_producer(cluster)
    for add in (True, False):
        code = await cluster[2].verifier.verify_or_add(TX, *zombie, "orders", 0, add=add)
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_coordinator_that_cannot_be_reached_is_a_network_error(cluster: CoordinatorCluster) -> None:
    producer = await new_producer(cluster)
    cluster.cut_off.add(1)
    code = await cluster[2].verifier.verify_or_add(TX, *producer, "orders", 0, add=True)
    assert code is ErrorCode.NETWORK_EXCEPTION


async def test_transaction_without_a_live_coordinator_is_not_available(cluster: CoordinatorCluster) -> None:
    cluster.commit(stored.FenceBrokerRecord(id=1, epoch=1))
    code = await cluster[2].verifier.verify_or_add(TX, 1, 0, "orders", 0, add=True)
    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_broker_that_no_longer_coordinates_says_so(cluster: CoordinatorCluster) -> None:
    producer = await new_producer(cluster)
    cluster.cut_off.add(2)
    cluster.commit(
        stored.PartitionChangeRecord(partition_id=0, topic_id=TRANSACTIONS_TOPIC.encode()[:16], leader=2, isr=[2])
    )
    cluster.cut_off.clear()
    code = await cluster[2].verifier.verify_or_add(TX, *producer, "orders", 0, add=True)
    assert code is ErrorCode.NOT_COORDINATOR


async def test_coordinator_on_the_same_broker_is_asked_without_a_request(cluster: CoordinatorCluster) -> None:
    producer = await new_producer(cluster)
    assert await cluster[1].verifier.verify_or_add(TX, *producer, "orders", 0, add=True) is ErrorCode.NONE
    assert cluster.requests == []


async def test_questions_of_many_transactions_share_requests(cluster: CoordinatorCluster) -> None:
    producers = {f"tx-{number}": await new_producer(cluster, f"tx-{number}") for number in range(20)}
    codes = await asyncio.gather(
        *(
            cluster[2].verifier.verify_or_add(transactional_id, *producer, "orders", 0, add=True)
            for transactional_id, producer in producers.items()
        )
    )
    assert set(codes) == {ErrorCode.NONE}
    assert len(cluster.requests) <= 2


async def test_two_epochs_of_a_producer_get_their_own_answers(cluster: CoordinatorCluster) -> None:
    zombie = await new_producer(cluster)
    producer = await new_producer(cluster)
    verify = cluster[2].verifier.verify_or_add
    codes = await asyncio.gather(
        *(verify(TX, *each, "orders", 0, add=True) for each in (producer, zombie, producer, zombie))
    )
    assert codes[1] is codes[3] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert codes[0] is ErrorCode.NONE
