import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deploy.launcher.health import is_healthy
from tests.support.patience import PATIENCE_S


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[str]:
    """A server that gives one answer to everybody; None: it never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /health HTTP/1.1\r\n")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "healthy"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 503 -\r\nContent-Length: 0\r\n\r\n", False),
        (b"", False),
        (b"SSH-2.0-nonsense\r\n", False),
    ],
)
async def test_only_200_is_healthy(answer: bytes, healthy: bool) -> None:
    async with answering(answer) as url:
        assert await is_healthy(url, timeout_s=PATIENCE_S) is healthy


async def test_a_service_that_never_answers_is_not_waited_for_for_ever() -> None:
    async with answering(None) as url:
        assert not await is_healthy(url, timeout_s=0.05)


async def test_a_closed_port_is_not_healthy() -> None:
    async with answering(b"") as url:
        pass
    assert not await is_healthy(url, timeout_s=PATIENCE_S)
