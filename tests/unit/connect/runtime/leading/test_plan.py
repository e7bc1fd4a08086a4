"""What the leader does next, by values."""

from dataclasses import replace
from typing import Any

import pytest

from connect.api.backoff import Backoff
from connect.runtime.leading import plan as planning
from connect.runtime.leading.plan import (
    Action,
    AskForTasks,
    Busy,
    CleanUp,
    ConnectorFailure,
    FenceTasks,
    Forget,
    GiveUpCall,
    Observed,
    ReadConfig,
    ReportConnector,
    ReportTask,
    RestartLater,
    RestartPolicy,
    Rules,
    SetTarget,
    StartConnector,
    StartTask,
    StopConnector,
    StopTasks,
    TaskRun,
    Traits,
    WriteTasks,
    plan,
)
from connect.runtime.models import FENCED, State, Target, TaskId, TaskPlan
from connect.stores.configs import DesiredConnector
from connect.stores.statuses import Status

NOW = 1000.0
RULES = Rules(worker_id="w:1", call_seconds=90.0, stop_seconds=6.0)
LASTING = replace(RULES, tasks_outlive_leader=True)
CONFIG = {"name": "c", "tables": "a b"}
TASKS = ({"table": "a"}, {"table": "b"})
TRAITS = Traits(restarts=RestartPolicy(limit=2, backoff=Backoff(1.0, 10.0), reset_seconds=100.0))
RUNNING = Status(state=State.RUNNING, worker_id="w:1")


def _desired(**changes: Any) -> DesiredConnector:
    desired = DesiredConnector(
        name="c",
        config=CONFIG,
        config_offset=5,
        target=Target.STARTED,
        tasks=TASKS,
        is_planned=True,
        decided_at=8,
        fenced_tasks=None,
    )
    return replace(desired, **changes)


def _task(number: int, *, generation: int = 12, **changes: Any) -> TaskPlan:
    fields: dict[str, Any] = {
        "id": TaskId("c", number),
        "connector_config": CONFIG,
        "task_config": TASKS[number],
        "target": Target.STARTED,
        "generation": generation,
        "task_count": 2,
        "worker_id": "w:1",
    }
    return TaskPlan(**{**fields, **changes})


def _run(number: int, **changes: Any) -> TaskRun:
    return replace(TaskRun(task=_task(number), started_at=NOW - 1), **changes)


def _observed(**changes: Any) -> Observed:
    """A connector that is all that it should be."""
    observed = Observed(
        traits=TRAITS,
        traits_offset=5,
        running_offset=5,
        task_configs=TASKS,
        tasks={0: _run(0), 1: _run(1)},
        generations={0: 12, 1: 12},
        status=RUNNING,
        task_statuses={number: Status(state=State.RUNNING, generation=12) for number in (0, 1)},
        position=10,
        last_config=CONFIG,
    )
    return replace(observed, **changes)


def _plan(desired: DesiredConnector | None, observed: Observed, rules: Rules = RULES, now: float = NOW) -> list[Action]:
    return plan(desired, observed, rules, now)


# --- the connector object ---


def test_there_is_nothing_to_do_when_all_is_as_desired() -> None:
    assert _plan(_desired(), _observed()) == []


def test_a_new_connector_is_read_started_asked_and_written_before_its_tasks_start() -> None:
    desired, observed = _desired(tasks=(), is_planned=False), Observed(position=10)
    assert _plan(desired, observed) == [ReadConfig(desired)]
    observed = planning.complete(observed, ReadConfig(desired), NOW, TRAITS)
    assert _plan(desired, observed) == [StartConnector(desired)]
    observed = planning.complete(observed, StartConnector(desired), NOW)
    assert _plan(desired, observed) == [AskForTasks()]
    observed = planning.complete(observed, AskForTasks(), NOW, TASKS)
    assert _plan(desired, observed) == [WriteTasks(TASKS)]
    assert _plan(_desired(), observed) == [
        ReportConnector(State.RUNNING),
        ReportTask(0, State.UNASSIGNED, 10),
        StartTask(_task(0, generation=11)),
        ReportTask(1, State.UNASSIGNED, 10),
        StartTask(_task(1, generation=11)),
    ]


