import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from core_broker.service.lifecycle import announce, ready_line, serve


def test_ready_line_names_the_service_and_its_endpoints() -> None:
    stream = io.StringIO()
    announce(
        "broker", {"listeners": "PLAINTEXT://localhost:9092", "metrics": "http://localhost:9404/metrics"}, stream=stream
    )
    assert stream.getvalue() == (
        "caudal broker ready: listeners=PLAINTEXT://localhost:9092 metrics=http://localhost:9404/metrics\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
async def test_stop_signal_leaves_the_service_cleanly(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def service() -> AsyncIterator[Mapping[str, str]]:
        events.append("started")
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), number)
        yield {"listeners": "PLAINTEXT://h:1"}
        events.append("stopped")

    async with asyncio.timeout(10):
        assert await serve(service(), name="broker") == 0
    assert events == ["started", "stopped"]
    assert capsys.readouterr().out.strip() == ready_line("broker", {"listeners": "PLAINTEXT://h:1"})
