from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.metadata import BrokerImage
from core_broker.cluster.replica_placement import place
from core_broker.errors import BrokerError, ErrorCode


def brokers(*racks: str | None) -> list[BrokerImage]:
    return [BrokerImage(number, 0, b"", (), rack, False) for number, rack in enumerate(racks, start=1)]


@given(st.integers(1, 7), st.data())
def test_leaders_are_spread_evenly_and_no_broker_holds_a_partition_twice(count: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, count))
    partitions = data.draw(st.integers(1, 40))
    placed = place(brokers(*[None] * count), partition_count=partitions, replication_factor=factor)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(number, 0) for number in range(1, count + 1)) <= 1


def test_replicas_go_to_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    placed = place(brokers(*racks.values()), partition_count=4, replication_factor=2)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in placed)


def test_new_partitions_go_on_where_the_old_ones_ended() -> None:
    three = brokers(None, None, None)
    whole = place(three, partition_count=6, replication_factor=2)
    assert place(three, partition_count=4, replication_factor=2, first_partition=2) == whole[2:]


def test_too_few_brokers_are_told() -> None:
    with pytest.raises(BrokerError, match="only 1 broker") as refused:
        place(brokers(None), partition_count=1, replication_factor=3)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