def test_that_a_connector_has_no_tasks_is_written_once() -> None:
    observed = _observed(task_configs=(), tasks={}, task_statuses={})
    assert _plan(_desired(tasks=(), is_planned=False), observed) == [WriteTasks(())]
    assert _plan(_desired(tasks=()), observed) == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"running_offset": 3}, id="it was configured since"),
        pytest.param({"restart_connector": True}, id="a user wants it to begin again"),
        pytest.param(
            {"failure": ConnectorFailure(config_offset=5, trace="gone", restart_at=None)}, id="it cannot go on"
        ),
    ],
)
def test_a_connector_object_is_stopped_before_the_next_one_starts(changes: dict[str, Any]) -> None:
    observed = _observed(**changes)
    assert _plan(_desired(), observed) == [StopConnector()]


def test_tasks_go_on_while_their_connector_begins_again() -> None:
    desired = _desired(config={"name": "c", "tables": "a"}, config_offset=9)
    observed = _observed(traits_offset=9, running_offset=None)
    assert _plan(desired, observed) == [StartConnector(desired)]


def test_a_connector_that_wants_other_tasks_is_asked_again() -> None:
    observed = _observed(has_new_tasks=True)
    assert _plan(_desired(), observed) == [AskForTasks()]
    assert not planning.begin(observed, AskForTasks(), NOW).has_new_tasks


def test_a_failed_connector_shows_why_and_its_tasks_go_on() -> None:
    observed = planning.fail_connector(_observed(running_offset=None, traits=None), 5, "it broke", NOW)
    assert _plan(_desired(), observed) == [ReportConnector(State.FAILED, "it broke")]


def test_tasks_that_an_earlier_leader_planned_start_although_their_connector_fails() -> None:
    failure = ConnectorFailure(config_offset=5, trace="it broke", restart_at=None)
    observed = _observed(running_offset=None, failure=failure, tasks={}, generations={})
    starts = [action for action in _plan(_desired(), observed) if isinstance(action, StartTask)]
    assert [start.task.id.task for start in starts] == [0, 1]


def test_a_failed_connector_is_started_again_when_its_time_has_come_and_as_often_as_allowed() -> None:
    observed = _observed(running_offset=None)
    for delay in (1.0, 2.0):
        observed = planning.fail_connector(observed, 5, "it broke", NOW)
        assert _plan(_desired(), observed) == [ReportConnector(State.RESTARTING, "it broke")]
        assert planning.next_look(observed, RULES, NOW) == NOW + delay
        assert _plan(_desired(), observed, now=NOW + delay) == [StartConnector(_desired())]
    observed = planning.fail_connector(observed, 5, "it broke", NOW)
    assert _plan(_desired(), observed, now=NOW + 1000) == [ReportConnector(State.FAILED, "it broke")]


def test_a_connector_that_ran_long_has_all_its_restarts_again() -> None:
    observed = _observed(failures=2, started_at=NOW - 100)
    failure = planning.fail_connector(observed, 5, "it broke", NOW).failure
    assert failure is not None
    assert failure.restart_at == NOW + 1


def test_a_connector_that_never_ran_has_no_more_restarts_however_long_the_machine_is_up() -> None:
    failure = planning.fail_connector(_observed(failures=2, started_at=None), 5, "it broke", 1e9).failure
    assert failure is not None
    assert failure.restart_at is None


def test_whatever_a_user_asks_for_a_failed_connector_is_tried_again() -> None:
    observed = planning.fail_connector(_observed(running_offset=None, traits=None), 5, "it broke", NOW)
    assert _plan(_desired(), planning.wake(observed)) == [StartConnector(_desired())]


# --- stopped, paused, deleted ---


