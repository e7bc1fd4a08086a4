"""One request for records: how long it waits, how much it answers, and what becomes of a client that leaves."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.live import Live, Threads
from rest_proxy.consume.instances.page import encoded
from rest_proxy.formats.decoding import Decoder


class Client(Protocol):
    """Who has sent a request, and may leave before it is answered."""

    async def is_gone(self) -> bool:
        """Whether it has left."""
        ...

    def is_lost(self) -> bool:
        """Whether it is known, later, that it went without having read its answer."""
        ...


JOIN_SECONDS = 10.0
"""How long is waited for the group to give an instance its partitions."""
_POLL_MAX_MS = 600_000
_SLICE_SECONDS = 0.25
"""How long one wait for records takes: others may use the instance in between, and a client that left is noticed."""
_SMALL_PAGE_RECORDS = 100
_NOTHING = b"[]", 0


class Poll:
    """A request for records.

    It is answered as soon as there are as many bytes as the instance wants, or when its time is over. Without a time
    of its own, it first waits for the group to give the instance its partitions, so that the first poll is not empty.
    """

    def __init__(
        self, live: Live, threads: Threads, decoder: Decoder, *, timeout_ms: int | None, max_bytes: int
    ) -> None:
        config = live.instance.config
        self._live, self._threads, self._decoder = live, threads, decoder
        self._max_bytes = max_bytes
        self._enough = max_bytes if config.fetch_min_bytes < 0 else min(max_bytes, max(1, config.fetch_min_bytes))
        self._seconds = min(config.request_timeout_ms if timeout_ms is None else timeout_ms, _POLL_MAX_MS) / 1000
        self._arrived_at = time.monotonic()
        self._is_timed = timeout_ms is not None

    async def answer(self, client: Client, *, is_plain: bool, is_stopping: Callable[[], bool]) -> tuple[bytes, int]:
        """The next records as JSON, and how many they are. Those of a client that has left stay for the next poll."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._live.polling.acquire()
        except TimeoutError:
            return _NOTHING  # Another poll of the same instance takes all the time.
        try:
            return await self._answer(client, is_plain=is_plain, is_stopping=is_stopping)
        finally:
            self._live.polling.release()

    async def _answer(self, client: Client, *, is_plain: bool, is_stopping: Callable[[], bool]) -> tuple[bytes, int]:
        deadline = time.monotonic() + self._seconds
        join_until = deadline if self._is_timed else max(deadline, time.monotonic() + JOIN_SECONDS)
        while True:
            await self._fetch(deadline)
            now = time.monotonic()
            if self._live.instance.is_waiting_for_group and now < join_until:
                deadline = min(join_until, now + self._seconds)
            if is_stopping() or await client.is_gone():
                return _NOTHING
            if now >= deadline or self._live.instance.has_fetched(self._enough):
                page = await self._page(is_plain=is_plain, client=client)
                if page is not None:
                    return page

    async def _fetch(self, deadline: float) -> None:
        wait = 0.0
        if not self._live.instance.has_fetched(self._enough):
            await self._threads.check_cluster()
            wait = max(0.0, min(deadline - time.monotonic(), _SLICE_SECONDS))
        await self._live.call(
            partial(
                Instance.fetch,
                arrived_at=self._arrived_at,
                wanted_bytes=self._max_bytes,
                timeout_ms=int(wait * 1000),
            )
        )

    async def _page(self, *, is_plain: bool, client: Client) -> tuple[bytes, int] | None:
        """The answer; None if partitions were taken away, or sought, while it was made."""
        instance = self._live.instance
        async with self._live.using:
            purges, records = instance.purges, instance.page(self._max_bytes)
        await self._decoder.prepare(records)
        encode = partial(encoded, records, self._decoder, is_plain=is_plain)
        body, count = encode() if len(records) <= _SMALL_PAGE_RECORDS else await self._threads.run(encode)
        if await client.is_gone():
            return _NOTHING
        async with self._live.using:
            if self._live.is_closed or instance.purges != purges:
                return None
            instance.answer(count, client.is_lost)
        return body, count
