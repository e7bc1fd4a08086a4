"""One poll: how long it waits, how much it returns, and what happens when the client leaves."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from rest_proxy.consume.instances.active import ActiveInstance, Threads
from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.page import encode_page
from rest_proxy.formats.decoding import Decoder


class Client(Protocol):
    """The client of a request, which may leave before it gets the response."""

    async def is_gone(self) -> bool:
        """Whether it has left."""
        ...

    def is_lost(self) -> bool:
        """Whether it is known, later, to have left without reading its response."""
        ...


JOIN_SECONDS = 10.0
"""How long a request waits for the group to assign partitions to an instance."""
_POLL_MAX_MS = 600_000
_SLICE_SECONDS = 0.25
"""How long one wait for records takes: in between, other requests may use the instance, and we check the client."""
_SMALL_PAGE_RECORDS = 100
_NOTHING = b"[]", 0


class Poll:
    """A request for records.

    It returns as soon as there are as many bytes as the instance wants, or when its time is up. Without a time-out of
    its own, it first waits for the group to assign partitions, so that the first poll is not empty.
    """

    def __init__(
        self, active: ActiveInstance, threads: Threads, decoder: Decoder, *, timeout_ms: int | None, max_bytes: int
    ) -> None:
        config = active.instance.config
        self._active, self._threads, self._decoder = active, threads, decoder
        self._max_bytes = max_bytes
        self._enough = max_bytes if config.fetch_min_bytes < 0 else min(max_bytes, max(1, config.fetch_min_bytes))
        self._seconds = min(config.request_timeout_ms if timeout_ms is None else timeout_ms, _POLL_MAX_MS) / 1000
        self._arrived_at = time.monotonic()
        self._is_timed = timeout_ms is not None

    async def answer(self, client: Client, *, is_plain: bool, is_stopping: Callable[[], bool]) -> tuple[bytes, int]:
        """The next records as JSON, and how many they are. If the client has left, they stay for the next poll."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._active.polling.acquire()
        except TimeoutError:
            return _NOTHING  # Another poll of the same instance took all the time.
        try:
            return await self._poll(client, is_plain=is_plain, is_stopping=is_stopping)
        finally:
            self._active.polling.release()

    async def _poll(self, client: Client, *, is_plain: bool, is_stopping: Callable[[], bool]) -> tuple[bytes, int]:
        deadline = time.monotonic() + self._seconds
        join_until = deadline if self._is_timed else max(deadline, time.monotonic() + JOIN_SECONDS)
        while True:
            await self._fetch(deadline)
            now = time.monotonic()
            if self._active.instance.is_waiting_for_group and now < join_until:
                deadline = min(join_until, now + self._seconds)
            if is_stopping() or await client.is_gone():
                return _NOTHING
            if now >= deadline or self._active.instance.has_fetched(self._enough):
                page = await self._page(is_plain=is_plain, client=client)
                if page is not None:
                    return page

    async def _fetch(self, deadline: float) -> None:
        self._active.raise_refusal()
        wait = 0.0
        if not self._active.instance.has_fetched(self._enough):
            await self._threads.check_cluster()
            wait = max(0.0, min(deadline - time.monotonic(), _SLICE_SECONDS))
        await self._active.call(
            partial(
                Instance.fetch, arrived_at=self._arrived_at, wanted_bytes=self._max_bytes, timeout_ms=int(wait * 1000)
            )
        )

    async def _page(self, *, is_plain: bool, client: Client) -> tuple[bytes, int] | None:
        """The response; None if partitions were revoked, or the client moved elsewhere, while it was encoded."""
        instance = self._active.instance
        async with self._active.using:
            purges, records = instance.purges, instance.page(self._max_bytes)
        await self._decoder.prepare(records)
        encode = partial(encode_page, records, self._decoder, is_plain=is_plain)
        body, count = encode() if len(records) <= _SMALL_PAGE_RECORDS else await self._threads.run(encode)
        if await client.is_gone():
            return _NOTHING
        async with self._active.using:
            if self._active.is_closed or instance.purges != purges:
                return None
            instance.answer(count, client.is_lost)
        return body, count
