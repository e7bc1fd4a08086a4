"""A Connect worker without tasks of its own: an executor that records its calls, and small connectors."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from confluent_kafka import Consumer as ForeignConsumer
from confluent_kafka import TopicPartition
from typing_extensions import override

from connect.api.config import INT, STRING, Config, option
from connect.api.errors import ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.api.sink import SinkConnector, SinkTask
from connect.api.source import SourceConnector, SourceTask
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.counters import TaskCounters
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.models import State, Target, TaskId, TaskPlan
from connect.settings import ConnectSettings
from connect.stores.statuses import StatusWriter
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess


class RecordingExecutor:
    """Starts nothing, remembers everything, and says of each task that it runs."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.on_lost: Callable[[TaskId, str], None] = lambda _, __: None
        self.running: dict[TaskId, TaskPlan] = {}
        self.started: list[TaskPlan] = []
        self.stopped: list[TaskId] = []
        self.refusals = 0
        """How often in a row nobody will know whether tasks have stopped."""
        self._statuses = StatusWriter(settings)
        self._lock = threading.Lock()

    def start(self, plan: TaskPlan) -> None:
        with self._lock:
            self.started.append(plan)
            self.running[plan.id] = plan
        self._tell(plan, State.PAUSED if plan.target is Target.PAUSED else State.RUNNING)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        plan = self.running.get(task_id)
        if plan is not None:
            self._tell(plan, State.PAUSED if target is Target.PAUSED else State.RUNNING)

    def stop(self, ids: Collection[TaskId]) -> None:
        with self._lock:
            if ids and self.refusals:
                self.refusals -= 1
                raise RetriableError("nobody knows whether these tasks have stopped")
            ended = [plan for task_id in list(ids) if (plan := self.running.pop(task_id, None)) is not None]
            self.stopped += [plan.id for plan in ended]
        for plan in ended:
            self._tell(plan, State.UNASSIGNED)

    def running_tasks(self) -> set[TaskId]:
        with self._lock:
            return set(self.running)

    def counters(self) -> dict[TaskId, TaskCounters]:
        return {}

    def close(self) -> None:
        self.stop(self.running_tasks())
        self._statuses.close()

    def fail(self, task_id: TaskId, trace: str = "it broke") -> None:
        """The task says that it failed, and ends."""
        with self._lock:
            plan = self.running.pop(task_id)
        self._tell(plan, State.FAILED, trace)

    def lose(self, task_id: TaskId) -> None:
        """The task's process dies."""
        with self._lock:
            self.running.pop(task_id)
        self.on_lost(task_id, "killed by signal 9")

    def starts_of(self, task_id: TaskId) -> int:
        """How often a task was started."""
        with self._lock:
            return sum(plan.id == task_id for plan in self.started)

    def _tell(self, plan: TaskPlan, state: State, trace: str | None = None) -> None:
        self._statuses.put_task(plan.id, state, worker_id=plan.worker_id, generation=plan.generation, trace=trace)


class LastingRecordingExecutor(RecordingExecutor):
    """One whose tasks outlive the worker that leads."""

    def take_over(self) -> None:
        """Nothing to do: the leader starts every wanted task again."""

    @override
    def close(self) -> None:
        self._statuses.close()


class TableConfig(Config):
    """Options of a source of tables."""

    tables: str = option(STRING, default="a")
    """Names of tables, separated by spaces: each becomes a task."""
    password: str = option(STRING, default="")
    """What nobody may see."""
    hang: str = option(STRING, default="")
    """The method that never returns."""
    broken: str = option(STRING, default="")
    """The method that fails."""
    version: int = option(INT, default=0)
    """Anything."""


class NoSourceTask(SourceTask):
    """Reads nothing."""

    @override
    def poll(self) -> Sequence[SourceRecord]:
        return []


