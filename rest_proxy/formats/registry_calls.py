"""Calls of the schema registry from the event loop: on threads, bounded in time, and spared while it is down."""

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
"""How long a request waits for the registry. An answer that comes later is remembered: the next request has it."""
_DOWN_SECONDS = 1.0
"""How long it is believed that nobody answers: requests that wait for time-outs would pile up."""


class RegistryCalls:
    """Runs what may ask the registry; all raise ProxyError alone."""

    def __init__(self, registry: RegistryClient, *, clock: Clock | None = None) -> None:
        self._address = ", ".join(registry.settings.urls)
        self._clock = clock or SystemClock()
        # Of its own: a registry that hangs must not keep others from their threads.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="registry")
        self._running: dict[Hashable, asyncio.Future[Any]] = {}
        self._down: tuple[float, str] | None = None

    async def run(self, call: Callable[[], T], *, sharing: Hashable) -> T:
        """What a call returns, made on a thread; those that run at the same time and share a name are made once."""
        self._fail_if_down()
        running: asyncio.Future[T] | None = self._running.get(sharing)
        if running is None:
            running = asyncio.get_running_loop().run_in_executor(self._threads, self._told, call)
            self._running[sharing] = running
            running.add_done_callback(lambda ended: self._end(sharing, ended))
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                return await asyncio.shield(running)
        except TimeoutError:
            raise self._silent(f"{self._address} said nothing within {_DEADLINE_SECONDS:g} seconds") from None

    def _end(self, sharing: Hashable, ended: asyncio.Future[Any]) -> None:
        del self._running[sharing]
        if not ended.cancelled():
            ended.exception()  # perhaps nobody waits any longer, and then nobody need hear of it

    def _told(self, call: Callable[[], T]) -> T:
        self._fail_if_down()  # meanwhile: threads may have been busy
        try:
            return call()
        except RegistryUnreachable as error:
            # An answer with a server's error does not say whose it is.
            is_named = "://" in error.message
            raise self._silent(error.message if is_named else f"{self._address} answers: {error.message}") from error
        except ClientError as error:
            raise errors.from_registry(error, code=42207) from error
        except SerdeError as error:
            raise ProxyError(42205, f"Invalid schema: {error}") from error

    def _fail_if_down(self) -> None:
        down = self._down
        if down is not None and self._clock.monotonic() < down[0]:
            raise errors.unavailable(down[1])

    def _silent(self, reason: str) -> ProxyError:
        message = f"The schema registry is not available: {reason}"
        self._down = self._clock.monotonic() + _DOWN_SECONDS, message
        return errors.unavailable(message)
