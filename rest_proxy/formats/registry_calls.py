"""Calls of the schema registry from the event loop: on threads, bounded in time, and spared while it is down."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from core_broker.service.clock import Clock, SystemClock
from rest_proxy import errors
from rest_proxy.errors import ProxyError
from schema_registry.client.errors import ClientError, RegistryUnreachable
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.errors import SerdeError

T = TypeVar("T")
_THREADS = 4
_DEADLINE_SECONDS = 5.0
"""How long a request waits for the registry at most; the client's own time-outs are usually shorter."""
_DOWN_SECONDS = 1.0
"""How long it is believed that nobody answers: requests that wait for time-outs would pile up."""


class RegistryCalls:
    """Runs what may ask the registry; all raise ProxyError alone."""

    def __init__(self, registry: RegistryClient, *, clock: Clock | None = None) -> None:
        self.registry = registry
        self._clock = clock or SystemClock()
        self._threads = asyncio.Semaphore(_THREADS)
        self._down_until = float("-inf")
        self._down = self._silent("")

    async def run(self, call: Callable[[], T]) -> T:
        """What a call returns, made on a thread."""
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                async with self._threads:
                    self._fail_if_down()
                    return await asyncio.to_thread(self._told, call)
        except TimeoutError:
            raise self._remember(self._silent(f"no answer within {_DEADLINE_SECONDS} seconds")) from None

    def _told(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except RegistryUnreachable as error:
            raise self._remember(self._silent(error.message)) from error
        except ClientError as error:
            raise errors.from_registry(error, code=42207) from error
        except SerdeError as error:
            raise ProxyError(42205, f"Invalid schema: {error}") from error

    def _fail_if_down(self) -> None:
        if self._clock.monotonic() < self._down_until:
            down = self._down
            raise ProxyError(down.code, down.message, retry_after_seconds=down.retry_after_seconds)

    def _remember(self, error: ProxyError) -> ProxyError:
        self._down, self._down_until = error, self._clock.monotonic() + _DOWN_SECONDS
        return error

    def _silent(self, reason: str) -> ProxyError:
        address = ", ".join(self.registry.settings.urls)
        return errors.unavailable(f"The schema registry at {address} does not answer: {reason}")
