"""Plans what the leader does next about one connector: values in, actions out. No I/O, no threads, no clock.

`plan` compares the desired with the observed state and returns the actions to carry out now, in order. The loop in
`connect/runtime/leading/term.py` carries them out and records the outcome with the other functions here, each of which
takes an `Observed` and returns the next one. Then it plans again, until there is nothing to do.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import structs

from connect.api.backoff import Backoff
from connect.runtime.models import FENCED, State, Target, TaskId, TaskPlan
from connect.stores.configs import Config, DesiredConnector
from connect.stores.statuses import Status

PATIENCE_SECONDS: Final = 1.0
"""How long a connector's code may take before a newer request overtakes it."""
_RETRIES: Final = Backoff(1.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often in a row a failed connector or task is restarted, and after which delay."""

    limit: int = 0
    """-1: without limit."""
    backoff: Backoff = _RETRIES
    reset_seconds: float = 0.0
    """After this long without a failure, all restarts are available again."""

    def delay(self, failures: int) -> float | None:
        """The delay after a number of earlier failures; None when no restart is left."""
        return None if 0 <= self.limit <= failures else self.backoff.delay(failures)


_LOSSES: Final = Backoff(0.5, 30.0)
_LOSSES_RESET_SECONDS: Final = 60.0
"""A task whose process died is restarted without limit: at once the first time, then with growing delays, because the
task itself may have crashed its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """How a configuration wants its tasks to be managed."""

    is_exactly_once: bool = False
    restarts: RestartPolicy = RestartPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for all connectors of this leader."""

    worker_id: str
    tasks_outlive_leader: bool = False
    call_seconds: float = 90.0
    """How long a connector's code may take to start, or to plan its tasks."""
    stop_seconds: float = 6.0
    """How long it may take to stop."""


# --- actions ---


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """Find the traits of a configuration."""

    desired: DesiredConnector


@dataclass(frozen=True, slots=True)
class StartConnector:
    """Make and start the connector object."""

    desired: DesiredConnector


@dataclass(frozen=True, slots=True)
class StopConnector:
    """Stop the connector object."""


@dataclass(frozen=True, slots=True)
class AskForTasks:
    """Have the connector object plan its tasks."""


@dataclass(frozen=True, slots=True)
class WriteTasks:
    """Write the configurations of all tasks to the config topic."""

    configs: tuple[Config, ...]


@dataclass(frozen=True, slots=True)
class StopTasks:
    """Return when none of these tasks runs."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FenceTasks:
    """Fence earlier tasks, and note how many there are from now on."""

    config: Config
    earlier: int | None
    count: int


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run a task."""

    task: TaskPlan


@dataclass(frozen=True, slots=True)
class SetTarget:
    """Pause or resume a task."""

    number: int
    target: Target


@dataclass(frozen=True, slots=True)
class CleanUp:
    """The connector was deleted: let it clean up."""

    config: Config


@dataclass(frozen=True, slots=True)
class ReportConnector:
    """Write the connector's state; DESTROYED removes it."""

    state: State
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class ReportTask:
    """Write a task's state."""

    number: int
    state: State
    generation: int
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class RestartLater:
    """A task failed or was lost: report that, and restart it at a given time."""

    number: int
    at: float
    generation: int
    trace: str | None
    failures: int
    losses: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Delete the states of tasks that no longer exist, and the list of topics that the connector used."""

    tasks: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GiveUpCall:
    """Stop waiting for a call of the connector's code that hangs."""

    seconds: float


Call = ReadConfig | StartConnector | StopConnector | AskForTasks | CleanUp
"""Actions that run the connector's code, which may hang."""
Report = ReportConnector | ReportTask | RestartLater | Forget
"""Actions that only record something: they never wait and never fail."""
Step = Call | WriteTasks | StopTasks | FenceTasks | StartTask | SetTarget
Action = Step | Report | GiveUpCall


# --- the observed state ---


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task that this leader has started and not stopped."""

    task: TaskPlan
    started_at: float
    failures: int = 0
    """In a row."""
    losses: int = 0
    lost: str | None = None
    """How its process died."""
    restart_at: float | None = None
    is_ending: bool = False
    """Whether it was asked to end, and may still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFailure:
    """Why the connector object does not run."""

    config_offset: int
    trace: str
    restart_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The step in progress."""

    step: Step | None = None
    """None: a user's request that needs the connector to be left alone."""
    since: float
    is_overtaken: bool = False
    """Whether a newer request has come since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that the leader knows about one connector."""

    busy: Busy | None = None
    failed_steps: int = 0
    retry_at: float = 0.0
    last_config: Config | None = None
    """The last configuration, also after the connector was deleted."""
    traits: Traits | None = None
    """None when the configuration cannot be read."""
    traits_offset: int | None = None

    running_offset: int | None = None
    """The configuration that the connector object was started with; None when there is no object."""
    started_at: float | None = None
    failures: int = 0
    failure: ConnectorFailure | None = None
    task_configs: tuple[Config, ...] | None = None
    """The tasks that the connector object last planned; None when it must plan them."""
    has_new_tasks: bool = False
    """Whether the connector object has asked for a new plan."""

    tasks: Mapping[int, TaskRun] = field(default_factory=dict)
    generations: Mapping[int, int] = field(default_factory=dict)
    """The generations of all tasks that this leader ever started: earlier leaders' runs of them have ended."""

    restart_connector: bool = False
    restart_tasks: frozenset[int] = frozenset()

    # From the stores, read before each plan.
    status: Status | None = None
    task_statuses: Mapping[int, Status] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    position: int = 0
    """The end of the config topic: it grows with every decision."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to remember about a deleted connector."""
        is_reported = self.status is not None or self.task_statuses or self.topics
        has_object = self.running_offset is not None or self.last_config is not None
        return not (self.busy or self.tasks or has_object or is_reported)


def plan(desired: DesiredConnector | None, observed: Observed, rules: Rules, now: float) -> list[Action]:
    """The actions to carry out now, in order; none when all is as desired, or when something must finish first."""
    if observed.busy is not None:
        limit = _limit(observed.busy, rules)
        return [] if limit is None or now < observed.busy.since + limit else [GiveUpCall(limit)]
    if now < observed.retry_at:
        return []
    if desired is None:
        return _retire(observed)
    if desired.target is Target.STOPPED:
        return _stop(desired, observed, rules)
    if observed.traits_offset != desired.config_offset:
        return [ReadConfig(desired)]
    if desired.target is Target.PAUSED:
        if observed.running_offset is not None:
            return [StopConnector()]
        return [*_report(observed, rules, State.PAUSED), *_change_tasks(desired, observed, rules, now)]
    return _run(desired, observed, rules, now)


def _limit(busy: Busy, rules: Rules) -> float | None:
    if not isinstance(busy.step, Call):
        return None
    limit = rules.stop_seconds if isinstance(busy.step, StopConnector) else rules.call_seconds
    return min(limit, PATIENCE_SECONDS) if busy.is_overtaken else limit


def _retire(observed: Observed) -> list[Action]:
    """The connector was deleted: stop it and clean up."""
    if observed.running_offset is not None:
        return [StopConnector()]
    if observed.tasks:
        return [StopTasks(tuple(observed.tasks))]
    actions: list[Action] = []
    if observed.task_statuses or observed.topics:
        actions.append(Forget(tuple(observed.task_statuses), observed.topics))
    if observed.last_config is not None:
        actions.append(CleanUp(observed.last_config))
    if observed.status is not None:
        actions.append(ReportConnector(State.DESTROYED))
    return actions


def _stop(desired: DesiredConnector, observed: Observed, rules: Rules) -> list[Action]:
    if observed.running_offset is not None:
        return [StopConnector()]
    if observed.tasks:
        return [StopTasks(tuple(observed.tasks))]
    if desired.tasks:
        return [WriteTasks(())]
    forgotten = [Forget(tuple(observed.task_statuses))] if observed.task_statuses else []
    return [*forgotten, *_report(observed, rules, State.STOPPED)]


def _run(desired: DesiredConnector, observed: Observed, rules: Rules, now: float) -> list[Action]:
    failure = observed.failure
    if observed.running_offset is not None:
        is_outdated = observed.running_offset != desired.config_offset
        if is_outdated or observed.restart_connector or failure is not None:
            return [StopConnector()]
        if observed.task_configs is None or observed.has_new_tasks:
            return [AskForTasks()]
        configs = observed.task_configs
        if configs != desired.tasks or not (configs or desired.is_planned):
            return [WriteTasks(configs)]
        return [*_report(observed, rules, State.RUNNING), *_change_tasks(desired, observed, rules, now)]
    has_failed = failure is not None and failure.config_offset == desired.config_offset
    if failure is None or not has_failed or observed.restart_connector:
        return [StartConnector(desired)]
    if failure.restart_at is not None and failure.restart_at <= now:
        return [StartConnector(desired)]
    state = State.FAILED if failure.restart_at is None else State.RESTARTING
    # Tasks continue without their connector, with the configuration that they were started with.
    tasks = _change_tasks(desired, observed, rules, now, keeps_config=True)
    return [*_report(observed, rules, state, failure.trace), *tasks]


def _report(observed: Observed, rules: Rules, state: State, trace: str | None = None) -> list[Action]:
    known = observed.status
    if known is not None and (known.state, known.trace, known.worker_id) == (state, trace, rules.worker_id):
        return []
    return [ReportConnector(state, trace)]


# --- tasks ---


def _change_tasks(
    desired: DesiredConnector, observed: Observed, rules: Rules, now: float, *, keeps_config: bool = False
) -> list[Action]:
    """Bring the tasks to their desired state; `keeps_config`: ignore changes of the connector's own configuration."""
    is_exactly_once = observed.traits is not None and observed.traits.is_exactly_once
    stopping, starting = _difference(observed.tasks, desired, keeps_config=keeps_config, all_at_once=is_exactly_once)
    continued = {number for number in starting if _is_continued(number, desired, observed, rules)}
    needs_fence = is_exactly_once and continued != starting

    asked = {number for number in observed.restart_tasks if number < len(desired.tasks)} - starting
    stopping |= asked & observed.tasks.keys()
    starting |= asked
    reports: list[Action] = []
    targets: list[Action] = []
    for number, run in observed.tasks.items():
        if number in stopping or number in starting or number >= len(desired.tasks):
            continue
        if run.restart_at is not None and run.restart_at <= now:
            starting.add(number)
        elif run.restart_at is None and (later := _restart_later(number, run, observed, now)) is not None:
            reports.append(later)
        elif run.task.target is not desired.target:
            targets.append(SetTarget(number, desired.target))

    gone = [n for n in observed.task_statuses if n >= len(desired.tasks) and n not in observed.tasks]
    if gone:
        reports.append(Forget(tuple(gone)))
    steps: list[Action] = [StopTasks(tuple(sorted(stopping)))] if stopping else []
    if needs_fence:
        steps.append(FenceTasks(desired.config, desired.fenced_tasks, len(desired.tasks)))
    for number in sorted(starting):
        steps += _start_task(number, desired, observed, rules, is_continued=number in continued)
    return [*reports, *steps, *targets]


def _difference(
    running: Mapping[int, TaskRun], desired: DesiredConnector, *, keeps_config: bool, all_at_once: bool
) -> tuple[set[int], set[int]]:
    """Which tasks must stop, and which must start.

    `all_at_once`: if anything changes, all tasks stop before any of them starts.
    """
    count = len(desired.tasks)
    unchanged = set()
    for number, run in running.items():
        if number >= count or run.is_ending or run.task.task_count != count:
            continue
        has_config = keeps_config or run.task.connector_config == desired.config
        if has_config and run.task.task_config == desired.tasks[number]:
            unchanged.add(number)
    wanted = set(range(count))
    if all_at_once and not unchanged == wanted == set(running):
        return set(running), wanted
    return set(running) - unchanged, wanted - unchanged


def _is_continued(number: int, desired: DesiredConnector, observed: Observed, rules: Rules) -> bool:
    """Whether the task runs already, because an earlier leader started it.

    Generations grow with every restart, too: a task that was restarted more often than the config topic was written
    since may continue with the configuration before the last one.
    """
    status = observed.task_statuses.get(number)
    if not rules.tasks_outlive_leader or number in observed.generations or status is None:
        return False
    return status.state in (State.RUNNING, State.PAUSED) and status.generation > desired.decided_at


def _start_task(
    number: int, desired: DesiredConnector, observed: Observed, rules: Rules, *, is_continued: bool
) -> list[Action]:
    status = observed.task_statuses.get(number)
    generation = max(status.generation if status else 0, observed.generations.get(number, 0))
    actions: list[Action] = []
    if not is_continued:
        # The report here has the generation before, so that the task's own reports win even if they come first.
        generation = max(observed.position, generation + 1) + 1
        if status is not None and status.state is State.RESTARTING:
            actions.append(ReportTask(number, State.RESTARTING, generation - 1, status.trace))
        else:
            actions.append(ReportTask(number, State.UNASSIGNED, generation - 1))
    task = TaskPlan(
        id=TaskId(desired.name, number),
        connector_config=desired.config,
        task_config=desired.tasks[number],
        target=desired.target,
        generation=generation,
        task_count=len(desired.tasks),
        worker_id=rules.worker_id,
    )
    return [*actions, StartTask(task)]


def _restart_later(number: int, run: TaskRun, observed: Observed, now: float) -> RestartLater | None:
    """The restart of a task that was lost, or that reported a failure."""
    status, generation = observed.task_statuses.get(number), run.task.generation
    state, trace = None, None
    if status is not None and status.generation == generation:
        state, trace = status.state, status.trace
    ran_seconds = now - run.started_at
    if run.lost is not None or (state is State.RESTARTING and FENCED in (trace or "")):
        losses = 0 if ran_seconds >= _LOSSES_RESET_SECONDS else run.losses
        delay = _LOSSES.delay(losses - 1) if losses else 0.0
        return RestartLater(number, now + delay, generation, run.lost or trace, run.failures, losses + 1)
    if state is not State.FAILED or observed.traits is None:
        return None
    policy = observed.traits.restarts
    failures = 0 if ran_seconds >= policy.reset_seconds else run.failures
    wait = policy.delay(failures)
    return None if wait is None else RestartLater(number, now + wait, generation, trace, failures + 1, run.losses)


# --- outcomes ---


def begin(observed: Observed, step: Step, now: float) -> Observed:
    """A step starts. A request that has come since it was planned has overtaken it already."""
    is_overtaken = observed.busy is not None and observed.busy.is_overtaken
    observed = replace(observed, busy=Busy(step=step, since=now, is_overtaken=is_overtaken))
    match step:
        case StartConnector():
            return replace(observed, restart_connector=False, failure=None)
        case AskForTasks():
            return replace(observed, has_new_tasks=False, task_configs=None)
        case StopTasks(numbers):
            ending = {number: replace(observed.tasks[number], is_ending=True) for number in numbers}
            return replace(observed, tasks={**observed.tasks, **ending})
        case StartTask(task):
            number = task.id.task
            former = observed.tasks.get(number)
            failures, losses = (former.failures, former.losses) if former and former.restart_at is not None else (0, 0)
            run = TaskRun(task=task, started_at=now, failures=failures, losses=losses)
            return replace(
                observed,
                tasks={**observed.tasks, number: run},
                generations={**observed.generations, number: task.generation},
                restart_tasks=observed.restart_tasks - {number},
            )
        case _:
            return observed


def complete(observed: Observed, step: Step, now: float, result: Traits | Sequence[Config] | None = None) -> Observed:
    """A step has succeeded; `result` is that of ReadConfig or AskForTasks."""
    match step:
        case ReadConfig(desired):
            traits = result if isinstance(result, Traits) else None
            return replace(observed, traits=traits, traits_offset=desired.config_offset)
        case StartConnector(desired):
            return replace(observed, running_offset=desired.config_offset, started_at=now, task_configs=None)
        case StopConnector():
            return replace(observed, running_offset=None, task_configs=None)
        case AskForTasks():
            assert not isinstance(result, Traits)
            return replace(observed, task_configs=tuple(result or ()))
        case StopTasks(numbers):
            return replace(observed, tasks={n: run for n, run in observed.tasks.items() if n not in numbers})
        case SetTarget(number, target):
            run = observed.tasks[number]
            task = structs.replace(run.task, target=target)
            return replace(observed, tasks={**observed.tasks, number: replace(run, task=task)})
        case CleanUp():
            return replace(observed, last_config=None)
        case _:
            return observed


def finish(observed: Observed) -> Observed:
    """All steps of a plan have succeeded."""
    return replace(observed, busy=None, failed_steps=0)


def retry(observed: Observed, now: float) -> Observed:
    """A step failed, and not because of the connector: plan the rest again after a while."""
    retry_at = now + _RETRIES.delay(observed.failed_steps)
    return replace(observed, busy=None, failed_steps=observed.failed_steps + 1, retry_at=retry_at)


def note(observed: Observed, report: Report) -> Observed:
    """A report was written."""
    if not isinstance(report, RestartLater):
        return observed
    run = observed.tasks[report.number]
    run = replace(run, restart_at=report.at, failures=report.failures, losses=report.losses, lost=None)
    return replace(observed, tasks={**observed.tasks, report.number: run})


def wake(observed: Observed) -> Observed:
    """A user requests something: retry failures at once, and give up on calls that hang."""
    busy = None if observed.busy is None else replace(observed.busy, is_overtaken=True)
    starts_again = observed.restart_connector or observed.failure is not None
    return replace(observed, busy=busy, failed_steps=0, retry_at=0.0, restart_connector=starts_again)


def restart(observed: Observed, *, connector: bool, tasks: Collection[int]) -> Observed:
    """A user requests a restart of the connector object, or of tasks."""
    runs = {n: replace(run, failures=0) if n in tasks else run for n, run in observed.tasks.items()}
    return replace(
        observed,
        tasks=runs,
        restart_connector=observed.restart_connector or connector,
        restart_tasks=observed.restart_tasks | frozenset(tasks),
    )


def fail_connector(observed: Observed, config_offset: int, trace: str, now: float) -> Observed:
    """The connector object could not start, could not plan its tasks, or reported that it cannot continue."""
    policy = observed.traits.restarts if observed.traits is not None else RestartPolicy()
    has_run_well = observed.started_at is not None and now - observed.started_at >= policy.reset_seconds
    failures = 0 if has_run_well else observed.failures
    delay = policy.delay(failures)
    restart_at = None if delay is None else now + delay
    failure = ConnectorFailure(config_offset=config_offset, trace=trace, restart_at=restart_at)
    return replace(observed, failures=failures + 1, failure=failure)


def give_up(observed: Observed, trace: str, now: float) -> Observed:
    """A call of the connector's code took too long and was given up."""
    busy = observed.busy
    assert busy is not None
    observed = replace(observed, busy=None)
    match busy.step:
        case StartConnector(desired):
            return observed if busy.is_overtaken else fail_connector(observed, desired.config_offset, trace, now)
        case AskForTasks() if observed.running_offset is not None and not busy.is_overtaken:
            return fail_connector(observed, observed.running_offset, trace, now)
        case ReadConfig() | StopConnector() | CleanUp():
            return complete(observed, busy.step, now)
        case _:
            return observed


def lose_task(observed: Observed, number: int, reason: str) -> Observed:
    """A task's process died."""
    run = observed.tasks.get(number)
    if run is None:
        return observed
    return replace(observed, tasks={**observed.tasks, number: replace(run, lost=reason)})


def next_look(observed: Observed, rules: Rules, now: float) -> float | None:
    """When to plan again even if nothing happens; None: never."""
    if observed.busy is not None:
        limit = _limit(observed.busy, rules)
        return None if limit is None else observed.busy.since + limit
    moments = [observed.retry_at, *(run.restart_at for run in observed.tasks.values())]
    if observed.failure is not None:
        moments.append(observed.failure.restart_at)
    return min((moment for moment in moments if moment is not None and moment > now), default=None)
