"""The life cycle of a service process: start, ready line, clean stop on SIGTERM or SIGINT."""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Self, TextIO

log = logging.getLogger(__name__)

_GC_THRESHOLDS: Final = (50_000, 20, 50)
"""Requests create no reference cycles, so collections may be rare; their pauses would show in the latency."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    service: AbstractAsyncContextManager[Mapping[str, str]],
    *,
    name: str,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    waits_for_others: bool = False,
) -> int:
    """Run a service until it is stopped by a signal; returns the exit code of the process.

    Entering the service starts it and yields its endpoints; leaving it stops it cleanly. A stop signal cancels the
    start of a service that waits for others; any other service finishes its start, which is quick, and then stops.
    """
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(serve(service, name=name, waits_for_others=waits_for_others))


async def serve(
    service: AbstractAsyncContextManager[Mapping[str, str]], *, name: str, waits_for_others: bool = False
) -> int:
    """Start the service, announce it, wait for a stop signal, stop it."""
    stop = StopSignal(starting=asyncio.current_task() if waits_for_others else None)
    with stop, _gc_paused():
        try:
            async with service as endpoints:
                stop.mark_started()
                # Everything allocated so far lives as long as the service: exclude it from future collections.
                gc.freeze()
                gc.set_threshold(*_GC_THRESHOLDS)
                gc.enable()
                announce(name, endpoints)
                await stop.wait()
                log.info("stopping", extra={"service": name, "signal": stop.name})
        except asyncio.CancelledError:
            if stop.name is None:
                raise
        log.info("stopped", extra={"service": name})
    return 0


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Nothing allocated during the start becomes garbage; looking for it only takes time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work without an end for as long as the block lasts. If it fails, so does the block."""
    async with unwrap_single_error(), asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()


@asynccontextmanager
async def unwrap_single_error() -> AsyncIterator[None]:
    """Raise the block's error itself: callers would not recognize it in the group that a task group wraps it in."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        (error,) = group.exceptions
        raise error from error.__cause__


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard limit, for services that need many connections or segments."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def announce(name: str, endpoints: Mapping[str, str], *, stream: TextIO | None = None) -> None:
    """Print the one line that tells a person or a script that the service is ready, and its addresses."""
    target = stream or sys.stdout
    with suppress(BrokenPipeError):
        target.write(ready_line(name, endpoints) + "\n")
        target.flush()


def ready_line(name: str, endpoints: Mapping[str, str]) -> str:
    """`caudal broker ready: listeners=PLAINTEXT://localhost:9092 metrics=http://localhost:9404/metrics`."""
    shown = " ".join(f"{kind}={address}" for kind, address in endpoints.items())
    return f"caudal {name} ready: {shown}"


class StopSignal:
    """Waits for the first stop signal; a second one ends the process at once, in case stopping hangs."""

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

    def mark_started(self) -> None:
        """From now on a signal no longer cancels the start."""
        self._starting = None

    async def wait(self) -> None:
        """Return when a stop signal has arrived."""
        await self._received.wait()

    def _handle(self, number: signal.Signals) -> None:
        if self._received.is_set():
            os._exit(128 + number)
        self.name = number.name
        self._received.set()
        if self._starting is not None:
            self._starting.cancel()
