"""A thread that looks at the other side again and again, whatever goes wrong."""

import logging
import threading
from collections.abc import Callable

from connect.api.errors import ConnectError
from core_broker.client.errors import ClientError

log = logging.getLogger(__name__)

_PAUSE_AFTER_ERROR_SECONDS = 5.0
_JOIN_SECONDS = 15.0


class Watcher:
    """Calls `look`, which tells after how many seconds it is to be called again; None: never."""

    def __init__(self, name: str, look: Callable[[], float | None]) -> None:
        self._look = look
        self._stopping = threading.Event()
        self._seen = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, however far it is."""
        self._stopping.set()
        self._seen.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def wait_until_seen(self, seconds: float) -> None:
        """Wait for the first look that succeeds, for so long at most."""
        self._seen.wait(seconds)

    @property
    def has_seen(self) -> bool:
        """Whether a look has succeeded."""
        return self._seen.is_set()

    def check(self) -> None:
        """Give up a look that is no longer wanted."""
        if self._stopping.is_set():
            raise ConnectError("told to stop")

    def _run(self) -> None:
        pause: float | None = 0.0
        while pause is not None and not self._stopping.wait(pause):
            try:
                pause = self._look()
                self._seen.set()
            except (ClientError, ConnectError) as error:
                pause = _PAUSE_AFTER_ERROR_SECONDS
                if not self._stopping.is_set():
                    log.warning(
                        "the clusters cannot be looked at", extra={"of": self._thread.name, "error": str(error)}
                    )
