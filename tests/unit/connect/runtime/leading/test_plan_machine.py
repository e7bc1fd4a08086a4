"""The plan, driven at random: users, failing connectors and tasks, lost processes, hanging code, new leaders.

Everything around the plan is simulated by values. Whatever has happened, once nothing more goes wrong the world becomes
what the config topic says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from connect.api.backoff import Backoff
from connect.runtime.leading import plan as planning
from connect.runtime.leading.plan import (
    Action,
    AskForTasks,
    CleanUp,
    FenceTasks,
    Forget,
    GiveUpCall,
    Observed,
    ReadConfig,
    Report,
    ReportConnector,
    ReportTask,
    RestartLater,
    RestartPolicy,
    Rules,
    SetTarget,
    StartConnector,
    StartTask,
    Step,
    StopConnector,
    StopTasks,
    Traits,
    WriteTasks,
)
from connect.runtime.models import State, Target, TaskPlan
from connect.stores.configs import Config, DesiredConnector
from connect.stores.statuses import Status

_RESTARTS = RestartPolicy(limit=1, backoff=Backoff(1.0, 4.0), reset_seconds=100.0)
_NUMBERS = st.integers(0, 2)
_DECISION = 100
"""How far the config topic grows with each decision: further than generations do by restarts between two of them."""
_TARGETS = {Target.STARTED: State.RUNNING, Target.PAUSED: State.PAUSED}


@dataclass
class World:
    """The topics, the tasks that really run, and the connector object that really exists."""

    desired: DesiredConnector | None = None
    position: int = 0
    status: Status | None = None
    task_statuses: dict[int, Status] = field(default_factory=dict)
    running: dict[int, TaskPlan] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)
    """Of the last run of each task."""
    object_offset: int | None = None
    tables: int = 1
    """How many tasks the connector plans."""
    is_broken: bool = False
    """Whether the connector's code fails."""

    def write(self, **changes: object) -> None:
        assert self.desired is not None
        self.position += _DECISION
        self.desired = replace(self.desired, **changes)  # type: ignore[arg-type]  # the names of its fields

    def report(self, number: int, status: Status) -> None:
        known = self.task_statuses.get(number)
        if known is None or status.generation >= known.generation:
            self.task_statuses[number] = status

    def report_own(self, task: TaskPlan, state: State, trace: str | None = None) -> None:
        self.report(task.id.task, Status(state=state, generation=task.generation, trace=trace))


