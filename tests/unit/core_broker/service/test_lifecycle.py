import asyncio
import io
import os
import resource
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from core_broker.service.lifecycle import allow_many_files, announce, beside, ready_line, serve


def test_ready_line_names_the_service_and_its_endpoints() -> None:
    stream = io.StringIO()
    announce(
        "broker", {"listeners": "PLAINTEXT://localhost:9092", "metrics": "http://localhost:9404/metrics"}, stream=stream
    )
    assert stream.getvalue() == (
        "caudal broker ready: listeners=PLAINTEXT://localhost:9092 metrics=http://localhost:9404/metrics\n"
    )


def test_as_many_files_may_be_open_as_the_machine_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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


async def test_a_service_that_waits_for_others_is_stopped_before_it_is_ready(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def service() -> AsyncIterator[Mapping[str, str]]:
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(60)  # for a cluster that does not answer
            yield {}
        finally:
            events.append("cleaned up")

    async with asyncio.timeout(10):
        assert await serve(service(), name="connect", waits_for_others=True) == 0
    assert events == ["cleaned up"]
    assert capsys.readouterr().out == ""


async def test_whoever_else_cancels_a_service_is_not_taken_for_a_signal() -> None:
    @asynccontextmanager
    async def service() -> AsyncIterator[Mapping[str, str]]:
        await asyncio.sleep(60)
        yield {}

    serving = asyncio.create_task(serve(service(), name="connect", waits_for_others=True))
    await asyncio.sleep(0.01)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_work_beside_a_block_ends_with_it() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(10), beside(work()):
        await asyncio.sleep(0)
        assert not ended.is_set()
    assert ended.is_set()


async def test_work_that_fails_ends_the_block_with_its_error() -> None:
    async def work() -> None:
        raise OSError("it broke")

    with pytest.raises(OSError, match="it broke"):
        async with asyncio.timeout(10), beside(work()):
            await asyncio.Event().wait()