class TableSource(SourceConnector):
    """A source with a task for each table."""

    config_class = TableConfig
    task_class = NoSourceTask
    is_exactly_once = True
    tasks_limit = None
    config: TableConfig
    living: ClassVar[dict[str, "TableSource"]] = {}
    """The objects that were started and not stopped, by the name of the connector."""
    starts: ClassVar[list[str]] = []

    @override
    def start(self) -> None:
        self._act("start")
        self.starts.append(self.context.name)
        self.living[self.context.name] = self
        self.more: list[str] = []

    @override
    def task_configs(self, tasks_max: int) -> list[Mapping[str, str]]:
        self._act("task_configs")
        tables = [*self.config.tables.split(), *self.more]
        return [{"table": table, "secret": self.config.password} for table in tables]

    @override
    def stop(self) -> None:
        self._act("stop")
        if self.living.get(self.context.name) is self:
            del self.living[self.context.name]

    @override
    def alter_offsets(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> bool:
        if any("table" not in partition for partition, _ in offsets):
            raise ConnectError("a partition must name its table")
        return self.config.version == 1

    def _act(self, method: str) -> None:
        if self.config.hang == method:
            threading.Event().wait()
        if self.config.broken == method:
            raise ConnectError(f"{method} does not work")


class NoSinkTask(SinkTask):
    """Takes nothing."""

    @override
    def put(self, records: Sequence[Any]) -> None:
        return


class CountingSink(SinkConnector):
    """A sink with as many tasks as it may have."""

    config_class = TableConfig
    task_class = NoSinkTask


def worker_settings(broker: BrokerProcess, name: str, **changes: object) -> ConnectSettings:
    """Settings of workers that share nothing with those of other tests."""
    settings = ConnectSettings(
        bootstrap_servers=(broker.bootstrap,),
        group_id=name,
        config_storage_topic=f"{name}-configs",
        offset_storage_topic=f"{name}-offsets",
        offset_storage_partitions=2,
        status_storage_topic=f"{name}-status",
        status_storage_partitions=2,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        task_shutdown_graceful_timeout_ms=1_000,
    )
    return settings.replace(**changes)


class Worker:
    """A supervisor and its executor."""

    def __init__(
        self,
        settings: ConnectSettings,
        worker_id: str = "worker:1",
        *,
        executor: type[RecordingExecutor] = RecordingExecutor,
    ) -> None:
        self.settings = settings
        self.executor = executor(settings)
        self.supervisor = Supervisor(
            settings,
            plugins=Plugins.of(connectors=[TableSource, CountingSink]),
            providers=ConfigProviders(settings),
            executor=self.executor,
            worker_id=worker_id,
            url=f"http://{worker_id}/",
        )

    def start(self) -> "Worker":
        """Start, and do not wait for the lead."""
        self.supervisor.start()
        return self

    def leading(self) -> "Worker":
        """Start, and wait for the lead."""
        self.start()
        eventually(lambda: self.supervisor.is_leader)
        return self

    def states(self, name: str) -> tuple[State, list[State]]:
        """The states of a connector and its tasks."""
        status = self.supervisor.status(name)
        return status.connector.state, [task.state for task in status.tasks]

    def await_states(self, name: str, connector: State, *tasks: State) -> None:
        """Wait until a connector and its tasks fare like that."""
        eventually(lambda: self.states(name), lambda found: found == (connector, list(tasks)), timeout_s=60)


@contextmanager
def running_worker(
    settings: ConnectSettings, worker_id: str = "worker:1", *, executor: type[RecordingExecutor] = RecordingExecutor
) -> Iterator[Worker]:
    """A worker that leads."""
    worker = Worker(settings, worker_id, executor=executor)
    try:
        yield worker.leading()
    finally:
        worker.supervisor.close()


def table_source(**config: str) -> dict[str, str]:
    """The configuration of a source of tables."""
    return {"connector.class": "TableSource", "tasks.max": "4", **config}


def consume(broker: BrokerProcess, topic: str) -> list[tuple[bytes, bytes | None]]:
    """Everything in a topic, as a foreign client reads it."""
    consumer = ForeignConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "look",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: list[tuple[int, bytes, bytes | None]] = []
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append((message.timestamp()[1], message.key() or b"", message.value()))
    consumer.close()
    return [(key, value) for _, key, value in sorted(found, key=lambda item: item[0])]
