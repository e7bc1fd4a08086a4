"""Tasks of Connect in the test's own process, against a real broker: what they do can be scripted and looked at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from connect.converters.table import CONVERTERS, HEADER_CONVERTERS
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.models import State, Target, TaskId, TaskPlan
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import LazyServices, TaskServices
from connect.settings import ConnectSettings
from connect.stores.offsets import OffsetStore
from connect.stores.statuses import StatusStore, StatusWriter
from connect.transforms.table import PREDICATES, TRANSFORMS
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.scripted_connectors import ScriptedConverter, ScriptedSink, ScriptedSource, ScriptedTransform

_TEXT = "org.apache.kafka.connect.storage.StringConverter"


class TaskWorld:
    """A world of its own for each test, with stores named after it."""

    def __init__(self, broker: BrokerProcess, name: str, settings: Mapping[str, str]) -> None:
        self.broker = broker
        self.settings = ConnectSettings.parse(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": name,
                "config.storage.topic": f"{name}-configs",
                "offset.storage.topic": f"{name}-offsets",
                "status.storage.topic": f"{name}-status",
                "redrive.storage.topic": f"{name}-redriven",
                "offset.storage.partitions": "2",
                "status.storage.partitions": "1",
                "offset.flush.interval.ms": "200",
                **settings,
            }
        )
        self.plugins = Plugins.of(
            connectors=[ScriptedSink, ScriptedSource],
            converters=[*CONVERTERS, ScriptedConverter],
            header_converters=HEADER_CONVERTERS,
            transforms=[*TRANSFORMS, ScriptedTransform],
            predicates=PREDICATES,
        )
        self.statuses = StatusStore(self.settings)
        offsets = OffsetStore(self.settings)
        self.statuses.start()
        offsets.start()
        self.services = TaskServices(
            settings=self.settings,
            plugins=self.plugins,
            providers=ConfigProviders(self.settings),
            offsets=offsets,
            statuses=StatusWriter(self.settings),
        )
        self._tasks: list[RunningTask] = []
        self._generation = 0

    def start(self, name: str, config: Mapping[str, str], *, task: int = 0) -> RunningTask:
        """Start a task; values are text unless the configuration says otherwise."""
        self._generation += 1
        given = {"name": name, "key.converter": _TEXT, "value.converter": _TEXT, **config}
        plan = TaskPlan(
            id=TaskId(name, task),
            connector_config=given,
            task_config=given,
            target=Target.STARTED,
            generation=self._generation,
            worker_id="test:8083",
        )
        running = RunningTask(plan, LazyServices(self.settings, connect=lambda _: self.services))
        self._tasks.append(running)
        running.start()
        return running

    def wait_for(self, task: RunningTask, state: State) -> str:
        """Wait until a task is in a state; gives its trace."""
        eventually(lambda: task.state, lambda found: found is state)
        status = eventually(
            lambda: self.statuses.task(task.plan.id),
            lambda found: found is not None and found.state is state and found.generation == task.plan.generation,
        )
        assert status is not None
        return status.trace or ""

    def stop(self, task: RunningTask) -> None:
        """Stop a task in good order."""
        task.stop()
        assert task.join(60), "the task does not stop"

    def close(self) -> None:
        for task in self._tasks:
            task.stop()
        for task in self._tasks:
            task.join(60)
        self.services.close()
        self.statuses.stop()


@contextmanager
def task_world(broker: BrokerProcess, name: str, settings: Mapping[str, str] | None = None) -> Iterator[TaskWorld]:
    """A world for as long as the block lasts."""
    world = TaskWorld(broker, name, settings or {})
    try:
        yield world
    finally:
        world.close()
