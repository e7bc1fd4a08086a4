"""Partition readers: threads to read on, and idle readers kept for clients that ask for the next page."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ParamSpec, Self, TypeVar

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotFound
from core_broker.client.reachability import Reachability
from core_broker.client.reader import Reader
from rest_proxy.errors import from_cluster, too_many
from rest_proxy.identity import Identity
from rest_proxy.settings import ProxySettings

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

_ADMIN_TIMEOUT_MS = 1000
_SPARE_THREADS = 4
"""For closing the connections of readers that are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a reader stopped, and with which isolation level it reads: the next page needs both to match."""

    topic: str
    partition: int
    offset: int
    isolation_level: str


class Lease:
    """One reader, used by one request. Blocking calls run on a thread; closing never waits for them."""

    def __init__(self, threads: ThreadPoolExecutor, address: str) -> None:
        self._threads = threads
        self._address = address
        self._job: asyncio.Future[object] | None = None
        self.reader: Reader | None = None

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call on a thread; errors of the cluster become ProxyError."""
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))
        self._job = job  # type: ignore[assignment]  # a future of any type
        try:
            return await asyncio.shield(job)
        except ClientError as error:
            raise from_cluster(error, address=self._address) from error

    def close(self) -> None:
        """Close the reader as soon as the thread that may still use it is done; never waits."""
        if self._job is not None and not self._job.done():
            self._job.add_done_callback(lambda _: self._close())
        else:
            self._close()

    def _close(self) -> None:
        if self._job is not None and not self._job.cancelled():
            self._job.exception()  # Retrieve it: asyncio would log it otherwise.
        if self.reader is not None:
            with suppress(RuntimeError):  # The threads were shut down: the process is about to end.
                self._threads.submit(self.reader.close)


class ReaderPool:
    """All readers of this proxy: at most `readers.max` for pages, and one per stream. For use in one event loop."""

    def __init__(self, settings: ProxySettings, *, idle_seconds: float = 30.0) -> None:
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._limit = settings.readers_max
        self._idle: dict[Reader, tuple[Identity, ResumePoint, asyncio.TimerHandle]] = {}
        self._threads = ThreadPoolExecutor(
            settings.readers_max + settings.streams_max + _SPARE_THREADS, thread_name_prefix="reader"
        )
        self.in_use = 0
        """Readers that serve a page at the moment."""
        self.is_stopping = False
        """Whether pages and streams that wait for records should end now."""

    @property
    def idle(self) -> int:
        """Readers kept for clients that ask for the next page."""
        return len(self._idle)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for reader in list(self._idle):
            self._drop(reader)
        await asyncio.to_thread(self._threads.shutdown)

    def lease(self) -> Lease:
        """A lease without a reader yet."""
        return Lease(self._threads, self._settings.address)

    @asynccontextmanager
    async def borrow(self, identity: Identity, point: ResumePoint | None) -> AsyncIterator[Lease]:
        """Lend the idle reader that stopped at this point, or a lease without a reader; 429 if too many are in use.

        The reader is closed at the end of the block, unless `give_back` was called for it: then it is kept for a while.
        """
        if self.in_use >= self._limit:
            raise too_many(f"{self._limit} reads are in progress (readers.max); try again later")
        lease = self.lease()
        lease.reader = self._take_idle(identity, point) if point is not None else None
        if lease.reader is None and self.in_use + len(self._idle) >= self._limit:
            self._drop(next(iter(self._idle)))
        self.in_use += 1
        try:
            yield lease
        finally:
            self.in_use -= 1
            if lease.reader not in self._idle:
                lease.close()

    def give_back(self, lease: Lease, identity: Identity, point: ResumePoint) -> None:
        """Keep a reader for the client that reads on at this point."""
        assert lease.reader is not None
        timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._drop, lease.reader)
        self._idle[lease.reader] = (identity, point, timer)

    def drop_all_of(self, identity: Identity) -> None:
        """Close the idle readers of an identity that is not used any more."""
        for reader in [reader for reader, (owner, _, _) in self._idle.items() if owner is identity]:
            self._drop(reader)

    def _take_idle(self, identity: Identity, point: ResumePoint) -> Reader | None:
        for reader, (owner, stopped_at, timer) in self._idle.items():
            if owner is identity and stopped_at == point:
                timer.cancel()
                del self._idle[reader]
                return reader
        return None

    def _drop(self, reader: Reader) -> None:
        _, _, timer = self._idle.pop(reader)
        timer.cancel()
        self._threads.submit(reader.close)


class Readers:
    """The readers of one identity, from the pool of all."""

    def __init__(
        self, pool: ReaderPool, settings: ProxySettings, reachability: Reachability, identity: Identity | None = None
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._reachability = reachability
        self._identity = identity or Identity(settings)
        self.lease = pool.lease

    @property
    def is_stopping(self) -> bool:
        """Whether pages and streams that wait for records should end now."""
        return self._pool.is_stopping

    def create(self, isolation_level: str) -> Reader:
        """Create a reader; blocks."""
        self._identity.check()
        settings = self._identity.kafka(self._settings.consumer_properties)
        return Reader(settings, isolation_level=isolation_level)

    def check_login(self) -> None:
        """Raise NotAllowed when a stream may not go on; blocks."""
        self._identity.check_stream()

    def current_partitions(self, topic: str) -> list[int] | None:
        """The partitions of a topic, an empty list if it was deleted; None if the cluster does not answer. Blocks.

        A waiting reader does not notice that its topic was deleted, and its connection is busy: hence the admin client.
        """
        try:
            [found] = self._admin.topics([topic])
        except NotFound:
            return []
        except ClientError:
            return None
        return [partition.index for partition in found.partitions]

    async def check(self) -> None:
        """Raise 503 unless the cluster answers, within a second."""
        if not self._reachability.is_believed():
            await self.lease().run(self._reachability.check)

    def borrow(self, point: ResumePoint | None) -> AbstractAsyncContextManager[Lease]:
        """Lend the idle reader that stopped at this point, or a lease without a reader; 429 if too many are in use."""
        return self._pool.borrow(self._identity, point)

    def give_back(self, lease: Lease, point: ResumePoint) -> None:
        """Keep a reader for the client that reads on at this point."""
        self._pool.give_back(lease, self._identity, point)

    @cached_property
    def _admin(self) -> Admin:
        settings = self._identity.kafka(self._settings.admin_properties)
        return Admin(replace(settings, timeout_ms=_ADMIN_TIMEOUT_MS))
