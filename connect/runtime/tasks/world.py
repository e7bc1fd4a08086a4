"""What the tasks of one process share."""

import threading
from dataclasses import dataclass, field

from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.settings import ConnectSettings
from connect.stores.offsets import OffsetStore
from connect.stores.statuses import StatusWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Settings, plugins and the doors to the stores."""

    settings: ConnectSettings
    plugins: Plugins
    providers: ConfigProviders
    offsets: OffsetStore
    statuses: StatusWriter
    _own_offsets: dict[str, OffsetStore] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def offsets_in(self, topic: str | None) -> OffsetStore:
        """The offsets of connectors that use a topic of their own, or the worker's."""
        if topic is None or topic == self.offsets.topic:
            return self.offsets
        with self._lock:
            if topic not in self._own_offsets:
                store = OffsetStore(self.settings, topic)
                store.start()
                self._own_offsets[topic] = store
            return self._own_offsets[topic]

    def close(self) -> None:
        """Leave nothing open."""
        for store in (*self._own_offsets.values(), self.offsets):
            store.stop()
        self.statuses.close()


def open_world(settings: ConnectSettings) -> World:
    """Everything that tasks of this process need, ready."""
    offsets = OffsetStore(settings)
    offsets.start()
    return World(
        settings=settings,
        plugins=Plugins.load(),
        providers=ConfigProviders(settings),
        offsets=offsets,
        statuses=StatusWriter(settings),
    )
