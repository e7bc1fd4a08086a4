"""What happens to a platform, as events: for a terminal, a log, or another process that waits."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec


class Starting(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A service is started for the first time, or waits for those that it needs."""

    service: str
    endpoint: str


class Ready(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A service is ready."""

    service: str
    endpoint: str
    after_s: float
    restarts: int = 0


class Died(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A service has died, and will be started again."""

    service: str
    how: str
    pause_s: float
    tail: tuple[str, ...]
    """The last lines of its log."""
    log: str


class SparkChecked(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Whether Spark can start when it is needed: empty, or the reason why not."""

    missing: str = ""


class AllReady(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Every service is ready for the first time."""

    after_s: float


class Stopping(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The platform is stopping."""

    reason: str


class Stopped(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A service has stopped."""

    service: str
    after_s: float
    was_killed: bool = False


class Failed(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The platform was not started; nothing of it runs any more."""

    text: str
    next_steps: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()


Event = Starting | Ready | Died | SparkChecked | AllReady | Stopping | Stopped | Failed
Emit = Callable[[Event], None]


class EventPipe:
    """Events on their way to another process, one JSON line each; the reader may close the pipe at any time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def __call__(self, event: Event) -> None:
        """Send an event, if the pipe is still open."""
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, msgspec.json.encode(event) + b"\n")
        except OSError:
            self.close()

    def close(self) -> None:
        """Send no more."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


_DECODER: Final = msgspec.json.Decoder(Event)


def decode_event(line: bytes) -> Event:
    """An event that came through a pipe."""
    event: Event = _DECODER.decode(line)
    return event