def test_a_stopped_connector_ends_step_by_step_and_has_no_tasks() -> None:
    desired, observed = _desired(target=Target.STOPPED), _observed()
    assert _plan(desired, observed) == [StopConnector()]
    observed = planning.complete(observed, StopConnector(), NOW)
    assert _plan(desired, observed) == [StopTasks((0, 1))]
    observed = planning.complete(observed, StopTasks((0, 1)), NOW)
    assert _plan(desired, observed) == [WriteTasks(())]
    assert _plan(replace(desired, tasks=()), observed) == [Forget((0, 1)), ReportConnector(State.STOPPED)]


def test_a_paused_connector_keeps_its_tasks() -> None:
    desired, observed = _desired(target=Target.PAUSED), _observed(running_offset=None)
    assert _plan(desired, observed) == [
        ReportConnector(State.PAUSED),
        SetTarget(0, Target.PAUSED),
        SetTarget(1, Target.PAUSED),
    ]
    for number in (0, 1):
        observed = planning.complete(observed, SetTarget(number, Target.PAUSED), NOW)
    assert _plan(desired, replace(observed, status=Status(state=State.PAUSED, worker_id="w:1"))) == []


def test_a_deleted_connector_leaves_nothing_behind() -> None:
    observed = _observed(topics=("t",))
    assert _plan(None, observed) == [StopConnector()]
    observed = planning.complete(observed, StopConnector(), NOW)
    assert _plan(None, observed) == [StopTasks((0, 1))]
    observed = planning.complete(observed, StopTasks((0, 1)), NOW)
    assert _plan(None, observed) == [
        Forget((0, 1), ("t",)),
        CleanUp(CONFIG),
        ReportConnector(State.DESTROYED),
    ]
    observed = planning.complete(observed, CleanUp(CONFIG), NOW)
    assert replace(observed, status=None, task_statuses={}, topics=()).is_empty


def test_the_last_word_of_a_task_that_is_no_more_is_forgotten() -> None:
    observed = _observed(task_statuses={7: Status(state=State.UNASSIGNED)})
    assert Forget((7,)) in _plan(_desired(), observed)


# --- tasks ---


def test_only_tasks_whose_configuration_changed_end_and_begin() -> None:
    desired = _desired(tasks=(TASKS[0], {"table": "z"}))
    observed = _observed(task_configs=desired.tasks)
    assert _plan(desired, observed) == [
        StopTasks((1,)),
        ReportTask(1, State.UNASSIGNED, 13),
        StartTask(_task(1, generation=14, task_config={"table": "z"})),
    ]


def test_tasks_that_write_in_transactions_all_end_and_are_fenced_before_any_begins() -> None:
    desired = _desired(tasks=(TASKS[0], {"table": "z"}), fenced_tasks=2)
    observed = _observed(task_configs=desired.tasks, traits=replace(TRAITS, is_exactly_once=True))
    kinds = [type(action) for action in _plan(desired, observed)]
    assert kinds == [StopTasks, FenceTasks, ReportTask, StartTask, ReportTask, StartTask]


def test_a_task_that_could_not_be_stopped_is_stopped_again() -> None:
    desired, observed = _desired(target=Target.STOPPED), _observed(running_offset=None)
    observed = planning.retry(planning.begin(observed, StopTasks((0, 1)), NOW), NOW)
    assert _plan(desired, observed) == []
    assert planning.next_look(observed, RULES, NOW) == NOW + 1
    assert _plan(desired, observed, now=NOW + 1) == [StopTasks((0, 1))]


def test_a_task_that_may_have_stopped_begins_again_when_it_is_wanted_again() -> None:
    observed = _observed(tasks={0: _run(0, is_ending=True), 1: _run(1)})
    kinds = [type(action) for action in _plan(_desired(), observed)]
    assert kinds == [StopTasks, ReportTask, StartTask]


