"""The life of a service process: ready line, run, clean stop on SIGTERM or SIGINT."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import Final, Self, TextIO

log = logging.getLogger(__name__)

_GC_THRESHOLDS: Final = (50_000, 20, 50)
"""Requests leave no cycles behind, so the collector may come seldom; its pauses would be seen in the latency."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    service: AbstractAsyncContextManager[Mapping[str, str]],
    *,
    name: str,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    waits_for_others: bool = False,
) -> int:
    """Run a service until it is told to stop; the exit code is the process's.

    Entering the service starts it and gives its endpoints; leaving it stops it cleanly. A service that waits for others
    while it starts is cancelled by a stop signal; any other one is ready in a moment, and then stopped.
    """
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(serve(service, name=name, waits_for_others=waits_for_others))


async def serve(
    service: AbstractAsyncContextManager[Mapping[str, str]], *, name: str, waits_for_others: bool = False
) -> int:
    """Start the service, say that it is ready, wait for a stop signal, stop it."""
    stop = StopSignal(starting=asyncio.current_task() if waits_for_others else None)
    with stop, _collector_at_rest():
        try:
            async with service as endpoints:
                stop.started()
                _wake_collector()
                announce(name, endpoints)
                await stop.wait()
                log.info("stopping", extra={"service": name, "signal": stop.name})
        except asyncio.CancelledError:
            if stop.name is None:
                raise
        log.info("stopped", extra={"service": name})
    return 0


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Nothing that is made while starting can be thrown away again; looking for it only takes time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _wake_collector() -> None:
    """What lives now lives as long as the service: keep the garbage collector from looking at it again and again."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()


def announce(name: str, endpoints: Mapping[str, str], *, stream: TextIO | None = None) -> None:
    """Print the one line that tells a person, or a script, that the service is ready and where."""
    target = stream or sys.stdout
    with suppress(BrokenPipeError):
        target.write(ready_line(name, endpoints) + "\n")
        target.flush()


def ready_line(name: str, endpoints: Mapping[str, str]) -> str:
    """`caudal broker ready: listeners=PLAINTEXT://localhost:9092 metrics=http://localhost:9404/metrics`."""
    shown = " ".join(f"{kind}={address}" for kind, address in endpoints.items())
    return f"caudal {name} ready: {shown}"


class StopSignal:
    """Waits for the first stop signal; the second one ends the process at once, in case stopping hangs."""

    def __init__(self, *, starting: "asyncio.Task[object] | None" = None) -> None:
        self._received = asyncio.Event()
        self._starting = starting
        self.name: str | None = None

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._handle, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)

    def started(self) -> None:
        """From now on a signal is waited for, and cancels nothing."""
        self._starting = None

    async def wait(self) -> None:
        """Return when a stop signal has come."""
        await self._received.wait()

    def _handle(self, number: signal.Signals) -> None:
        if self._received.is_set():
            os._exit(128 + number)
        self.name = number.name
        self._received.set()
        if self._starting is not None:
            self._starting.cancel()
