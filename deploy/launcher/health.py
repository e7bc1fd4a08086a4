"""Asks a service whether it can do its work."""

import asyncio
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

_ANSWER_BYTES: Final = 64


async def is_healthy(url: str, *, timeout_s: float, tls: ssl.SSLContext | None = None) -> bool:
    """Whether `/health` below a URL answers 200 in time; `tls` is for https, and shows who asks."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port, ssl=tls if parts.scheme == "https" else None
            )
            try:
                writer.write(f"GET /health HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read(_ANSWER_BYTES)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    return answer.split(b" ")[1:2] == [b"200"]
