"""Ready-made answers to "which schema has this id", given ahead of the router.

The schema behind an id never changes, and every consumer asks for it once: this is the registry's hot path. What can
change is that the schema is deleted; then all answers are forgotten here at once, and after their time to live in other
registries on the same database. What is deleted may come back, so answers that tell of it are not kept.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from core_broker.service.metrics import Family
from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send

_HOT = (b"/schemas/ids/", b"/schemas/guids/", b"/contexts/")
_DELETED = b'"deleted":true'
_NOT_MODIFIED = 304


class ReadyAnswer(msgspec.Struct, frozen=True):
    """One answer as bytes, and when it must be asked for again."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    expires: float


class ReadyAnswers:
    """Keeps and gives answers; everything else goes to the app behind. Runs in the event loop only."""

    def __init__(
        self, app: Application, *, max_bytes: int, ttl_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._ttl_seconds = ttl_seconds
        self._now = now
        self._answers: OrderedDict[tuple[bytes, bytes, bytes], ReadyAnswer] = OrderedDict()
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
        answer = self._answers.get(key)
        if answer is None or answer.expires < self._now():
            await self._app(scope, receive, self._keeping(key, send))
            return
        self.hits += 1
        await _give(answer, etag, send)

    def forget(self) -> None:
        """Forget all answers: a schema was deleted."""
        self._generation += 1
        self._answers.clear()
        self._bytes = 0

    def family(self) -> Family:
        """The count of answers given, for `/metrics`."""
        return Family(
            name="caudal_registry_ready_answers_total",
            help="Requests for a schema by id that were answered from memory.",
            kind="counter",
            samples=[((), self.hits)],
        )

    def _keeping(self, key: tuple[bytes, bytes, bytes], send: Send) -> Send:
        """Passes an answer on, and keeps it when it is one that does not change."""
        generation = self._generation
        start: Message = {}

        async def send_and_keep(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
            elif start["status"] == 200 and not message.get("more_body") and generation == self._generation:
                self._keep(key, start["headers"], message.get("body", b""))
            await send(message)

        return send_and_keep

    def _keep(self, key: tuple[bytes, bytes, bytes], headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if not _is_fixed(key) or _DELETED in body:
            return
        if (replaced := self._answers.pop(key, None)) is not None:
            self._bytes -= _size(key, replaced)
        answer = ReadyAnswer(headers, body, self._now() + self._ttl_seconds)
        self._answers[key] = answer
        self._bytes += _size(key, answer)
        while self._bytes > self._max_bytes:
            self._bytes -= _size(*self._answers.popitem(last=False))


def _is_fixed(key: tuple[bytes, bytes, bytes]) -> bool:
    """Whether this answer stays true: the schema itself does, its uses (and the highest id) do not."""
    path, query, _ = key
    if b"fetchMaxId=true" in query:
        return False
    return not path.rstrip(b"/").endswith((b"/subjects", b"/versions", b"/ids")) and b"/schemas/" in path


def _size(key: tuple[bytes, bytes, bytes], answer: ReadyAnswer) -> int:
    return len(answer.body) + sum(len(part) for part in key) + 600


async def _give(answer: ReadyAnswer, etag: bytes, send: Send) -> None:
    if etag and any(name == b"etag" and value == etag for name, value in answer.headers):
        await send({"type": "http.response.start", "status": _NOT_MODIFIED, "headers": [(b"etag", etag)]})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": 200, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})
