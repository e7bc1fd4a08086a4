"""A worker that keeps connectors in memory and runs nothing, for tests of the REST API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect.api.sink import SinkConnector
from connect.runtime import errors
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.validation import validate
from connect.runtime.leading.supervisor import with_name
from connect.runtime.models import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    State,
    Target,
    TaskId,
    TaskInfo,
    TaskState,
)
from connect.runtime.redrive.pages import (
    LetterError,
    LetterPage,
    LetterPlace,
    LetterView,
    Redriven,
    Selection,
)
from connect.settings import ConnectSettings
from core_broker.web_access.rules import Rule

WORKER = "memory:8083"
_SHOWN = {Target.STARTED: State.RUNNING, Target.PAUSED: State.PAUSED, Target.STOPPED: State.STOPPED}


class _Configs(dict[str, dict[str, str]]):
    """The configurations, and access rules, of which there are none."""

    rules_version = 0

    def rules(self) -> list[Rule]:
        return []


class MemorySupervisor:
    """Implements what the REST API asks of a worker."""

    def __init__(self, settings: ConnectSettings, plugins: Plugins, providers: ConfigProviders) -> None:
        self._settings, self._plugins, self._providers = settings, plugins, providers
        self.configs = _Configs()
        self.targets: dict[str, Target] = {}
        self.without_status: set[str] = set()
        self.noted: dict[str, list[dict[str, Any]]] = {}
        self.used_topics: dict[str, list[str]] = {}
        self.levels: list[tuple[str, str]] = []
        self.scripted_health = ("healthy", "")
        self.restarted: list[str] = []
        self.before: Callable[[], None] = lambda: None
        """Called before every change: raises NotLeader, for instance."""

    def connectors(self) -> list[str]:
        return list(self.configs)

    def info(self, name: str) -> ConnectorInfo:
        config = self.config(name)
        is_sink = issubclass(self._plugins.connectors.find(config["connector.class"]), SinkConnector)
        ids = [task.id for task in self.tasks(name)]
        return ConnectorInfo(name=name, config=config, tasks=ids, type="sink" if is_sink else "source")

    def config(self, name: str) -> dict[str, str]:
        if name not in self.configs:
            raise errors.connector_not_found(name)
        return self.configs[name]

    def status(self, name: str) -> ConnectorStatus:
        if name not in self.configs or name in self.without_status:
            raise errors.no_connector_status(name)
        state = ConnectorState(state=_SHOWN[self.targets[name]], worker_id=WORKER)
        tasks = [self.task_status(name, task.id.task) for task in self.tasks(name)]
        return ConnectorStatus(name=name, connector=state, tasks=tasks, type=self.info(name).type)

    def tasks(self, name: str) -> list[TaskInfo]:
        config = self.config(name)
        count = 0 if self.targets[name] is Target.STOPPED else int(config.get("tasks.max", "1"))
        return [TaskInfo(id=TaskId(name, number), config=config) for number in range(count)]

    def task_status(self, name: str, task: int) -> TaskState:
        if name not in self.configs or task >= len(self.tasks(name)):
            raise errors.no_task_status(name, task)
        failed = self.configs[name].get("file") == "failing"
        state = State.FAILED if failed else _SHOWN[self.targets[name]]
        return TaskState(id=task, state=state, worker_id=WORKER, trace="Traceback: it failed" if failed else None)

    def create(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: Target = Target.STARTED,
        initial_offsets: Sequence[Mapping[str, Any]] | None = None,
    ) -> ConnectorInfo:
        self.before()
        given = self._checked(with_name(config, name))
        if name in self.configs:
            raise errors.connector_exists(name)
        self.configs[name], self.targets[name] = given, initial_state
        if initial_offsets is not None:
            self.noted[name] = [dict(offset) for offset in initial_offsets]
        return self.info(name)

    def put(
        self, name: str, config: Mapping[str, str | None], *, check: Callable[[bool], None] = lambda _: None
    ) -> tuple[bool, ConnectorInfo]:
        self.before()
        given = self._checked(with_name(config, name))
        is_new = name not in self.configs
        check(is_new)
        self.configs[name] = given
        self.targets.setdefault(name, Target.STARTED)
        return is_new, self.info(name)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        merged = {**self.config(name), **changes}
        return self.put(name, {key: value for key, value in merged.items() if value is not None})[1]

    def delete(self, name: str) -> None:
        self.before()
        self.config(name)
        del self.configs[name]

    def set_target(self, name: str, target: Target) -> None:
        if name not in self.targets:
            raise errors.unknown_connector(name)
        self.targets[name] = target

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus | None:
        self.before()
        if name not in self.configs:
            raise errors.unknown_connector_to_restart(name)
        if not (include_tasks or only_failed):
            self.restarted.append(name)
            return None
        self.restarted.append(f"{name} include_tasks={include_tasks} only_failed={only_failed}")
        return self.status(name)

    def restart_task(self, name: str, task: int) -> None:
        self.before()
        if name not in self.configs:
            raise errors.unknown_connector_to_restart(name)
        if task >= len(self.tasks(name)):
            raise errors.unknown_task(name, task)
        self.restarted.append(f"{name}-{task}")

    def topics(self, name: str) -> list[str]:
        if not self._settings.topic_tracking_enable:
            raise errors.Forbidden("Topic tracking is disabled.")
        return self.used_topics.get(name, [])

    def reset_topics(self, name: str) -> None:
        self.topics(name)
        if not self._settings.topic_tracking_allow_reset:
            raise errors.Forbidden("Topic tracking reset is disabled.")
        self.used_topics.pop(name, None)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        self.config(name)
        return self.noted.get(name, [])

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        self._require_stopped(name)
        self.noted[name] = [dict(offset) for offset in offsets if offset["offset"] is not None]
        return "The offsets for this connector have been altered successfully"

    def reset_offsets(self, name: str) -> str:
        self._require_stopped(name)
        self.noted.pop(name, None)
        return "The offsets for this connector have been reset successfully"

    def cluster_id(self) -> str:
        return "a-cluster"

    def health(self) -> tuple[str, str]:
        return self.scripted_health

    def set_logger_level(self, namespace: str, level: str) -> None:
        self.levels.append((namespace, level))

    def _require_stopped(self, name: str) -> None:
        self.config(name)
        if self.targets[name] is not Target.STOPPED:
            raise errors.BadRequest("Connectors must be in the STOPPED state before their offsets can be modified.")

    def _checked(self, config: Mapping[str, str | None]) -> dict[str, str]:
        validate(config, plugins=self._plugins, providers=self._providers, settings=self._settings).require()
        return {key: value for key, value in config.items() if value is not None}


class MemoryDeadLetters:
    """Dead letters that notes what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def page(
        self,
        name: str,
        *,
        limit: int,
        partition: int | None = None,
        offset: int | None = None,
        stage: str | None = None,
        exception: str | None = None,
    ) -> LetterPage:
        self.asked.append((name, limit, partition, offset, stage, exception))
        if name == "nothing":
            raise errors.connector_not_found(name)
        letter = LetterView(
            partition=0,
            offset=5,
            timestamp=1000,
            key=None,
            value="{",
            headers=[("a", "b")],
            error=LetterError(stage="VALUE_CONVERTER", class_name="x.Json", exception="x.DataException", task=0),
            redriven=False,
            redrive_count=0,
        )
        return LetterPage(topic="dead", records=[letter])

    def redrive(self, name: str, selection: Selection, *, max_records: int, dry_run: bool) -> Redriven:
        self.asked.append((name, selection, max_records, dry_run))
        return Redriven(redriven=1, skipped=0, records=[LetterPlace(partition=0, offset=5)])
