"""Runs the task of a sink whose records another engine carries: the task drives the engine, the worker the task."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from connect.api.engine import EngineContext, EngineSinkConnector, EngineTask
from connect.api.errors import ConnectError
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.tasks.engine_facts import SinkFacts
from connect.runtime.tasks.steps import steps_of
from connect.runtime.tasks.work import OUTAGES, Ground, Work

log = logging.getLogger(__name__)

_REST_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 1.0


class EngineWork(Work):
    """The work of one such task."""

    def __init__(self, ground: Ground) -> None:
        assert issubclass(ground.connector, EngineSinkConnector)
        self._ground = ground
        self._is_resting = False
        self._task: EngineTask = ground.connector.task_class(ground.task_config, TaskEngineContext(ground))

    @override
    def start(self) -> None:
        if self._ground.dead_letters is not None:
            self._ground.dead_letters.ensure_topic()
        self._task.start()

    @override
    def turn(self) -> None:
        if self._is_resting:
            self._task.resume()
            self._is_resting = False
        self._task.turn()

    @override
    def rest(self) -> None:
        pause = _REST_SECONDS
        if not self._is_resting:
            try:
                self._task.rest()
                self._is_resting = True
            except OUTAGES as error:
                extra = {"task": str(self._ground.plan.id), "error": str(error)}
                log.warning("an engine could not be paused yet", extra=extra)
                pause = _RETRY_SECONDS
        self._ground.stopping.wait(pause)

    @override
    def finish(self) -> None:
        """The engine commits on its own, at the latest when it is stopped."""

    @override
    def close(self) -> None:
        try:
            self._task.stop()
        finally:
            self._ground.close()


class TaskEngineContext(SinkFacts, EngineContext):
    """The context of one task."""

    def __init__(self, ground: Ground) -> None:
        assert isinstance(ground.config, SinkConnectorConfig)
        super().__init__(ground.plan.id, ground.config, ground.world.settings)
        self._ground = ground
        self._seen_topics: set[str] = set()

    @property
    @override
    def task(self) -> int:
        return self._ground.plan.id.task

    @property
    @override
    def run(self) -> tuple[int, int]:
        return self._ground.plan.generation, self._ground.plan.epoch

    @property
    @override
    def steps(self) -> str:
        world, plan = self._ground.world, self._ground.plan
        secrets = world.providers.secrets(plan.connector_config)
        return steps_of(plan.id, world.settings, resolved=dict(self._config.given), secrets=secrets).text()

    @property
    @override
    def dead_letter_topic(self) -> str | None:
        return None if self._ground.dead_letters is None else self._ground.dead_letters.topic

    @override
    def ensure_dead_letter_topic(self) -> None:
        if self._ground.dead_letters is not None:
            self._ground.dead_letters.ensure_topic()

    @property
    @override
    def is_stopping(self) -> bool:
        return self._ground.stopping.is_asked

    @property
    @override
    def is_cancelled(self) -> bool:
        return self._ground.stopping.is_cancelled

    @override
    def count(self, changes: Mapping[str, float]) -> None:
        try:
            self._ground.counters.add(changes)
        except KeyError as error:
            raise ConnectError(f"There is no counter {error.args[0]}") from None

    @override
    def used(self, topics: Iterable[str]) -> None:
        if not self._ground.world.settings.topic_tracking_enable:
            return
        for topic in set(topics) - self._seen_topics:
            self._seen_topics.add(topic)
            self._ground.world.statuses.put_topic(topic, self._ground.plan.id)

    @override
    def wait(self, seconds: float) -> bool:
        return self._ground.stopping.wait(seconds)
