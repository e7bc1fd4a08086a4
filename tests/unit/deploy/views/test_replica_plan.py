import json
from collections import Counter

import pytest

from core_broker.client.models import Broker, Partition, Topic
from deploy.views.replica_plan import (
    Move,
    Plan,
    PlanFileError,
    bytes_copied,
    moves_of,
    plan_balance,
    plan_document,
    plan_drain,
    plan_growth,
    read_plan,
)


def topic(name: str, *replicas: tuple[int, ...], leaderless: tuple[int, ...] = ()) -> Topic:
    partitions = tuple(
        Partition(index=index, leader=-1 if index in leaderless else brokers[0], replicas=brokers, in_sync=brokers)
        for index, brokers in enumerate(replicas)
    )
    return Topic(name=name, topic_id="", is_internal=False, partitions=partitions)


def brokers(*ids: int, racks: str = "", fenced: tuple[int, ...] = ()) -> list[Broker]:
    names = dict(zip(ids, racks, strict=False))
    return [Broker(id=id_, host="h", port=1, rack=names.get(id_), is_fenced=id_ in fenced) for id_ in ids]


def after(plan: Plan) -> list[tuple[int, ...]]:
    return [move.after for move in plan.moves]


def test_drained_replicas_go_to_the_brokers_with_the_fewest_and_keep_their_position() -> None:
    orders = topic("orders", (3, 1), (1, 3), (1, 2), (3, 4))
    plan = plan_drain([orders], brokers(1, 2, 3, 4), 3)
    assert after(plan) == [(2, 1), (1, 4), (2, 4)]
    assert [move.partition for move in plan.moves] == [0, 1, 3]


def test_a_replica_goes_to_a_rack_that_has_none_although_another_broker_is_emptier() -> None:
    plan = plan_drain([topic("orders", (1, 4), (3, 4))], brokers(1, 2, 3, 4, racks="aabc"), 4)
    assert after(plan) == [(1, 3), (3, 2)]


def test_a_rack_is_shared_rather_than_a_replica_left_behind() -> None:
    assert after(plan_drain([topic("orders", (1, 3))], brokers(1, 2, 3, racks="aab"), 3)) == [(1, 2)]


def test_fenced_brokers_get_nothing() -> None:
    plan = plan_drain([topic("orders", (1,))], brokers(1, 2, 3, fenced=(2,)), 1)
    assert after(plan) == [(3,)]


def test_partitions_that_cannot_be_drained_are_named_by_the_reason() -> None:
    topics = [topic("full", (1, 2, 3)), topic("dead", (3,), leaderless=(0,))]
    plan = plan_drain(topics, brokers(1, 2, 3), 3)
    assert (plan.moves, plan.crowded, plan.offline) == ([], [("full", 0)], [("dead", 0)])


def test_a_replica_is_dropped_only_if_that_is_allowed_and_another_is_left() -> None:
    topics = [topic("full", (3, 1)), topic("single", (3,))]
    plan = plan_drain(topics, brokers(1, 3), 3, allow_fewer=True)
    assert after(plan) == [(1,), (1,)]
    alone = plan_drain([topic("single", (3,))], brokers(3), 3, allow_fewer=True)
    assert alone.crowded == [("single", 0)]


def test_growth_adds_replicas_on_brokers_of_other_racks_and_keeps_the_leaders() -> None:
    offsets = topic("__consumer_offsets", *((1,) for _ in range(6)))
    plan = plan_growth([offsets], brokers(1, 2, 3, 4, racks="aabc"), 3)
    assert {replicas[0] for replicas in after(plan)} == {1}
    assert all(set(replicas) == {1, 3, 4} for replicas in after(plan))
    assert plan_growth([topic("done", (1, 2, 3))], brokers(1, 2, 3), 3).moves == []


def test_growth_beyond_the_live_brokers_adds_what_is_possible_and_names_the_rest() -> None:
    plan = plan_growth([topic("orders", (1,))], brokers(1, 2, 3, fenced=(3,)), 3)
    assert (after(plan), plan.crowded) == ([(1, 2)], [("orders", 0)])


def test_a_new_broker_gets_its_share_of_replicas_and_leaders() -> None:
    orders = topic("orders", *[(1, 2), (2, 1)] * 6)
    plan = plan_balance([orders], brokers(1, 2, 3))
    result = {move.partition: move.after for move in plan.moves}
    replicas = [result.get(index, item.replicas) for index, item in enumerate(orders.partitions)]
    assert set(Counter(broker_id for item in replicas for broker_id in item).values()) == {8}
    assert set(Counter(item[0] for item in replicas).values()) == {4}
    assert sum(3 in item for item in replicas) == 8


def test_an_even_cluster_is_left_alone() -> None:
    assert plan_balance([topic("orders", (1, 2), (2, 3), (3, 1))], brokers(1, 2, 3)).moves == []


def test_balancing_onto_some_brokers_empties_the_others_and_keeps_racks_apart() -> None:
    orders = topic("orders", (1, 2), (2, 3), (3, 4), (4, 1))
    plan = plan_balance([orders], brokers(1, 2, 3, 4, racks="aabb"), onto=(1, 3, 4))
    result = {move.partition: move.after for move in plan.moves}
    replicas = [result.get(index, item.replicas) for index, item in enumerate(orders.partitions)]
    assert not any(2 in item for item in replicas)
    assert all(1 in item for item in (replicas[0], replicas[1], replicas[3])), replicas


def test_a_plan_is_read_as_it_is_written_and_in_the_words_of_kafkas_tool() -> None:
    assignment = {("orders", 0): (1, 2), ("orders", 1): (2,)}
    assert read_plan(json.dumps(plan_document(assignment))) == assignment
    kafkas = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    assert read_plan(kafkas) == {("t", 0): (2, 1)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"partitions": [{"topic": "t"}]}', "KeyError: 'partition'"),
        ('{"version": 2, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}', "its version is 2"),
        ('{"partitions": []}', "no partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "replicas of t-0"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "replicas of t-0"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/a"]}]}', "log_dirs"),
        ('{"partitions": [' + ",".join(['{"topic": "t", "partition": 0, "replicas": [1]}'] * 2) + "]}", "twice"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(PlanFileError, match=reason):
        read_plan(text)


def test_only_what_changes_is_a_move_and_unknown_partitions_are_named() -> None:
    moves, unknown = moves_of({("a", 0): (1,), ("a", 1): (2,), ("b", 0): (1,)}, [topic("a", (1,), (1,))])
    assert [(move.partition, move.after) for move in moves] == [(1, (2,))]
    assert unknown == [("b", 0)]


def test_progress_counts_the_bytes_of_new_replicas_only() -> None:
    moves = [Move("t", 0, (1, 2), (2, 3, 4)), Move("t", 1, (1,), (2,)), Move("t", 2, (1, 2), (2, 1))]
    sizes = {
        1: {("t", 0): 100, ("t", 2): 7},
        2: {("t", 0): 90, ("t", 1): 50, ("t", 2): 7},  # partition 1 has arrived: the replica it came from is gone
        3: {("t", 0): 30},
    }
    assert bytes_copied(moves, sizes) == (30 + 50, 2 * 100 + 50)
