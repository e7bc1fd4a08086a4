"""The services that the tasks of one process share."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.secrets import ConfigSecrets
from connect.settings import ConnectSettings
from connect.stores.offsets import OffsetStore
from connect.stores.statuses import StatusWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskServices:
    """Settings, plugins and the stores."""

    settings: ConnectSettings
    plugins: Plugins
    providers: ConfigProviders
    offsets: OffsetStore
    statuses: StatusWriter
    _own_offsets: dict[str, OffsetStore] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def secrets_in(self, config: Mapping[str, str]) -> dict[str, str]:
        """The secrets in a connector's configuration, each with what is shown instead: for `conceal`."""
        return ConfigSecrets(self.plugins, self.providers).concealing(config)

    def offsets_in(self, topic: str | None) -> OffsetStore:
        """The offsets in a connector's separate topic, or else in the worker's."""
        if topic is None or topic == self.offsets.topic:
            return self.offsets
        with self._lock:
            if topic not in self._own_offsets:
                store = OffsetStore(self.settings, topic)
                store.start()
                self._own_offsets[topic] = store
            return self._own_offsets[topic]

    def close(self) -> None:
        """Close the stores."""
        for store in (*self._own_offsets.values(), self.offsets):
            store.stop()
        self.statuses.close()


def open_services(settings: ConnectSettings) -> TaskServices:
    """Open the stores that tasks need; raises when the cluster refuses that."""
    offsets = OffsetStore(settings)
    offsets.start()
    return TaskServices(
        settings=settings,
        plugins=Plugins.load(),
        providers=ConfigProviders(settings),
        offsets=offsets,
        statuses=StatusWriter(settings),
    )


class LazyServices:
    """The services of this process, opened on the first use."""

    def __init__(
        self, settings: ConnectSettings, *, connect: Callable[[ConnectSettings], TaskServices] = open_services
    ) -> None:
        self.settings = settings
        self._connect = connect
        self._lock = threading.Lock()
        self._services: TaskServices | None = None

    def open(self) -> TaskServices:
        """The services; raises when they cannot be opened."""
        with self._lock:
            if self._services is None:
                self._services = self._connect(self.settings)
            return self._services

    def close(self) -> None:
        """Close them when no task runs any more."""
        with self._lock:
            if self._services is not None:
                self._services.close()
                self._services = None
