"""What the three connectors have in common: a thread that watches the clusters, and tasks planned by what it finds."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.errors import ConnectError
from connect.api.source import SourceConnector, SourceOffset, SourcePartition
from connectors.mirror.clusters import SIDES, admin_of
from connectors.mirror.config import MirrorConfig, Side
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS: Final = 10.0
_PAUSE_AFTER_ERROR_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 15.0
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Watcher:
    """Calls `look`, which returns after how many seconds it is to be called again; None: never."""

    def __init__(self, name: str, look: Callable[[], float | None]) -> None:
        self._look = look
        self._stopping = threading.Event()
        self._seen = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, in the middle of a look if need be."""
        self._stopping.set()
        self._seen.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def wait_until_seen(self) -> None:
        """Wait for the first look that succeeds, but not for ever."""
        self._seen.wait(_FIRST_LOOK_SECONDS)

    @property
    def has_seen(self) -> bool:
        """Whether a look has succeeded."""
        return self._seen.is_set()

    def check(self) -> None:
        """Interrupt a look after `stop`, by raising."""
        if self._stopping.is_set():
            raise ConnectError("the connector is stopping")

    def _run(self) -> None:
        pause: float | None = 0.0
        while pause is not None and not self._stopping.wait(pause):
            try:
                pause = self._look()
                self._seen.set()
            except (ClientError, ConnectError) as error:
                pause = _PAUSE_AFTER_ERROR_SECONDS
                if not self._stopping.is_set():
                    extra = {"watcher": self._thread.name, "error": str(error)}
                    log.warning("a look at the clusters failed", extra=extra)


class MirrorConnector(SourceConnector):
    """Watches the clusters; tasks get shares of the items (partitions, groups) that were found last."""

    watched: ClassVar[str]
    """What the watcher looks for, as part of the name of its thread."""
    sides: ClassVar[Sequence[Side]] = SIDES
    """The clusters that it needs an admin client for."""
    partition_texts: ClassVar[tuple[str, ...]]
    """Keys of text in the source partitions of its offsets."""
    has_partition_number: ClassVar[bool] = True
    config: MirrorConfig

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        super().__init__(config, context)
        self._items: Sequence[Any] = []
        self._planned: Sequence[Any] | None = None
        self._planning = threading.Lock()
        self._admins: dict[Side, Admin] = {}
        self._watcher = Watcher(f"{self.watched} of {context.name}", self._look)

    @classmethod
    @override
    def advise(cls, config: Config) -> Iterable[Problem]:
        """Warn about converters that change bytes."""
        for key in ("key.converter", "value.converter", "header.converter"):
            name = config.given.get(key, "").strip()
            if name.rpartition(".")[2] != "ByteArrayConverter":
                reason = f"is {name}" if name else "is not set, so that the worker's is used"
                yield Problem(key, f"{key} {reason}: only {_BYTES} copies bytes unchanged")

    @property
    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self.config.enabled

    @override
    def start(self) -> None:
        if self.is_enabled:
            for side in self.sides:
                self._admins[side] = admin_of(self.config, side, watch=self._watcher.check)
            self._watcher.start()

    @override
    def stop(self) -> None:
        self._watcher.stop()
        self._admins = {}

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Refuse offsets that make no sense; existing ones may always be removed."""
        for partition, offset in offsets:
            if offset is None:
                continue
            for key in self.partition_texts:
                if not isinstance(partition.get(key), str):
                    raise ConnectError(f"Source partition {dict(partition)} must have a text for key '{key}'")
            if self.has_partition_number and not _is_count(partition.get("partition")):
                raise ConnectError(f"Source partition {dict(partition)} must have a number, 0 or more, for 'partition'")
            if not _is_count(offset.get("offset")):
                raise ConnectError(f"Source offset {dict(offset)} must have a number, 0 or more, for key 'offset'")
        return False

    def _look(self) -> float | None:
        """See what there is; returns after how many seconds to look again, None for never."""
        raise NotImplementedError

    def _plan(self, items: Sequence[Any]) -> None:
        """Plan the tasks again if these items are not those that they were planned for."""
        with self._planning:
            self._items = items
            is_changed = self._planned is not None and self._planned != items
        if is_changed:
            extra = {"connector": self.context.name, self.watched: len(items)}
            log.info("the work of the tasks has changed", extra=extra)
            self.context.request_reconfiguration()

    def _task_configs(self, key: str, text: Callable[[Sequence[Any]], str], tasks_max: int) -> list[Mapping[str, str]]:
        """A configuration for each task, with its share of the items as a text under a key."""
        if not self.is_enabled:
            return []
        self._watcher.wait_until_seen()
        with self._planning:
            # Without items there is nothing to do yet: when there are some, the watcher asks for another plan.
            items = self._planned = self._items
        count = min(len(items), tasks_max)
        # Neighbours go to different tasks, so that the partitions of a busy topic are spread.
        return [{**self.config.given, key: text(items[number::count])} for number in range(count)]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
