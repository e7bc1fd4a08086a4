from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.controller.placement import place
from core_broker.cluster.metadata import BrokerImage
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


def test_too_few_brokers_are_an_error() -> None:
    with pytest.raises(BrokerError, match="only 1 broker") as refused:
        place(brokers(None), partition_count=1, replication_factor=3)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_fenced_broker_never_leads_and_follows_only_as_a_last_resort() -> None:
    three = brokers(None, None, None)
    three[1] = BrokerImage(2, 0, b"", (), None, is_fenced=True)
    placed = place(three, partition_count=12, replication_factor=2)
    assert {broker for replicas in placed for broker in replicas} == {1, 3}
    placed = place(three, partition_count=12, replication_factor=3)
    assert Counter(replicas[0] for replicas in placed) == {1: 6, 3: 6}
    assert all(set(replicas) == {1, 2, 3} for replicas in placed)


def test_another_rack_goes_before_a_running_broker_of_the_same_rack() -> None:
    racks = brokers("a", "a", "b")
    racks[2] = BrokerImage(3, 0, b"", (), "b", is_fenced=True)
    placed = place(racks, partition_count=4, replication_factor=2)
    assert all(replicas[1] == 3 for replicas in placed)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9), st.data())
def test_replicas_are_spread_over_as_many_racks_as_possible(racks: list[str], data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    for replicas in place(brokers(*racks), partition_count=20, replication_factor=factor):
        used = {racks[broker - 1] for broker in replicas}
        assert len(used) == min(factor, len(set(racks)))


def test_nothing_can_be_placed_while_all_brokers_are_fenced() -> None:
    with pytest.raises(BrokerError, match="fenced"):
        place([BrokerImage(1, 0, b"", (), None, is_fenced=True)], partition_count=1, replication_factor=1)