def test_steps_that_fail_again_and_again_are_tried_more_and_more_rarely_until_a_user_asks() -> None:
    observed = _observed()
    delays = []
    for _ in range(7):
        observed = planning.retry(observed, NOW)
        delays.append(observed.retry_at - NOW)
    assert delays == [1, 2, 4, 8, 16, 30, 30]
    assert planning.wake(observed).retry_at == 0


def test_a_task_that_was_asked_to_restart_ends_and_begins() -> None:
    observed = planning.restart(_observed(), connector=False, tasks=[1])
    assert _plan(_desired(), observed) == [
        StopTasks((1,)),
        ReportTask(1, State.UNASSIGNED, 13),
        StartTask(_task(1, generation=14)),
    ]


def test_a_failed_task_is_started_again_as_often_as_allowed() -> None:
    observed = _observed()
    failed = Status(state=State.FAILED, generation=12, trace="it broke")
    for failures, delay in ((1, 1.0), (2, 2.0)):
        observed = replace(observed, task_statuses={**observed.task_statuses, 0: failed})
        later = RestartLater(0, NOW + delay, failed.generation, "it broke", failures, 0)
        assert _plan(_desired(), observed) == [later]
        observed = planning.note(observed, later)
        assert _plan(_desired(), observed) == []
        (_, start) = _plan(_desired(), observed, now=NOW + delay)
        assert isinstance(start, StartTask)
        observed = planning.begin(observed, start, NOW)
        failed = Status(state=State.FAILED, generation=start.task.generation, trace="it broke")
        observed = planning.finish(observed)
    observed = replace(observed, task_statuses={**observed.task_statuses, 0: failed})
    assert _plan(_desired(), observed) == []


def test_a_failure_of_an_earlier_run_is_passed_over() -> None:
    observed = _observed(task_statuses={0: Status(state=State.FAILED, generation=11)})
    assert _plan(_desired(), observed) == []


def test_a_task_that_ran_long_has_all_its_restarts_again() -> None:
    failed = Status(state=State.FAILED, generation=12)
    runs = {0: _run(0, failures=2, started_at=NOW - 100), 1: _run(1)}
    (later,) = _plan(_desired(), _observed(tasks=runs, task_statuses={0: failed}))
    assert isinstance(later, RestartLater)
    assert later.failures == 1


@pytest.mark.parametrize("losses, delay", [(0, 0.0), (1, 0.5), (2, 1.0), (20, 30.0)])
def test_a_task_that_was_lost_is_started_again_at_once_and_then_more_and_more_slowly(losses: int, delay: float) -> None:
    observed = _observed(tasks={0: _run(0, losses=losses), 1: _run(1)}, traits=None)
    observed = planning.lose_task(observed, 0, "killed")
    assert _plan(_desired(), observed) == [RestartLater(0, NOW + delay, 12, "killed", 0, losses + 1)]


def test_a_task_whose_place_was_taken_over_counts_as_lost() -> None:
    fenced = Status(state=State.RESTARTING, generation=12, trace=f"x: {FENCED}: no")
    observed = _observed(task_statuses={0: fenced}, traits=Traits())
    assert _plan(_desired(), observed) == [RestartLater(0, NOW, 12, fenced.trace, 0, 1)]


def test_a_task_that_waits_for_its_restart_goes_on_showing_why() -> None:
    waiting = Status(state=State.RESTARTING, generation=12, trace="it broke")
    observed = _observed(tasks={0: _run(0, restart_at=NOW), 1: _run(1)}, task_statuses={0: waiting})
    assert _plan(_desired(), observed)[0] == ReportTask(0, State.RESTARTING, 13, "it broke")


# --- leaders ---


