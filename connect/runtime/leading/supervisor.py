"""The worker as its REST API sees it: connectors are shown, created, changed, restarted and deleted.

Everything blocks, and everything may be called from any number of threads. What is shown comes from the topics, on
every worker alike; changes are made by the leader alone, and any other worker raises NotLeader.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.runtime import errors
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.validation import validate
from connect.runtime.errors import BadRequest, Failed, Forbidden, NotLeader, Timeout, WorkerError
from connect.runtime.executor import Executor
from connect.runtime.leading.lanes import begun
from connect.runtime.leading.leadership import Leadership
from connect.runtime.leading.office import Office, Understood
from connect.runtime.leading.offsets_api import Entry, OffsetsApi, parsed_sink_offsets, parsed_source_offsets
from connect.runtime.leading.overview import Overview
from connect.runtime.leading.reign import Reign
from connect.runtime.loggers import Loggers
from connect.runtime.models import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    State,
    Target,
    TaskId,
    TaskState,
)
from connect.settings import ConnectSettings
from connect.stores.config_writer import ConfigWriter, Deposed
from connect.stores.configs import ConfigStore, ConnectorPlan
from connect.stores.statuses import StatusStore
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = 1.0
_ELECTION_SECONDS: Final = 10.0
_ELECTION_PAUSE_SECONDS: Final = 0.05


class Supervisor(Overview):
    """One worker: knows all connectors, and runs them while it leads."""

    def __init__(
        self,
        settings: ConnectSettings,
        *,
        plugins: Plugins,
        providers: ConfigProviders,
        executor: Executor,
        worker_id: str,
        url: str,
    ) -> None:
        """`worker_id` (host:port) is this worker's alone; `url` is where others reach its REST API."""
        self._settings = settings
        self._url = url
        office = Office(
            settings=settings,
            plugins=plugins,
            providers=providers,
            executor=executor,
            configs=ConfigStore(settings),
            statuses=StatusStore(settings),
            worker_id=worker_id,
        )
        super().__init__(office)
        self._offsets = OffsetsApi(office)
        self._leadership = Leadership(settings, worker_id=worker_id, on_gained=self._gained, on_lost=self._lost)
        self._reigning = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reign")
        self._reign: Reign | None = None
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._is_started = False
        self._cluster_id: str | None = None

    # --- life ---

    def start(self) -> None:
        """Read the topics and stand for election; waits for as long as the cluster does not answer, until `close`.

        ConfigError when a topic is not fit for its purpose.
        """
        for store in (self._office.configs, self._office.statuses):
            while not self._stopping.is_set():
                try:
                    store.start()
                    break
                except RetriableError as error:
                    log.warning("the cluster does not answer yet", extra={"error": str(error)})
                    self._stopping.wait(_RETRY_SECONDS)
        if not self._stopping.is_set():
            self._is_started = True
            self._office.configs.on_logger_level = _change_level
            self._leadership.start()

    def close(self) -> None:
        """Stop all connectors and tasks, and leave the group."""
        self._stopping.set()
        self._lost()
        self._reigning.shutdown(wait=True)
        if self._is_started:
            self._leadership.stop()
        self._office.executor.close()
        self._offsets.close()
        self._office.statuses.stop()
        self._office.configs.stop()

    def _gained(self) -> None:
        if self._stopping.is_set():
            return
        reign = Reign(self._office, url=self._url, on_deposed=self._leadership.resign)
        self._reign = reign
        self._reigning.submit(self._begin, reign)

    def _lost(self) -> None:
        reign, self._reign = self._reign, None
        if reign is not None:
            reign.depose()
            self._reigning.submit(self._end, reign)

    def _begin(self, reign: Reign) -> None:
        while not reign.is_over:
            try:
                reign.begin()
                return
            except Deposed:
                self._leadership.resign()
                return
            except Exception:
                log.exception("this worker cannot lead yet")
                self._stopping.wait(_RETRY_SECONDS)

    def _end(self, reign: Reign) -> None:
        try:
            reign.end()
        except Exception:
            log.exception("not everything could be stopped")
        log.info("this worker leads no more", extra={"worker": self._office.worker_id})

    # --- the cluster ---

    @property
    def is_leader(self) -> bool:
        """Whether this worker decides."""
        reign = self._reign
        return reign is not None and reign.has_begun

    @property
    def leader_url(self) -> str | None:
        """Where the worker that decides answers; None while nobody knows."""
        if self.is_leader:
            return self._url
        leader = self._office.configs.leader
        return leader.url if leader is not None and leader.worker_id != self._office.worker_id else None

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        if self._cluster_id is None:
            try:
                self._cluster_id = Admin(self._settings.kafka()).cluster().cluster_id
            except ClientError as error:
                raise Failed(f"The Kafka cluster does not answer: {error}") from error
        return self._cluster_id

    def health(self) -> tuple[str, str]:
        """`healthy`, `starting` or `unhealthy`, and what that means."""
        starting = ("starting", "Worker is still starting up.")
        if not self._is_started:
            return starting
        try:
            self._office.configs.refresh(5.0)
        except ConnectError as error:
            return "unhealthy", f"Worker cannot read its topics: {error}"
        if not self.is_leader and self.leader_url is None:
            return starting
        return "healthy", "Worker has completed startup and is ready to handle requests."

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Change the level of loggers in every worker."""
        reign = self._leading()
        self._write(lambda: reign.writer.put_logger_level(namespace, level))

    def writer(self) -> ConfigWriter:
        """What writes the config topic; NotLeader where somebody else does."""
        return self._leading().writer

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """How far a connector is."""
        plan = self._plan(name)
        return self._carefully(lambda: self._offsets.show(name, self._understood(plan)))

    # --- what is changed ---

    def create(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: Target = Target.STARTED,
        initial_offsets: Sequence[Entry] | None = None,
    ) -> ConnectorInfo:
        """A new connector."""
        reign = self._leading()
        if self._office.configs.contains(name):
            raise errors.connector_exists(name)
        given = self._validated(name, config)
        if initial_offsets:
            self._set_initial_offsets(reign, name, given, initial_offsets)
        with self._changing:
            if self._office.configs.contains(name):
                raise errors.connector_exists(name)
            target = None if initial_state is Target.STARTED else initial_state
            self._write(lambda: reign.writer.put_connector(name, given, target=target))
        return self._brought(reign, name)

    def put(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        """Configure a connector, and whether it is a new one."""
        reign = self._leading()
        given = self._validated(name, config)
        with self._changing:
            is_new = not self._office.configs.contains(name)
            self._write(lambda: reign.writer.put_connector(name, given))
        return is_new, self._brought(reign, name)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        """Change some keys of a connector's configuration; None removes one."""
        reign = self._leading()
        before = self._plan(name).config
        merged = {key: text for key, text in {**before, **changes}.items() if text is not None}
        given = self._validated(name, merged)
        with self._changing:
            if self._plan(name).config != before:
                raise errors.Conflict(errors.STALE)
            self._write(lambda: reign.writer.put_connector(name, given))
        return self._brought(reign, name)

    def delete(self, name: str) -> None:
        """Stop a connector, and forget it."""
        reign = self._leading()
        with self._changing:
            self._plan(name)
            self._write(lambda: reign.writer.remove(name))
        reign.bring(name)

    def pause(self, name: str) -> None:
        """Let tasks carry nothing for a while, and keep what they hold."""
        self._set_target(name, Target.PAUSED)

    def resume(self, name: str) -> None:
        """Let a connector go on that was paused or stopped."""
        self._set_target(name, Target.STARTED)

    def stop(self, name: str) -> None:
        """End all tasks of a connector until it is resumed."""
        self._set_target(name, Target.STOPPED)

    def _set_target(self, name: str, target: Target) -> None:
        reign = self._leading()
        with self._changing:
            plan = self._office.configs.plan(name)
            if plan is None:
                raise errors.unknown_connector(name)
            without_tasks = target is Target.STOPPED and bool(plan.tasks)
            if plan.target is not target or without_tasks:
                self._write(lambda: reign.writer.put_target(name, target, without_tasks=without_tasks))
        reign.bring(name)

    # --- restarts ---

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus | None:
        """Begin again with the connector, and its tasks where they are included; None when neither flag is set."""
        reign = self._leading()
        if not self._office.configs.contains(name):
            raise errors.unknown_connector_to_restart(name)
        status = self.status(name)
        if not include_tasks and not only_failed:
            reign.restart(name, connector=True, tasks=[])
            return None
        is_chosen = not only_failed or status.connector.state is State.FAILED
        chosen = [task.id for task in status.tasks if not only_failed or task.state is State.FAILED]
        self._show_restarting(name, connector=is_chosen, tasks=chosen if include_tasks else [])
        reign.restart(name, connector=is_chosen, tasks=chosen if include_tasks else [])
        return _shown_restarting(status, connector=is_chosen, tasks=chosen if include_tasks else [])

    def restart_task(self, name: str, task: int) -> None:
        """Begin again with one task."""
        reign = self._leading()
        plan = self._office.configs.plan(name)
        if plan is None:
            raise errors.unknown_connector_to_restart(name)
        if not 0 <= task < len(plan.tasks):
            raise errors.unknown_task(name, task)
        self._show_restarting(name, connector=False, tasks=[task])
        reign.restart(name, connector=False, tasks=[task])

    def _show_restarting(self, name: str, *, connector: bool, tasks: Sequence[int]) -> None:
        statuses, worker_id = self._office.statuses, self._office.worker_id
        if connector:
            known = statuses.connector(name)
            generation = known.generation if known else 0
            statuses.put_connector(name, State.RESTARTING, worker_id=worker_id, generation=generation)
        for number in tasks:
            task_id = TaskId(name, number)
            found = statuses.task(task_id)
            generation = found.generation if found else 0
            statuses.put_task(task_id, State.RESTARTING, worker_id=worker_id, generation=generation)

    # --- topics and offsets ---

    def reset_topics(self, name: str) -> None:
        """Forget which topics a connector has used."""
        if not self._settings.topic_tracking_enable:
            raise Forbidden("Topic tracking is disabled.")
        if not self._settings.topic_tracking_allow_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        for use in self._office.statuses.topics(name):
            self._office.statuses.delete_topic(use.name, name)

    def alter_offsets(self, name: str, offsets: Sequence[Entry]) -> str:
        """Set or forget some offsets of a stopped connector; the message says what was done."""
        return self._change_offsets(name, lambda understood: self._offsets.alter(name, understood, offsets))

    def reset_offsets(self, name: str) -> str:
        """Forget all offsets of a stopped connector; the message says what was done."""
        return self._change_offsets(name, lambda understood: self._offsets.reset(name, understood))

    def _change_offsets(self, name: str, change: Callable[[Understood], str]) -> str:
        reign = self._leading()
        understood = self._understood(self._stopped_plan(name))

        def checked_change() -> str:
            self._stopped_plan(name, is_settled=True)
            return change(understood)

        return self._in_turn(reign, name, checked_change)

    def _in_turn(self, reign: Reign, name: str, work: Callable[[], T]) -> T:
        """Do something in the connector's lane: what was to end has ended by then, and nothing begins meanwhile."""
        answers: list[T] = []
        refusals: list[WorkerError] = []

        def job() -> None:
            try:
                with reign.lanes.aside():
                    answers.append(work())
            except WorkerError as refusal:
                refusals.append(refusal)

        future = reign.submit(name, job)
        self._carefully(lambda: future.result(self._settings.rest_request_timeout_ms / 1000))
        for refusal in refusals:
            raise refusal
        return answers[0]

    def _stopped_plan(self, name: str, *, is_settled: bool = False) -> ConnectorPlan:
        """The plan of a connector that is to be stopped, or that is stopped when all is settled; else BadRequest."""
        plan, status = self._plan(name), self._office.statuses.connector(name)
        has_stopped = status is not None and status.state is State.STOPPED
        if plan.target is not Target.STOPPED or (is_settled and not has_stopped):
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
                f"the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )
        return plan

    def _set_initial_offsets(self, reign: Reign, name: str, config: dict[str, str], offsets: Sequence[Entry]) -> None:
        understood = self._office.understood(config)
        (parsed_sink_offsets if understood.type == "sink" else parsed_source_offsets)(offsets)

        def replace() -> None:
            self._offsets.reset(name, understood)
            self._offsets.alter(name, understood, offsets)

        self._in_turn(reign, name, replace)

    # --- pieces ---

    def _leading(self) -> Reign:
        """This worker's reign; while nobody leads yet, as after a start, it is waited for that."""
        deadline = time.monotonic() + _ELECTION_SECONDS
        while True:
            reign, leader_url = self._reign, self.leader_url
            if reign is not None and reign.has_begun:
                return reign
            if leader_url is not None or self._stopping.is_set() or time.monotonic() > deadline:
                raise NotLeader(leader_url)
            self._stopping.wait(_ELECTION_PAUSE_SECONDS)

    def _understood(self, plan: ConnectorPlan) -> Understood:
        try:
            return self._office.understood(plan.config)
        except ConfigError as error:
            raise BadRequest(str(error)) from error

    def _validated(self, name: str, config: Mapping[str, str | None]) -> dict[str, str]:
        given = {"name": name, **config}
        if given["name"] != name:
            raise BadRequest(
                f"Connector name configuration ({given['name']}) doesn't match connector name in the URL ({name})"
            )
        office = self._office
        checked = begun(
            lambda: validate(given, plugins=office.plugins, providers=office.providers, settings=office.settings)
        )
        try:
            checked.result(self._settings.rest_request_timeout_ms / 1000).require()
        except TimeoutError as error:
            told = "Request timed out. The worker is currently ensuring that the connector configuration is valid"
            raise Timeout(told) from error
        return {key: text for key, text in given.items() if text is not None}

    def _write(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Deposed as error:
            self._leadership.resign()
            raise NotLeader(self.leader_url) from error
        except ConnectError as error:
            raise Failed(f"Failed to write to the config topic: {error}") from error

    def _brought(self, reign: Reign, name: str) -> ConnectorInfo:
        if self._office.statuses.connector(name) is None:
            self._office.statuses.put_connector(
                name,
                State.UNASSIGNED,
                worker_id=self._office.worker_id,
                generation=self._office.configs.position,
            )
        reign.bring(name)
        return self.info(name)

    def _carefully(self, work: Callable[[], T]) -> T:
        """Tell what went wrong with the cluster as an answer."""
        try:
            return work()
        except TimeoutError as error:
            raise Timeout from error
        except (ConnectError, ClientError) as error:
            raise Failed(str(error)) from error


def _change_level(namespace: str, level: str) -> None:
    try:
        Loggers().set_level(namespace, level)
    except WorkerError as error:
        log.warning("a level was not changed", extra={"logger": namespace, "level": level, "error": str(error)})


def _shown_restarting(status: ConnectorStatus, *, connector: bool, tasks: Sequence[int]) -> ConnectorStatus:
    own = status.connector
    shown = ConnectorState(state=State.RESTARTING, worker_id=own.worker_id, version=own.version)
    return ConnectorStatus(
        name=status.name,
        connector=shown if connector else status.connector,
        tasks=[
            TaskState(id=task.id, state=State.RESTARTING, worker_id=task.worker_id, version=task.version)
            if task.id in tasks
            else task
            for task in status.tasks
        ],
        type=status.type,
    )
