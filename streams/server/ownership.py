"""Which server runs the persistent queries: the member of the group that owns the log's partition.

The group gives it to the member whose id comes first in the alphabet. Ids begin with the time at which a server got
its own, so a server that is added later does not take the queries over.
"""

import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import GroupConsumer
from core_broker.client.settings import ClientSettings, Configuration
from core_broker.service.clock import Clock

log = logging.getLogger(__name__)

_POLL_MS: Final = 100
_PAUSE_SECONDS: Final = 1.0
_LEAVING_MS: Final = 2_000
_SESSION_MS: Final = 10_000
_HEARTBEAT_MS: Final = 1_000
_REBALANCE_SECONDS: Final = 10.0
_ID: Final = re.compile(r"[0-9]{15}-[A-Za-z0-9._-]{1,200}")
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")
_NEEDED: Final[Configuration] = {
    "partition.assignment.strategy": "range",
    "auto.offset.reset": "latest",
    "max.poll.interval.ms": 86_400_000,
    # Reconnect to a cluster that comes back before the session expires.
    "reconnect.backoff.max.ms": 500,
}


def server_id(folder: Path, host: str, clock: Clock) -> str:
    """The id of the server that keeps its files in a folder: the same whenever it is started again."""
    file = folder / "server.id"
    with suppress(FileNotFoundError):
        text = file.read_text().strip()
        if _ID.fullmatch(text):
            return text
    text = f"{clock.now_ms():015d}-{_ODD.sub('_', host)}"
    file.write_text(text)
    return text


class Ownership:
    """Takes part in the group in a thread of its own; a server with the same `instance_id` replaces this one at once.

    `on_change` is called from that thread whenever `is_owner` changes, and must return soon.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        group_id: str,
        topic: str,
        instance_id: str,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.is_owner = False
        self._settings = settings
        self._group_id = group_id
        self._topic = topic
        self._instance_id = instance_id
        self._on_change = on_change
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ownership", daemon=True)

    def start(self) -> None:
        """Take part from now on."""
        self._thread.start()

    def close(self) -> None:
        """Leave the group, so that the others need not wait until the session expires."""
        self._stopping.set()
        if self._thread.ident is None:
            return
        self._thread.join(10)
        try:
            Admin(replace(self._settings, timeout_ms=_LEAVING_MS)).remove_member(self._group_id, self._instance_id)
        except ClientError as error:
            log.warning("this server could not leave its group", extra={"error": str(error)})

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._take_part()
            except ClientError as error:
                extra = {"group": self._group_id, "server": self._instance_id, "error": str(error)}
                log.error("this server cannot be in its group", extra=extra)
                self._note(is_owner=False)
                self._stopping.wait(_PAUSE_SECONDS)
        self._note(is_owner=False)

    def _take_part(self) -> None:
        own: Configuration = {
            "group.instance.id": self._instance_id,
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            **_NEEDED,
        }
        consumer = GroupConsumer(self._settings, group_id=self._group_id, defaults={}, properties=own)
        try:
            consumer.subscribe([self._topic], starts=lambda _: {}, revoked=lambda _: None)
            consumer.pause()
            left_at: float | None = None
            while not self._stopping.is_set():
                consumer.read(1, timeout_ms=_POLL_MS)
                left_at = None if consumer.has_joined else left_at or time.monotonic()
                # A rebalance takes everything away from everyone, and usually gives it back: queries go on meanwhile.
                if left_at is None or time.monotonic() - left_at > _REBALANCE_SECONDS:
                    self._note(is_owner=(self._topic, 0) in consumer.assigned)
        finally:
            consumer.close()

    def _note(self, *, is_owner: bool) -> None:
        if self.is_owner != is_owner:
            self.is_owner = is_owner
            log.info("this server runs the queries" if is_owner else "this server does not run the queries")
            self._on_change()