def test_tasks_that_outlive_their_leader_go_on_under_the_next_one() -> None:
    observed = _observed(tasks={}, generations={})
    assert _plan(_desired(), observed, LASTING) == [StartTask(_task(0)), StartTask(_task(1))]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(Status(state=State.FAILED, generation=12), id="it has failed"),
        pytest.param(Status(state=State.RUNNING, generation=8), id="it was started before the last decision"),
        pytest.param(None, id="nothing is known of it"),
    ],
)
def test_other_tasks_begin_anew_under_the_next_leader(status: Status | None) -> None:
    statuses = {} if status is None else {0: status}
    observed = _observed(tasks={}, generations={}, task_statuses=statuses)
    (_, start, *_) = _plan(_desired(), observed, LASTING)
    assert isinstance(start, StartTask)
    assert start.task.generation > (status.generation if status else 0)


def test_a_task_that_this_leader_has_stopped_never_goes_on_whatever_its_last_report_was() -> None:
    (_, start, *_) = _plan(_desired(), _observed(tasks={}), LASTING)
    assert isinstance(start, StartTask)
    assert start.task.generation > 12


def test_a_failed_connector_does_not_keep_tasks_that_are_no_longer_desired() -> None:
    failure = ConnectorFailure(config_offset=5, trace="it broke", restart_at=None)
    observed = _observed(running_offset=None, failure=failure)
    assert StopTasks((0, 1)) in _plan(_desired(tasks=()), observed)


def test_a_task_that_was_forgotten_never_gets_a_generation_again_that_it_had() -> None:
    observed = _observed(tasks={}, task_statuses={}, generations={0: 50, 1: 12})
    starts = [action for action in _plan(_desired(), observed) if isinstance(action, StartTask)]
    assert [start.task.generation for start in starts] == [52, 14]


def test_a_worker_that_takes_over_shows_itself() -> None:
    observed = _observed(status=Status(state=State.RUNNING, worker_id="other:1"))
    assert _plan(_desired(), observed) == [ReportConnector(State.RUNNING)]


# --- code that hangs ---


def test_while_a_step_is_carried_out_nothing_else_begins() -> None:
    observed = _observed(busy=Busy(step=StopTasks((0,)), since=NOW - 10_000), running_offset=3)
    assert _plan(_desired(), observed) == []
    assert planning.next_look(observed, RULES, NOW) is None


def test_code_that_takes_too_long_is_given_up_and_the_connector_fails() -> None:
    start = StartConnector(_desired())
    observed = planning.begin(_observed(running_offset=None, traits=None), start, NOW)
    assert planning.next_look(observed, RULES, NOW) == NOW + 90
    assert _plan(_desired(), observed, now=NOW + 89) == []
    assert _plan(_desired(), observed, now=NOW + 90) == [GiveUpCall(90.0)]
    observed = planning.give_up(observed, "it hangs", NOW + 90)
    assert _plan(_desired(), observed, now=NOW + 90) == [ReportConnector(State.FAILED, "it hangs")]


def test_code_that_hangs_is_given_up_soon_when_a_user_asks_for_something_else() -> None:
    desired = _desired(config={"name": "c"}, config_offset=9)
    observed = planning.begin(_observed(running_offset=None), StartConnector(_desired()), NOW)
    observed = planning.wake(observed)
    assert _plan(desired, observed, now=NOW + 1) == [GiveUpCall(1.0)]
    observed = planning.give_up(observed, "it hangs", NOW + 1)
    observed = planning.complete(observed, ReadConfig(desired), NOW, TRAITS)
    assert _plan(desired, observed) == [StartConnector(desired)]


def test_code_that_hangs_is_given_up_soon_when_it_was_overtaken_before_it_began() -> None:
    planned = _observed(running_offset=None, busy=Busy(step=StartConnector(_desired()), since=NOW))
    observed = planning.begin(planning.wake(planned), StartConnector(_desired()), NOW)
    assert _plan(_desired(config_offset=9), observed, now=NOW + 1) == [GiveUpCall(1.0)]


def test_a_connector_that_does_not_stop_is_left_to_itself() -> None:
    observed = planning.begin(_observed(), StopConnector(), NOW)
    assert _plan(None, observed, now=NOW + 6) == [GiveUpCall(6.0)]
    assert planning.give_up(observed, "it hangs", NOW + 6).running_offset is None