class PlanMachine(RuleBasedStateMachine):
    """One connector, its leader, and all that may happen to them."""

    @initialize(lasting=st.booleans(), exactly_once=st.booleans(), tables=_NUMBERS)
    def begin(self, lasting: bool, exactly_once: bool, tables: int) -> None:
        self.terms = Rules(worker_id="w:1", tasks_outlive_leader=lasting, call_seconds=10.0, stop_seconds=5.0)
        self.traits = Traits(is_exactly_once=exactly_once, restarts=_RESTARTS)
        self.world = World()
        self.observed = Observed()
        self.job: list[Action] = []
        self.now = 1000.0
        self._create(tables, Target.STARTED)

    # --- users ---

    @rule(tables=_NUMBERS, aim=st.sampled_from(list(Target)))
    @precondition(lambda self: self.world.desired is None)
    def create(self, tables: int, aim: Target) -> None:
        self._create(tables, aim)

    def _create(self, tables: int, aim: Target) -> None:
        world = self.world
        world.tables = tables
        world.position += _DECISION
        world.desired = DesiredConnector(
            name="c",
            config={"version": str(world.position)},
            config_offset=world.position,
            target=aim,
            tasks=(),
            is_planned=False,
            decided_at=world.position,
            fenced_tasks=None,
        )
        self.wake()

    @rule(tables=_NUMBERS, is_same=st.booleans())
    @precondition(lambda self: self.world.desired is not None)
    def configure(self, tables: int, is_same: bool) -> None:
        world, offset = self.world, self.world.position + _DECISION
        assert world.desired is not None
        config = world.desired.config if is_same else {"version": str(offset)}
        world.tables = tables
        world.write(config=config, config_offset=offset, decided_at=offset, is_planned=False)
        self.wake()

    @rule(aim=st.sampled_from(list(Target)))
    @precondition(lambda self: self.world.desired is not None)
    def set_target(self, aim: Target) -> None:
        self.world.write(target=aim, **({"tasks": ()} if aim is Target.STOPPED else {}))
        self.wake()

    @rule(rounds=st.integers(0, 8), tables=_NUMBERS, is_created_again=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.world.desired is not None)
    def delete(self, rounds: int, tables: int, is_created_again: bool) -> None:
        self.world.position += _DECISION
        self.world.desired = None
        self.wake()
        self.work(rounds=rounds)
        if is_created_again:
            self._create(tables, Target.STARTED)

    @rule(connector=st.booleans(), tasks=st.sets(_NUMBERS))
    def restart(self, connector: bool, tasks: set[int]) -> None:
        self.observed = planning.restart(self.observed, connector=connector, tasks=tasks)

    def wake(self) -> None:
        self.observed = planning.wake(self.observed)

    # --- what happens by itself ---

    @rule(seconds=st.sampled_from([0.5, 2.0, 20.0, 200.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(tables=_NUMBERS)
    @precondition(lambda self: self.world.object_offset is not None)
    def want_other_tasks(self, tables: int) -> None:
        self.world.tables = tables
        self.observed = replace(self.observed, has_new_tasks=True)

    @rule()
    @precondition(lambda self: self.observed.running_offset is not None)
    def connector_gives_up(self) -> None:
        assert self.observed.running_offset is not None
        self.observed = planning.fail_connector(self.observed, self.observed.running_offset, "gone", self.now)

    @rule(is_broken=st.booleans())
    def break_or_repair(self, is_broken: bool) -> None:
        self.world.is_broken = is_broken

    @rule(number=_NUMBERS)
    @precondition(lambda self: bool(self.world.running))
    def task_fails(self, number: int) -> None:
        if (task := self.world.running.pop(number, None)) is not None:
            self.world.report_own(task, State.FAILED, "it broke")

    @rule(number=_NUMBERS)
    @precondition(lambda self: bool(self.world.running) and not self.terms.tasks_outlive_leader)
    def task_is_lost(self, number: int) -> None:
        if self.world.running.pop(number, None) is not None:
            self.observed = planning.lose_task(self.observed, number, "killed")

    @rule()
    def lead_changes(self) -> None:
        """The worker is gone, and another one leads: it knows the topics, and nothing else."""
        self.observed, self.job = Observed(), []
        self.world.object_offset = None
        self.world.generations.clear()
        if not self.terms.tasks_outlive_leader:
            self.world.running.clear()

    # --- the loop ---

    @rule()
    def look(self) -> None:
        """Plan, as the loop does whenever something has happened."""
        self._observe()
        actions = planning.plan(self.world.desired, self.observed, self.terms, self.now)
        self._check(actions)
        if actions and isinstance(actions[0], GiveUpCall):
            step = self.observed.busy.step if self.observed.busy else None
            if isinstance(step, StopConnector):
                self.world.object_offset = None  # nothing listens to it any more
            self.job = []
            self.observed = planning.give_up(self.observed, "it hangs", self.now)
        elif actions and self.observed.busy is None:
            self.job = actions

    @rule()
    @precondition(lambda self: bool(self.job))
    def carry_out_next(self) -> None:
        action = self.job.pop(0)
        assert not isinstance(action, GiveUpCall)
        if isinstance(action, Report):
            self._report(action)
            self.observed = planning.note(self.observed, action)
        else:
            self.observed = planning.begin(self.observed, action, self.now)
            if self._connector_code_fails(action):
                return
            result = self._perform(action)
            self.observed = planning.complete(self.observed, action, self.now, result)
        if not self.job:
            self.observed = planning.finish(self.observed)

    @rule(rounds=st.integers(2, 12))
    def work(self, rounds: int) -> None:
        """For a while everything goes well."""
        for _ in range(rounds):
            if self.job:
                self.carry_out_next()
            else:
                self.look()

    @rule(was_done=st.booleans())
    @precondition(lambda self: any(isinstance(action, Step) for action in self.job))
    def step_fails(self, was_done: bool) -> None:
        """The cluster, or Redis, does not answer: the step may have been carried out or not."""
        while isinstance(action := self.job.pop(0), Report):
            self._report(action)
            self.observed = planning.note(self.observed, action)
        assert not isinstance(action, GiveUpCall)
        self.job = []
        self.observed = planning.begin(self.observed, action, self.now)
        if isinstance(action, StartTask):  # which is reported as the task's failure
            self.world.generations[action.task.id.task] = action.task.generation
            self.world.report_own(action.task, State.FAILED, "it could not start")
            self.observed = planning.finish(self.observed)
            return
        if was_done and isinstance(action, StopTasks | WriteTasks | FenceTasks):
            self._perform(action)
        self.observed = planning.retry(self.observed, self.now)

    @rule()
    @precondition(lambda self: any(isinstance(action, planning.Call) for action in self.job[:1]))
    def connector_code_hangs(self) -> None:
        step = self.job[0]
        assert isinstance(step, planning.Call)
        self.job = []
        self.observed = planning.begin(self.observed, step, self.now)

    def _connector_code_fails(self, action: Action) -> bool:
        if not self.world.is_broken or not isinstance(action, StartConnector | AskForTasks):
            return False
        offset = action.desired.config_offset if isinstance(action, StartConnector) else self.observed.running_offset
        assert offset is not None
        self.job = []
        self.observed = planning.finish(planning.fail_connector(self.observed, offset, "broken", self.now))
        return True

    def _observe(self) -> None:
        world = self.world
        if world.desired is not None:
            self.observed = replace(self.observed, last_config=world.desired.config)
        tasks = {
            number: replace(run, lost=None) if number in world.running else run
            for number, run in self.observed.tasks.items()
        }
        self.observed = replace(
            self.observed,
            tasks=tasks,
            status=world.status,
            task_statuses=dict(world.task_statuses),
            position=world.position,
        )

    def _perform(self, step: Step) -> Traits | tuple[Config, ...] | None:  # noqa: C901 - one case for each step
        world = self.world
        match step:
            case ReadConfig():
                return self.traits
            case StartConnector(desired):
                assert world.object_offset is None, "two connector objects"
                world.object_offset = desired.config_offset
            case StopConnector():
                world.object_offset = None
            case AskForTasks():
                return tuple({"table": str(number)} for number in range(world.tables))
            case WriteTasks(configs):
                if world.desired is not None:
                    world.write(tasks=configs, is_planned=True, decided_at=world.position + _DECISION)
            case StopTasks(numbers):
                for number in numbers:
                    if (task := world.running.pop(number, None)) is not None:
                        world.report_own(task, State.UNASSIGNED)
            case FenceTasks(_, _, count):
                assert self.traits.is_exactly_once
                assert not world.running or self.terms.tasks_outlive_leader, "fenced while tasks run"
                if world.desired is not None:
                    world.write(fenced_tasks=count)
            case StartTask(task):
                self._start(task)
            case SetTarget(number, target):
                if number in world.running:
                    world.report_own(world.running[number], _TARGETS[target])
            case CleanUp():
                pass
        return None

    def _start(self, task: TaskPlan) -> None:
        number, running = task.id.task, self.world.running.get(task.id.task)
        if running is not None:
            # Only an earlier leader's run may be alive: it goes on, or the executor replaces it.
            assert self.terms.tasks_outlive_leader, f"task {number} runs twice"
            assert task.generation >= running.generation
        else:
            assert task.generation > self.world.generations.get(number, 0), f"a run of task {number} begins twice"
        self.world.generations[number] = task.generation
        self.world.running[number] = task
        self.world.report_own(task, _TARGETS[task.target])

    def _report(self, report: Report) -> None:
        world = self.world
        match report:
            case ReportConnector(State.DESTROYED):
                world.status = None
            case ReportConnector(state, trace):
                world.status = Status(state=state, trace=trace, worker_id=self.terms.worker_id)
            case ReportTask(number, state, generation, trace):
                world.report(number, Status(state=state, trace=trace, generation=generation))
            case RestartLater(number, _, generation, trace, failures, _):
                assert failures <= _RESTARTS.limit, "more restarts than allowed"
                world.report(number, Status(state=State.RESTARTING, trace=trace, generation=generation))
            case Forget(numbers):
                for number in numbers:
                    world.task_statuses.pop(number, None)

    # --- what must hold ---

    def _check(self, actions: Iterable[Action]) -> None:
        desired, observed = self.world.desired, self.observed
        starts = [action for action in actions if isinstance(action, StartTask | StartConnector)]
        if desired is None or desired.target is Target.STOPPED:
            assert not starts, "something starts that was deleted or stopped"
            return
        for start in starts:
            if isinstance(start, StartTask) and not self.traits.is_exactly_once:
                self._check_backoff(desired, start)
            if isinstance(start, StartConnector):
                failure = observed.failure
                is_same = failure is not None and failure.config_offset == desired.config_offset
                if failure is not None and is_same and not observed.restart_connector:
                    assert failure.restart_at is not None
                    assert failure.restart_at <= self.now, "the connector starts before its time"

    def _check_backoff(self, desired: DesiredConnector, start: StartTask) -> None:
        number = start.task.id.task
        run = self.observed.tasks.get(number)
        if run is None or run.is_ending or number in self.observed.restart_tasks:
            return
        was = run.task.connector_config, run.task.task_config, run.task.task_count
        if was == (desired.config, desired.tasks[number], len(desired.tasks)):
            assert run.restart_at is not None, "a task that is as it should be starts again"
            assert run.restart_at <= self.now, "a task starts before its time"

    @invariant()
    def at_most_one_thing_is_done_at_a_time(self) -> None:
        if hasattr(self, "world") and self.world.object_offset is not None and self.observed.busy is None:
            is_known = self.observed.running_offset == self.world.object_offset
            assert is_known, "a connector object runs that the leader does not know"

    @rule()
    def settle(self) -> None:
        """Nothing goes wrong any more: the world becomes what is desired."""
        self.world.is_broken = False
        for _ in range(200):
            if self.job:
                self.carry_out_next()
                continue
            before = self.observed.busy
            self.look()
            if self.job or before is not self.observed.busy:
                continue
            if self._sweep():
                continue
            moment = planning.next_look(self.observed, self.terms, self.now)
            if moment is None:
                break
            self.now = max(moment, self.now)
        else:
            raise AssertionError("the plan never ends")
        self._judge()

    def _sweep(self) -> bool:
        """Executors whose tasks outlive a leader stop what the next one has not asked for."""
        if not self.terms.tasks_outlive_leader:
            return False
        strangers = self.world.running.keys() - self.observed.tasks.keys()
        for number in strangers:
            self.world.report_own(self.world.running.pop(number), State.UNASSIGNED)
        return bool(strangers)

    def _judge(self) -> None:
        world, desired = self.world, self.world.desired
        if desired is None:
            assert (world.running, world.object_offset, world.status, world.task_statuses) == ({}, None, None, {})
            return
        assert world.status is not None
        if desired.target is Target.STOPPED:
            assert (world.running, world.object_offset, desired.tasks) == ({}, None, ())
            assert world.status.state is State.STOPPED
            return
        has_failed = world.status.state is State.FAILED
        if desired.target is Target.PAUSED:
            assert (world.object_offset, world.status.state) == (None, State.PAUSED)
        elif not has_failed:
            assert (world.object_offset, world.status.state) == (desired.config_offset, State.RUNNING)
            assert len(desired.tasks) == world.tables
        failed = {number for number, status in world.task_statuses.items() if status.state is State.FAILED}
        assert set(world.running) | failed == set(range(len(desired.tasks)))
        for number, task in world.running.items():
            if not has_failed:
                assert (task.connector_config, task.task_config) == (desired.config, desired.tasks[number])
            assert world.task_statuses[number].state is _TARGETS[desired.target]

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.settle()


TestPlanMachine = PlanMachine.TestCase
TestPlanMachine.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, phases=[Phase.generate, Phase.shrink], derandomize=False
)
