"""When a task that failed is started again."""

from connect.runtime.leading.restarts import LOST, RestartPolicy, Restarts

_POLICY = RestartPolicy(maximum=3, delay_seconds=1, delay_max_seconds=3, reset_seconds=100)


def test_each_wait_is_twice_as_long_up_to_the_longest_and_then_it_is_enough() -> None:
    restarts = Restarts()
    restarts.started(0)
    assert [restarts.delay(_POLICY, now) for now in (1, 2, 3, 4)] == [1, 2, 3, None]


def test_a_task_that_ran_long_has_all_its_restarts_again() -> None:
    restarts = Restarts()
    restarts.started(0)
    assert [restarts.delay(_POLICY, now) for now in (1, 2, 3, 4)][-1] is None
    restarts.started(10)
    assert restarts.delay(_POLICY, 109) is None
    assert restarts.delay(_POLICY, 110) == 1


def test_there_may_be_no_restarts_at_all() -> None:
    policy = RestartPolicy(maximum=0, delay_seconds=1, delay_max_seconds=1, reset_seconds=1)
    assert Restarts().delay(policy, 1000) is None


def test_there_may_be_restarts_without_end() -> None:
    restarts = Restarts(first_at_once=True)
    restarts.started(0)
    delays = [restarts.delay(LOST, 0) for _ in range(2_000)]
    assert delays[:4] == [0, 0.5, 1, 2]
    assert delays[-1] == LOST.delay_max_seconds
