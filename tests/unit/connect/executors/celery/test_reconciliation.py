"""Which wake-ups a round of the reconciler sends."""

import pytest

from connect.executors.celery.desired_tasks import Seen, Survey
from connect.executors.celery.reconciliation import ROUND_S, Sent, due
from connect.runtime.models import Target, TaskId, TaskPlan

TASK = TaskId("c", 0)
PLAN = TaskPlan(id=TASK, connector_config={}, task_config={}, target=Target.STARTED, generation=3)
FREE = Seen(id=TASK, epoch=7, wanted=3, target=Target.STARTED)
HELD = Seen(id=TASK, epoch=7, wanted=3, target=Target.STARTED, held_s=0.4)
NOW = 100.0


def _survey(seen: Seen, *, cooling_s: float = 0.0, waiting: int = 0) -> Survey:
    return Survey(tasks=[seen], cooling_s=cooling_s, leader=1, waiting=waiting)


@pytest.mark.parametrize(
    ("seen", "sent", "waiting", "is_woken"),
    [
        pytest.param(FREE, None, 0, True, id="nobody owns it and no message was sent"),
        pytest.param(FREE, None, 50, True, id="the first message is sent however many wait"),
        pytest.param(HELD, None, 0, False, id="somebody owns it"),
        pytest.param(FREE, Sent(7, 3, NOW - 0.5), 0, False, id="a message is on its way"),
        pytest.param(FREE, Sent(7, 3, NOW - 5), 0, True, id="a message was taken and led to nothing"),
        pytest.param(FREE, Sent(7, 3, NOW - 5), 1, False, id="messages wait for a worker"),
        pytest.param(FREE, Sent(6, 3, NOW - 0.5), 9, True, id="its owner has given it back or died"),
        pytest.param(FREE, Sent(7, 2, NOW - 0.5), 9, True, id="the message was about the former plan"),
        pytest.param(
            Seen(id=TASK, epoch=7, wanted=3, target=Target.STARTED, ended=3), None, 0, False, id="it ended by itself"
        ),
        pytest.param(
            Seen(id=TASK, epoch=7, wanted=3, target=Target.STARTED, ended=2), None, 0, True, id="a former plan ended"
        ),
    ],
)
def test_wake_ups(seen: Seen, sent: Sent | None, waiting: int, is_woken: bool) -> None:
    last = {} if sent is None else {TASK: sent}
    found = due(_survey(seen, waiting=waiting), {TASK: PLAN}, last, now=NOW)
    assert found.wakes == ([seen] if is_woken else [])


def test_nobody_is_woken_up_while_nothing_is_given_away() -> None:
    found = due(_survey(FREE, cooling_s=0.3), {TASK: PLAN}, {}, now=NOW)
    assert found.wakes == []
    assert found.next_s == 0.3


def test_the_next_round_comes_when_the_first_lease_would_end() -> None:
    assert due(_survey(HELD), {TASK: PLAN}, {}, now=NOW).next_s == 0.4
    assert due(_survey(FREE), {TASK: PLAN}, {}, now=NOW).next_s == ROUND_S


@pytest.mark.parametrize(
    ("seen", "is_written"),
    [
        (FREE, False),
        (Seen(id=TASK), True),
        (Seen(id=TASK, wanted=2, target=Target.STARTED), True),
        (Seen(id=TASK, wanted=3, target=Target.PAUSED), True),
    ],
)
def test_a_plan_that_redis_does_not_know_is_written(seen: Seen, is_written: bool) -> None:
    found = due(_survey(seen), {TASK: PLAN}, {}, now=NOW)
    assert found.writes == ([PLAN] if is_written else [])
