"""An open consumer instance: it is called on threads, one call at a time, and knows when it was last used."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from core_broker.client.errors import ClientError, Fatal
from core_broker.client.reachability import Reachability
from rest_proxy.consume.instances import errors
from rest_proxy.consume.instances.instance import Connect, Instance
from rest_proxy.errors import ProxyError, unavailable
from rest_proxy.identity import Identity

log = logging.getLogger(__name__)

T = TypeVar("T")

_SPARE_THREADS = 8


class Threads:
    """Threads for the blocking calls of instances, started on demand."""

    def __init__(self, instances_max: int, *, reachability: Reachability, address: str) -> None:
        self._pool = ThreadPoolExecutor(instances_max + _SPARE_THREADS, "instance")
        self._reachability = reachability
        self._address = address

    async def run(self, call: Callable[[], T]) -> T:
        """Run a blocking call on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def check_cluster(self) -> None:
        """Raise ProxyError, within a second, if no broker answers."""
        if not self._reachability.is_believed():
            try:
                await self.run(self._reachability.check)
            except ClientError as error:
                raise self.map_error(error) from error

    async def is_cluster_there(self) -> bool:
        """Whether a broker answers."""
        try:
            await self.check_cluster()
        except ProxyError:
            return False
        return True

    def map_error(self, error: ClientError) -> ProxyError:
        """The ProxyError for an error of the cluster."""
        return errors.from_consumer(error, address=self._address)

    def shutdown(self) -> None:
        """Start no more calls."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class ActiveInstance:
    """An open instance."""

    def __init__(self, instance: Instance, identity: Identity, threads: Threads) -> None:
        self.instance = instance
        self.identity = identity
        """As whom its consumer has logged in."""
        self._threads = threads
        self.using = asyncio.Lock()
        """One call at a time."""
        self.polling = asyncio.Lock()
        """One poll at a time; others wait."""
        self.used_at = time.monotonic()
        self.touched_at = self.used_at
        """When its file was last touched, to record that it is used."""
        self.is_closed = False
        self.refusal: ProxyError | None = None
        """What the cluster refused between requests: the library says it once, and the next poll has to tell it."""
        self._requests = 0

    @property
    def is_idle(self) -> bool:
        """Whether no request uses it."""
        return not self._requests and not self.using.locked()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the instance from expiring while a request uses it."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self.used_at = time.monotonic()

    async def call(self, call: Callable[[Instance], T]) -> T:
        """Call the instance on a thread, after other calls have ended; raises ProxyError."""
        async with self.using:
            if self.is_closed:
                raise errors.not_found("It was deleted while this request waited.")
            try:
                return await self._threads.run(partial(self._call_or_reopen, call))
            except ClientError as error:
                raise self._threads.map_error(error) from error

    def _call_or_reopen(self, call: Callable[[Instance], T]) -> T:
        try:
            if self.instance.is_suspended:
                self.instance.reopen()
            return call(self.instance)
        except Fatal as error:
            log.warning("consumer instance is reopened", extra={"group": self.instance.group, "reason": str(error)})
            self.instance.reopen()
            raise unavailable(f"The consumer failed and was reopened; try again: {error}") from error

    async def connect_by(self, identity: Identity, connect: Connect) -> None:
        """Go on as this identity; raises ProxyError."""
        async with self.using:
            if self.identity is identity or self.is_closed:
                return
            try:
                await self._threads.run(partial(self.instance.connect_by, connect))
            except ClientError as error:
                raise self._threads.map_error(error) from error
            self.identity, self.refusal = identity, None

    async def suspend(self) -> None:
        """Close the consumer, until the next request."""
        async with self.using:
            if not self.is_closed:
                await self._threads.run(self.instance.suspend)

    def raise_refusal(self) -> None:
        """Raise what was refused since the last request, if anything was."""
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal

    async def close(self, *, arrived_at: float | None = None) -> None:
        """Leave the group. `arrived_at` is when the client asked for that: then what it has received is committed."""
        self.is_closed = True
        is_committing = arrived_at is not None and await self._threads.is_cluster_there()
        async with self.using:
            try:
                await self._threads.run(partial(self.instance.close, arrived_at=arrived_at if is_committing else None))
            except ClientError as error:
                log.warning("consumer instance was not closed cleanly", extra={"reason": str(error)})
