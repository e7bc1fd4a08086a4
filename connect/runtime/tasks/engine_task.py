"""Runs the task of a sink whose records another engine moves: the task controls the engine, the worker the task."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from connect.api.engine import EngineContext, EngineSinkConnector, EngineTask
from connect.api.errors import ConnectError
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.tasks.engine_facts import SinkFacts
from connect.runtime.tasks.setup import OUTAGES, TaskSetup, Work
from connect.runtime.tasks.steps import steps_of

log = logging.getLogger(__name__)

_REST_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 1.0


class EngineAway(Exception):
    """The engine is unreachable; the task waits for it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class EngineWork(Work):
    """The work of one engine task."""

    def __init__(self, setup: TaskSetup) -> None:
        assert issubclass(setup.connector, EngineSinkConnector)
        self._setup = setup
        self._is_resting = False
        self._task: EngineTask = setup.connector.task_class(setup.task_config, TaskEngineContext(setup))

    @override
    def start(self) -> None:
        if self._setup.dead_letters is not None:
            self._setup.dead_letters.ensure_topic()
        self._task.start()

    @override
    def turn(self) -> None:
        try:
            if self._is_resting:
                self._task.resume()
                self._is_resting = False
            self._task.turn()
        except OUTAGES as error:
            raise EngineAway(error) from error

    @override
    def rest(self) -> None:
        pause = _REST_SECONDS
        if not self._is_resting:
            try:
                self._task.rest()
                self._is_resting = True
            except OUTAGES as error:
                extra = {"task": str(self._setup.plan.id), "error": str(error)}
                log.warning("the engine could not be paused yet", extra=extra)
                pause = _RETRY_SECONDS
        self._setup.stopping.wait(pause)

    @override
    def finish(self) -> None:
        """The engine commits by itself, at the latest when it is stopped."""

    @override
    def close(self) -> None:
        try:
            self._task.stop()
        finally:
            self._setup.close()


class TaskEngineContext(SinkFacts, EngineContext):
    """The context of one task."""

    def __init__(self, setup: TaskSetup) -> None:
        assert isinstance(setup.config, SinkConnectorConfig)
        super().__init__(setup.plan.id, setup.config, setup.services.settings)
        self._setup = setup

    @property
    @override
    def task(self) -> int:
        return self._setup.plan.id.task

    @property
    @override
    def run(self) -> tuple[int, int]:
        return self._setup.plan.generation, self._setup.plan.epoch

    @property
    @override
    def steps(self) -> str:
        services, plan = self._setup.services, self._setup.plan
        # Nothing there uses the overrides for Kafka clients, so their secrets stay here.
        own = {key: text for key, text in plan.connector_config.items() if ".override." not in key}
        secrets = services.secrets_in(own)
        return steps_of(plan.id, services.settings, resolved=dict(self._config.given), secrets=secrets).text()

    @property
    @override
    def dead_letter_topic(self) -> str | None:
        return None if self._setup.dead_letters is None else self._setup.dead_letters.topic

    @override
    def ensure_dead_letter_topic(self) -> None:
        if self._setup.dead_letters is not None:
            self._setup.dead_letters.ensure_topic()

    @property
    @override
    def is_stopping(self) -> bool:
        return self._setup.stopping.is_asked

    @property
    @override
    def is_cancelled(self) -> bool:
        return self._setup.stopping.is_cancelled

    @override
    def count(self, changes: Mapping[str, float]) -> None:
        try:
            self._setup.counters.add(changes)
        except KeyError as error:
            raise ConnectError(f"Unknown counter {error.args[0]}") from None

    @override
    def used(self, topics: Iterable[str]) -> None:
        self._setup.track_topics(topics)

    @override
    def wait(self, seconds: float) -> bool:
        return self._setup.stopping.wait(seconds)
