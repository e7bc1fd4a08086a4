"""Calls to the schema registry from the event loop: on threads, with a time-out, and not at all while it is down."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from core_broker.service.clock import Clock, SystemClock
from rest_proxy import errors
from rest_proxy.errors import ProxyError
from schema_registry.client.errors import ClientError, RegistryUnreachable
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.errors import SerdeError

T = TypeVar("T")
_THREADS = 4
_DEADLINE_SECONDS = 2.0
"""How long a request waits for the registry. A response that comes later is cached for the next request."""
_DOWN_SECONDS = 1.0
"""How long requests fail at once after the registry did not answer: waiting for time-outs, they would pile up."""


def registry_threads() -> ThreadPoolExecutor:
    """Threads for calls to a registry."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="registry")


class RegistryCalls:
    """Runs functions that may call the registry; their errors become ProxyError."""

    def __init__(
        self, registry: RegistryClient, *, clock: Clock | None = None, threads: ThreadPoolExecutor | None = None
    ) -> None:
        self._address = ", ".join(registry.settings.urls)
        self._clock = clock or SystemClock()
        # Its own threads: a registry that hangs must not block those of others.
        self._threads = threads or registry_threads()
        self._running: dict[Hashable, asyncio.Future[Any]] = {}
        self._down: tuple[float, str] | None = None

    async def run(self, call: Callable[[], T], *, sharing: Hashable) -> T:
        """Run a call on a thread; concurrent calls with the same `sharing` run once and share the result."""
        self._fail_if_down()
        running: asyncio.Future[T] | None = self._running.get(sharing)
        if running is None:
            running = asyncio.get_running_loop().run_in_executor(self._threads, self._run_mapping_errors, call)
            self._running[sharing] = running
            running.add_done_callback(lambda ended: self._on_done(sharing, ended))
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                return await asyncio.shield(running)
        except TimeoutError:
            raise self._mark_down(f"{self._address} did not answer within {_DEADLINE_SECONDS:g} seconds") from None

    def _on_done(self, sharing: Hashable, ended: asyncio.Future[Any]) -> None:
        del self._running[sharing]
        if not ended.cancelled():
            ended.exception()  # All who waited may have timed out: asyncio would log an exception never retrieved.

    def _run_mapping_errors(self, call: Callable[[], T]) -> T:
        self._fail_if_down()  # again: the call may have waited for a thread
        try:
            return call()
        except RegistryUnreachable as error:
            # Only connection errors name the address; a response with a server error does not.
            is_named = "://" in error.message
            raise self._mark_down(error.message if is_named else f"{self._address} answers: {error.message}") from error
        except ClientError as error:
            raise errors.from_registry(error, code=42207) from error
        except SerdeError as error:
            raise ProxyError(42205, f"Invalid schema: {error}") from error

    def _fail_if_down(self) -> None:
        down = self._down
        if down is not None and self._clock.monotonic() < down[0]:
            raise errors.unavailable(down[1])

    def _mark_down(self, reason: str) -> ProxyError:
        message = f"The schema registry is not available: {reason}"
        self._down = self._clock.monotonic() + _DOWN_SECONDS, message
        return errors.unavailable(message)
