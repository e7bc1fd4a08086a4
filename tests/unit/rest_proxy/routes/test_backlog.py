import asyncio
from typing import Any

import pytest

from core_broker.service.web.asgi import Message, Receive, Scope, Send
from rest_proxy.routes.backlog import Backlog

MOST = 1_000_000
LARGE = bytes(range(256)) * 5_000


async def no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


class Reader:
    """A client that notes what it is sent, and reads no further than the head once it shall wait."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            await self.goes_on.wait()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


async def large_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": LARGE})


def scope(method: str = "GET", path: str = "/topics/t/partitions/0/records") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path}


async def test_a_large_answer_arrives_in_pieces_and_whole() -> None:
    reader, backlog = Reader(), Backlog(large_answer, MOST)
    await backlog(scope(), no_body, reader.send)
    assert reader.body == LARGE
    assert len(reader.messages) > 4
    assert [message.get("more_body") for message in reader.messages][-2:] == [True, False]
    assert backlog.bytes == 0


@pytest.mark.parametrize(
    "method,path,status",
    [("GET", "/topics/t/partitions/0/records", 429), ("GET", "/topics", 200), ("POST", "/topics/t", 200)],
)
async def test_while_too_much_is_not_taken_reads_are_refused(method: str, path: str, status: int) -> None:
    slow, other, backlog = Reader(), Reader(), Backlog(large_answer, MOST)
    slow.goes_on.clear()
    waiting = asyncio.create_task(backlog(scope(), no_body, slow.send))
    await asyncio.sleep(0)
    assert backlog.bytes == len(LARGE)
    await backlog(scope(method, path), no_body, other.send)
    assert other.messages[0]["status"] == status
    slow.goes_on.set()
    await waiting
    assert backlog.bytes == 0


async def test_what_a_client_that_has_gone_did_not_take_is_forgotten() -> None:
    async def gone(message: Message) -> None:
        if message["type"] == "http.response.body":
            raise OSError

    backlog = Backlog(large_answer, MOST)
    with pytest.raises(OSError):
        await backlog(scope(), no_body, gone)
    assert backlog.bytes == 0
