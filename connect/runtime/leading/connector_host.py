"""One connector object: made, started, asked for tasks and stopped, whatever its author wrote."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from connect.api.connector import Connector
from connect.api.errors import ConnectError
from connect.runtime.leading.services import ParsedConnector
from connect.runtime.leading.task_configs import stored_task_configs
from connect.stores.configs import Config

T = TypeVar("T")


class ConnectorHost:
    """Holds the object, and is its `ConnectorContext`. The methods run its author's code, which may hang."""

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
        """Read the configuration, make the object and start it."""
        parsed = parse()
        connector = parsed.connector(parsed.connector.config_class.parse(parsed.resolved), self)
        self._started = connector, parsed
        connector.start()
        if self._stopping.is_set():
            # It was given up while it hung: nothing else stops it.
            connector.stop()

    def task_configs(self) -> Sequence[Config]:
        """What the tasks are to do, as it is stored."""
        if self._started is None:
            raise ConnectError(f"Connector {self._name} was not started")
        connector, parsed = self._started
        return stored_task_configs(list(connector.task_configs(parsed.settled.tasks_max)), parsed)

    def stop(self) -> None:
        """Stop the object; its requests are ignored from now on."""
        self._stopping.set()
        started, self._started = self._started, None
        if started is not None:
            started[0].stop()

    def give_up(self) -> None:
        """Ignore the object from now on: its code hangs."""
        self._stopping.set()

    # --- what the connector may ask ---

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._name

    def request_reconfiguration(self) -> None:
        """Plan the tasks again."""
        if not self._stopping.is_set():
            self._on_new_tasks(self)

    def fail(self, error: Exception) -> None:
        """The connector cannot go on."""
        if not self._stopping.is_set():
            self._on_failure(self, error)

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the connector is to stop; True when it is."""
        return self._stopping.wait(seconds)


def make_connector(name: str, connector_class: type[Connector], config: Mapping[str, str]) -> Connector:
    """A connector object that is never started: for its answers only."""
    return connector_class(connector_class.config_class.parse(config), ConnectorHost(name))


def call_within(seconds: float, work: Callable[[], T]) -> T:
    """Run code that may hang; TimeoutError when it does, and its thread is left to itself."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)

    threading.Thread(target=run, name="foreign-code", daemon=True).start()
    return future.result(seconds)
