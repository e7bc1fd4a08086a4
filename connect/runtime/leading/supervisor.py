"""The worker as its REST API sees it: connectors are shown, created, changed, restarted and deleted.

Everything blocks and is thread-safe. What is shown comes from the topics, the same on every worker; only the leader
makes changes, and other workers raise NotLeader.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.runtime import errors
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.validation import validate
from connect.runtime.errors import BadRequest, Failed, Forbidden, NotLeader, Timeout, WorkerError
from connect.runtime.executor import Executor
from connect.runtime.leading.connector_host import call_within
from connect.runtime.leading.leadership import Leadership
from connect.runtime.leading.offsets_api import Entry, OffsetsApi, parse_sink_offsets, parse_source_offsets
from connect.runtime.leading.overview import Overview
from connect.runtime.leading.services import LeaderServices, ParsedConnector
from connect.runtime.leading.term import LeaderTerm
from connect.runtime.loggers import Loggers
from connect.runtime.models import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    State,
    Target,
    TaskState,
)
from connect.runtime.signatures import new_session_key
from connect.settings import ConnectSettings
from connect.stores.config_writer import ConfigWriter, LeadershipLost
from connect.stores.configs import ConfigStore, DesiredConnector
from connect.stores.statuses import StatusStore
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.service.clock import SystemClock

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = 1.0
_ELECTION_SECONDS: Final = 10.0
_ELECTION_PAUSE_SECONDS: Final = 0.05


class Supervisor(Overview):
    """One worker: shows all connectors, and runs them while it leads."""

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
        """`worker_id` (host:port) is unique to this worker; `url` is that of its REST API."""
        self._settings = settings
        self._url = url
        services = LeaderServices(
            settings=settings,
            plugins=plugins,
            providers=providers,
            executor=executor,
            configs=ConfigStore(settings),
            statuses=StatusStore(settings),
            worker_id=worker_id,
        )
        super().__init__(services)
        self._offsets = OffsetsApi(services)
        self._leadership = Leadership(settings, worker_id=worker_id, on_gained=self._begin_term, on_lost=self._end_term)
        self._term: LeaderTerm | None = None
        self._last_term: LeaderTerm | None = None
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._is_started = False
        self._cluster_id: str | None = None

    # --- start and stop ---

    def start(self) -> None:
        """Read the topics and take part in the election; waits for the cluster, until `close`.

        ConfigError when a topic has the wrong configuration.
        """
        for store in (self._services.configs, self._services.statuses):
            while not self._stopping.is_set():
                try:
                    store.start()
                    break
                except RetriableError as error:
                    log.warning("the cluster does not answer yet", extra={"error": str(error)})
                    self._stopping.wait(_RETRY_SECONDS)
        if not self._stopping.is_set():
            self._is_started = True
            self._services.configs.on_logger_level = _change_level
            self._leadership.start()

    def close(self) -> None:
        """Stop all connectors and tasks, and leave the group."""
        self._stopping.set()
        self._end_term()
        if self._last_term is not None:
            self._last_term.join()
        if self._is_started:
            self._leadership.stop()
        self._services.executor.close()
        self._offsets.close()
        self._services.statuses.stop()
        self._services.configs.stop()

    def _begin_term(self) -> None:
        if not self._stopping.is_set():
            resign = self._leadership.resign
            self._term = LeaderTerm(self._services, url=self._url, on_lead_lost=resign, predecessor=self._last_term)
            self._last_term = self._term

    def _end_term(self) -> None:
        term, self._term = self._term, None
        if term is not None:
            term.end()

    # --- the cluster ---

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads."""
        term = self._term
        return term is not None and term.has_begun

    @property
    def leader_url(self) -> str | None:
        """The URL of the leader; None while it is unknown."""
        if self.is_leader:
            return self._url
        leader = self._services.configs.leader
        return leader.url if leader is not None and leader.worker_id != self._services.worker_id else None

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        if self._cluster_id is None:
            try:
                self._cluster_id = Admin(self._settings.kafka()).cluster().cluster_id
            except ClientError as error:
                raise Failed(f"The Kafka cluster does not answer: {error}") from error
        return self._cluster_id

    def health(self) -> tuple[str, str]:
        """`healthy`, `starting` or `unhealthy`, and an explanation."""
        starting = ("starting", "Worker is still starting up.")
        if not self._is_started:
            return starting
        try:
            self._services.configs.refresh(5.0)
        except ConnectError as error:
            return "unhealthy", f"Worker cannot read its topics: {error}"
        if not self.is_leader and self.leader_url is None:
            return starting
        return "healthy", "Worker has completed startup and is ready to handle requests."

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Change the level of loggers in every worker."""
        self.write(lambda writer: writer.put_logger_level(namespace, level))

    def write(self, change: Callable[[ConfigWriter], None]) -> None:
        """Change the config topic, one change at a time; NotLeader when another worker leads."""
        term = self._leading()
        with self._changing:
            self._write(lambda: change(term.writer))

    def renew_session_key(self) -> None:
        """Replace the key with which workers sign requests when it is old; only the leader does."""
        key, term = next(iter(self._services.configs.session_keys), None), self._term
        age_ms = SystemClock().now_ms() - key.creation_timestamp if key is not None else 0
        if term is not None and term.has_begun and age_ms >= self._settings.inter_worker_key_ttl_ms:
            self.write(lambda writer: writer.put_session_key(new_session_key()))

    def writer(self) -> ConfigWriter:
        """The writer of the config topic; NotLeader when another worker leads."""
        return self._leading().writer

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """The offsets of a connector."""
        desired = self._desired(name)
        return self._map_cluster_errors(lambda: self._offsets.show(name, self._parse(desired)))

    # --- changes ---

    def create(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: Target = Target.STARTED,
        initial_offsets: Sequence[Entry] | None = None,
    ) -> ConnectorInfo:
        """Create a connector."""
        term = self._leading()
        if self._services.configs.contains(name):
            raise errors.connector_exists(name)
        given = self._validate(name, self.unmasked(name, config))
        if initial_offsets:
            self._set_initial_offsets(term, name, given, initial_offsets)
        with self._changing:
            if self._services.configs.contains(name):
                raise errors.connector_exists(name)
            target = None if initial_state is Target.STARTED else initial_state
            self._write(lambda: term.writer.put_connector(name, given, target=target))
        return self._wake_new(term, name)

    def put(
        self, name: str, config: Mapping[str, str | None], *, check: Callable[[bool], None] = lambda _: None
    ) -> tuple[bool, ConnectorInfo]:
        """Configure a connector; also returns whether it is new. `check` is told that before, and may raise."""
        term = self._leading()
        before = self._services.configs.desired(name)
        restored = self.unmasked(name, config)
        given = self._validate(name, restored)
        with self._changing:
            is_new = not self._services.configs.contains(name)
            check(is_new)
            if restored != config and self._services.configs.desired(name) != before:
                raise errors.Conflict(errors.STALE)  # the secrets may be other ones by now
            self._write(lambda: term.writer.put_connector(name, given))
        return is_new, self._wake_new(term, name)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        """Change some keys of a connector's configuration; None removes one."""
        term = self._leading()
        before = self._desired(name).config
        restored = self._services.secrets.restored(changes, before)
        merged = {key: text for key, text in {**before, **restored}.items() if text is not None}
        given = self._validate(name, merged)
        with self._changing:
            if self._desired(name).config != before:
                raise errors.Conflict(errors.STALE)
            self._write(lambda: term.writer.put_connector(name, given))
        return self._wake_new(term, name)

    def delete(self, name: str) -> None:
        """Stop a connector, and delete it."""
        term = self._leading()
        with self._changing:
            self._desired(name)
            self._write(lambda: term.writer.remove(name))
        term.wake(name)

    def set_target(self, name: str, target: Target) -> None:
        """Let a connector run, pause it (its tasks keep their resources) or stop it (it has no tasks then)."""
        term = self._leading()
        with self._changing:
            desired = self._services.configs.desired(name)
            if desired is None:
                raise errors.unknown_connector(name)
            without_tasks = target is Target.STOPPED and bool(desired.tasks)
            if desired.target is not target or without_tasks:
                self._write(lambda: term.writer.put_target(name, target, without_tasks=without_tasks))
        term.wake(name)

    # --- restarts ---

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus | None:
        """Restart the connector, and its tasks if they are included; None when neither flag is set."""
        term = self._leading()
        if not self._services.configs.contains(name):
            raise errors.unknown_connector_to_restart(name)
        status = self.status(name)
        if not include_tasks and not only_failed:
            term.restart(name, connector=True, tasks=[], is_shown=False)
            return None
        restarts_connector = not only_failed or status.connector.state is State.FAILED
        tasks = [task.id for task in status.tasks if include_tasks and (not only_failed or task.state is State.FAILED)]
        term.restart(name, connector=restarts_connector, tasks=tasks, is_shown=True)
        return _show_restarting(status, connector=restarts_connector, tasks=tasks)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        term = self._leading()
        desired = self._services.configs.desired(name)
        if desired is None:
            raise errors.unknown_connector_to_restart(name)
        if not 0 <= task < len(desired.tasks):
            raise errors.unknown_task(name, task)
        term.restart(name, connector=False, tasks=[task], is_shown=True)

    # --- topics and offsets ---

    def reset_topics(self, name: str) -> None:
        """Reset the topics that a connector has used."""
        self._require_tracking()
        if not self._settings.topic_tracking_allow_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        for use in self._services.statuses.topics(name):
            self._services.statuses.delete_topic(use.name, name)

    def alter_offsets(self, name: str, offsets: Sequence[Entry]) -> str:
        """Set or delete offsets of a stopped connector; returns the message for the response."""
        return self._change_offsets(name, lambda parsed: self._offsets.alter(name, parsed, offsets))

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector; returns the message for the response."""
        return self._change_offsets(name, lambda parsed: self._offsets.reset(name, parsed))

    def _change_offsets(self, name: str, change: Callable[[ParsedConnector], str]) -> str:
        term = self._leading()
        parsed = self._parse(self._require_stopped(name))

        def checked_change() -> str:
            self._require_stopped(name, is_settled=True)
            return change(parsed)

        return self._run_alone(term, name, checked_change)

    def _run_alone(self, term: LeaderTerm, name: str, work: Callable[[], T]) -> T:
        """Run something while no step is carried out for a connector."""
        future: Future[T] = term.run_alone(name, work)
        return self._map_cluster_errors(lambda: future.result(self._settings.rest_request_timeout_ms / 1000))

    def _require_stopped(self, name: str, *, is_settled: bool = False) -> DesiredConnector:
        """BadRequest unless the connector's target is STOPPED; `is_settled`: unless it has stopped."""
        desired, status = self._desired(name), self._services.statuses.connector(name)
        has_stopped = status is not None and status.state is State.STOPPED
        if desired.target is not Target.STOPPED or (is_settled and not has_stopped):
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
                f"the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )
        return desired

    def _set_initial_offsets(
        self, term: LeaderTerm, name: str, config: dict[str, str], offsets: Sequence[Entry]
    ) -> None:
        parsed = self._services.parse(config)
        (parse_sink_offsets if parsed.type == "sink" else parse_source_offsets)(offsets)

        def replace() -> None:
            self._offsets.reset(name, parsed)
            self._offsets.alter(name, parsed, offsets)

        self._run_alone(term, name, replace)

    # --- helpers ---

    def _leading(self) -> LeaderTerm:
        """This worker's term; NotLeader when another worker leads. Waits for the end of an election."""
        deadline = time.monotonic() + _ELECTION_SECONDS
        while True:
            term, leader_url = self._term, self.leader_url
            if term is not None and term.has_begun:
                return term
            if leader_url is not None or self._stopping.is_set() or time.monotonic() > deadline:
                raise NotLeader(leader_url)
            self._stopping.wait(_ELECTION_PAUSE_SECONDS)

    def _parse(self, desired: DesiredConnector) -> ParsedConnector:
        try:
            return self._services.parse(desired.config)
        except ConfigError as error:
            raise BadRequest(self._services.conceal(desired.name, str(error))) from error

    def _validate(self, name: str, config: Mapping[str, str | None]) -> dict[str, str]:
        given = with_name(config, name)
        plugins, providers = self._services.plugins, self._services.providers
        try:
            # A connector's own validation may hang.
            infos = call_within(
                self._settings.rest_request_timeout_ms / 1000,
                lambda: validate(given, plugins=plugins, providers=providers, settings=self._settings),
            )
        except TimeoutError as error:
            message = "Request timed out. The worker is currently ensuring that the connector configuration is valid"
            raise Timeout(message) from error
        infos.require()
        return {key: text for key, text in given.items() if text is not None}

    def _write(self, work: Callable[[], None]) -> None:
        try:
            work()
        except LeadershipLost as error:
            self._leadership.resign()
            raise NotLeader(self.leader_url) from error
        except ConnectError as error:
            raise Failed(f"Failed to write to the config topic: {error}") from error

    def _wake_new(self, term: LeaderTerm, name: str) -> ConnectorInfo:
        if self._services.statuses.connector(name) is None:
            self._services.statuses.put_connector(
                name,
                State.UNASSIGNED,
                worker_id=self._services.worker_id,
                generation=self._services.configs.position,
            )
        term.wake(name)
        return self.info(name)

    def _map_cluster_errors(self, work: Callable[[], T]) -> T:
        """Map errors of the cluster to responses."""
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
        log.warning(
            "the level of a logger could not be set", extra={"logger": namespace, "level": level, "error": str(error)}
        )


def _show_restarting(status: ConnectorStatus, *, connector: bool, tasks: Sequence[int]) -> ConnectorStatus:
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


def with_name(config: Mapping[str, str | None], name: str) -> dict[str, str | None]:
    """A configuration with its connector's name in it; BadRequest when it has another one."""
    included = config.get("name")
    if included not in (None, name):
        raise BadRequest(f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})")
    return {**config, "name": name}
