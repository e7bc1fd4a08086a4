"""A cache of the responses to "which schema has this id", in front of the router.

The schema behind an id never changes, and every consumer asks for it once: this is the registry's hot path. A schema
can be deleted, though. The registry that deletes it clears its cache at once; other registries on the same database
notice when their entries expire. A deleted schema may come back, so responses that say "deleted" are not cached.

Where access rules are enforced, a response is kept with subjects of which each lets a caller see it. A caller who may
read none of them is passed on to the router, which knows all subjects.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from core_broker.service.metrics import Family
from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.web_access.callers import caller_of
from schema_registry.registry.access import AccessRules
from schema_registry.routes.guard import SHOWN_THROUGH

_HOT = (b"/schemas/ids/", b"/schemas/guids/", b"/contexts/")
_DELETED = b'"deleted":true'
_NOT_MODIFIED = 304
_ENTRY_BYTES = 600
"""Estimated size of an entry without its body and its key."""


class CachedResponse(msgspec.Struct, frozen=True):
    """A response as bytes, and the time at which it expires."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    expires: float
    shown_through: tuple[str, ...] = ()


class ResponseCache:
    """Sends cached responses, and passes all other requests to the app behind it. Runs in the event loop only."""

    def __init__(
        self,
        app: Application,
        *,
        max_bytes: int,
        ttl_seconds: float,
        rules: AccessRules | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._rules = rules if rules is not None and rules.is_enforced else None
        self._max_bytes = max_bytes
        self._ttl_seconds = ttl_seconds
        self._now = now
        self._responses: OrderedDict[tuple[bytes, bytes, bytes], CachedResponse] = OrderedDict()
        self._bytes = 0
        self._generation = 0
        self.hits = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["raw_path"].startswith(_HOT):
            await self._app(scope, receive, send)
            return
        accept = etag = b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value
            elif name == b"if-none-match":
                etag = value
        key = (scope["raw_path"], scope["query_string"], accept)
        response = self._responses.get(key)
        if response is None or response.expires < self._now() or not self._may_see(scope, response):
            scope[SHOWN_THROUGH] = shown_through = list[str]()
            await self._app(scope, receive, self._caching(key, send, shown_through))
            return
        self.hits += 1
        await _send_cached(response, etag, send)

    def clear(self) -> None:
        """Drop all responses, because a schema was deleted."""
        self._generation += 1
        self._responses.clear()
        self._bytes = 0

    def family(self) -> Family:
        """The number of cache hits, for `/metrics`."""
        return Family(
            name="caudal_registry_ready_answers_total",
            help="Requests for a schema by id that were answered from memory.",
            kind="counter",
            samples=[((), self.hits)],
        )

    def _may_see(self, scope: Scope, response: CachedResponse) -> bool:
        return self._rules is None or self._rules.allows_reading(caller_of(scope), response.shown_through)

    def _caching(self, key: tuple[bytes, bytes, bytes], send: Send, shown_through: list[str]) -> Send:
        """A `send` that caches the response if it cannot change, before it sends it on."""
        # A response that was computed before a delete must not enter the cache after it.
        generation = self._generation
        start: Message = {}

        async def send_and_cache(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
            elif start["status"] == 200 and not message.get("more_body") and generation == self._generation:
                self._put(key, start["headers"], message.get("body", b""), tuple(shown_through))
            await send(message)

        return send_and_cache

    def _put(
        self,
        key: tuple[bytes, bytes, bytes],
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        shown_through: tuple[str, ...],
    ) -> None:
        if not _is_immutable(key) or _DELETED in body or (self._rules is not None and not shown_through):
            return
        if (replaced := self._responses.pop(key, None)) is not None:
            self._bytes -= _size(key, replaced)
        response = CachedResponse(headers, body, self._now() + self._ttl_seconds, shown_through)
        self._responses[key] = response
        self._bytes += _size(key, response)
        while self._bytes > self._max_bytes:
            self._bytes -= _size(*self._responses.popitem(last=False))


def _is_immutable(key: tuple[bytes, bytes, bytes]) -> bool:
    """Whether the response never changes: a schema does not, its subjects and versions (and the highest id) do."""
    path, query, _ = key
    if b"fetchMaxId=true" in query:
        return False
    return not path.rstrip(b"/").endswith((b"/subjects", b"/versions", b"/ids")) and b"/schemas/" in path


def _size(key: tuple[bytes, bytes, bytes], response: CachedResponse) -> int:
    texts = sum(map(len, key)) + sum(map(len, response.shown_through))
    return len(response.body) + texts + _ENTRY_BYTES


async def _send_cached(response: CachedResponse, etag: bytes, send: Send) -> None:
    if etag and any(name == b"etag" and value == etag for name, value in response.headers):
        await send({"type": "http.response.start", "status": _NOT_MODIFIED, "headers": [(b"etag", etag)]})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": 200, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body})
