"""One connector object: made, started, asked for tasks and stopped, whatever its author wrote."""

import threading
from collections.abc import Callable, Mapping, Sequence

from connect.api.connector import Connector
from connect.api.errors import ConnectError


class ConnectorHost:
    """Holds the object, and is what it may ask the worker (`ConnectorContext`).

    Its methods run the author's code, which may hang: call them where that does no harm.
    """

    def __init__(
        self,
        name: str,
        connector_class: type[Connector],
        *,
        on_reconfiguration: Callable[["ConnectorHost"], None],
        on_failure: Callable[["ConnectorHost", Exception], None],
    ) -> None:
        self._name = name
        self._class = connector_class
        self._on_reconfiguration = on_reconfiguration
        self._on_failure = on_failure
        self._stopping = threading.Event()
        self._connector: Connector | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Make the object, with placeholders filled in, and start it."""
        connector = self._class(self._class.config_class.parse(config), self)
        self._connector = connector
        connector.start()
        if self._stopping.is_set():
            # It was given up while it hung; nobody else will stop it.
            connector.stop()

    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """What the tasks are to do."""
        if self._connector is None:
            raise ConnectError(f"Connector {self._name} was not started")
        return list(self._connector.task_configs(tasks_max))

    def stop(self) -> None:
        """Stop the object; it is not listened to any more."""
        self._stopping.set()
        connector, self._connector = self._connector, None
        if connector is not None:
            connector.stop()

    def give_up(self) -> None:
        """Do not listen to the object any more: its code hangs."""
        self._stopping.set()

    # --- what the connector may ask ---

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._name

    def request_reconfiguration(self) -> None:
        """Plan the tasks anew."""
        if not self._stopping.is_set():
            self._on_reconfiguration(self)

    def fail(self, error: Exception) -> None:
        """The connector cannot go on."""
        if not self._stopping.is_set():
            self._on_failure(self, error)

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the connector is told to stop; True when it is."""
        return self._stopping.wait(seconds)


def made_apart(name: str, connector_class: type[Connector], config: Mapping[str, str]) -> Connector:
    """A connector object that is not started: to be asked something."""
    host = ConnectorHost(name, connector_class, on_reconfiguration=lambda _: None, on_failure=lambda _, __: None)
    return connector_class(connector_class.config_class.parse(config), host)
