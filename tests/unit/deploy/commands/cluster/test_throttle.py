from deploy.commands.cluster.throttle import FOLLOWERS, LEADERS, throttled_replicas
from deploy.views.replica_plan import Move


def test_topics_list_the_replicas_that_are_copied_from_and_the_new_ones() -> None:
    moves = [Move("a", 0, (1, 2), (2, 3)), Move("a", 1, (3,), (1, 2, 3)), Move("b", 7, (1,), (2,))]
    assert throttled_replicas(moves) == {
        "a": {LEADERS: "0:1,0:2,1:3", FOLLOWERS: "0:3,1:1,1:2"},
        "b": {LEADERS: "7:1", FOLLOWERS: "7:2"},
    }


def test_a_move_that_copies_nothing_is_not_limited() -> None:
    assert throttled_replicas([Move("a", 0, (1, 2, 3), (3, 1))]) == {}
