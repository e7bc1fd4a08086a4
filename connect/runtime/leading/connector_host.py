"""One connector object: makes, starts and stops it, and has it plan its tasks."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from connect.api.connector import Connector
from connect.api.errors import ConnectError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.plugins import name_of
from connect.runtime.configuration.reach import limits_of
from connect.runtime.leading.services import ParsedConnector
from connect.stores.configs import Config

T = TypeVar("T")
_RECOGNISED_LENGTH: Final = 6
"""Shorter values may be equal by chance."""
_TOPICS: Final = ("topics", "topics.regex")


class ConnectorHost:
    """Holds the object, and is its `ConnectorContext`. The methods run the author's code, which may hang."""

    def __init__(
        self,
        name: str,
        *,
        on_new_tasks: Callable[["ConnectorHost"], None] = lambda _: None,
        on_failure: Callable[["ConnectorHost", Exception], None] = lambda _, __: None,
    ) -> None:
        self._name = name
        self._on_new_tasks = on_new_tasks
        self._on_failure = on_failure
        self._stopping = threading.Event()
        self._started: tuple[Connector, ParsedConnector] | None = None

    def start(self, parse: Callable[[], ParsedConnector]) -> None:
        """Parse the configuration, make the object and start it."""
        parsed = parse()
        with limits_of(parsed.settings).enforced():
            connector = parsed.connector(parsed.connector.config_class.parse(parsed.resolved), self)
            self._started = connector, parsed
            connector.start()
        if self._stopping.is_set():
            # It was given up while it hung, so nothing else stops it.
            connector.stop()

    def task_configs(self) -> Sequence[Config]:
        """The configurations of the tasks, for the config topic."""
        if self._started is None:
            raise ConnectError(f"Connector {self._name} was not started")
        connector, parsed = self._started
        with limits_of(parsed.settings).enforced():
            planned = list(connector.task_configs(parsed.common.tasks_max))
        return stored_task_configs(planned, parsed)

    def stop(self) -> None:
        """Stop the object, and ignore its requests from now on."""
        self._stopping.set()
        started, self._started = self._started, None
        if started is not None:
            started[0].stop()

    def give_up(self) -> None:
        """Ignore the object from now on: its code hangs."""
        self._stopping.set()

    # --- for the connector ---

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._name

    def request_reconfiguration(self) -> None:
        """Have the tasks planned again."""
        if not self._stopping.is_set():
            self._on_new_tasks(self)

    def fail(self, error: Exception) -> None:
        """The connector cannot continue."""
        if not self._stopping.is_set():
            self._on_failure(self, error)

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until the connector is asked to stop; True when it is."""
        return self._stopping.wait(seconds)


def stored_task_configs(given: Sequence[Mapping[str, str]], parsed: ParsedConnector) -> list[Config]:
    """The tasks that a connector planned, with placeholders instead of secrets; ConnectError when they are too many."""
    common, raw = parsed.common, parsed.raw
    if len(given) > common.tasks_max and common.tasks_max_enforce:
        raise ConnectError(
            f"The connector {raw.get('name', '')} has generated {len(given)} tasks, which is greater than "
            f"{common.tasks_max}, the maximum number of tasks it is configured to create. This behaviour should be "
            "considered a bug and is disallowed. If necessary, it can be permitted by reconfiguring the connector "
            "with 'tasks.max.enforce' set to false; however, this option is deprecated."
        )
    # Kafka Connect's name of the task class, so that its workers can run the tasks that ours have planned.
    task_class = getattr(parsed.connector, "task_class", None)
    if task_class is None:
        class_name = name_of(parsed.connector)
    else:
        class_name = getattr(task_class, "java_name", "") or f"{task_class.__module__}.{task_class.__qualname__}"
    added = {"task.class": class_name}
    if issubclass(parsed.connector, SinkConnector):
        added |= {key: raw[key] for key in _TOPICS if raw.get(key)}
    # Secrets must not go to the topic: resolved values are replaced by their placeholders.
    filled = {key: text for key, text in parsed.resolved.items() if raw.get(key) != text}
    by_value = {text: raw[key] for key, text in filled.items() if len(text) >= _RECOGNISED_LENGTH}
    return [
        {key: raw[key] if filled.get(key) == text else by_value.get(text, text) for key, text in config.items()} | added
        for config in given
    ]


def make_connector(name: str, connector_class: type[Connector], config: Mapping[str, str]) -> Connector:
    """A connector object that is never started, for questions only."""
    return connector_class(connector_class.config_class.parse(config), ConnectorHost(name))


def call_within(seconds: float, work: Callable[[], T]) -> T:
    """Run code that may hang; TimeoutError when it does, and its thread is abandoned."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)

    threading.Thread(target=run, name="foreign-code", daemon=True).start()
    return future.result(seconds)
