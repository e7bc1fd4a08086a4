"""Paths are routed as they were sent, and HEAD is the beginning of GET."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from core_broker.service.web.paths import RawPaths, Segment
from core_broker.service.web.server import serving
from core_broker.service.web.settings import WebSettings


@asynccontextmanager
async def client() -> AsyncIterator[tuple[httpx2.AsyncClient, asyncio.Event]]:
    app = FastAPI(redirect_slashes=False)
    ended = asyncio.Event()

    @app.get("/things/{name}")
    async def thing(name: Segment) -> Response:
        return Response(name)

    @app.get("/endless")
    async def endless(request: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            try:
                while not await request.is_disconnected():
                    yield b"more"
                    await asyncio.sleep(0.01)
            finally:
                ended.set()

        return StreamingResponse(body(), headers={"x-kind": "endless"})

    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0"})
    async with serving(RawPaths(app), settings) as urls, httpx2.AsyncClient(base_url=urls[0], timeout=10) as made:
        yield made, ended


async def test_a_name_may_hold_slashes_and_an_address_may_end_in_one() -> None:
    async with client() as (http, _):
        assert (await http.get("/things/a%2Fb")).text == "a/b"
        assert (await http.get("/things/a/")).text == "a"
        assert (await http.get("/things/a/b")).status_code == 404


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    async with client() as (http, _):
        answer = await http.head("/things/abc")
        assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "3", b"")


async def test_head_of_an_answer_without_end_is_answered_and_ends_it() -> None:
    async with client() as (http, ended):
        answer = await http.head("/endless")
        assert (answer.status_code, answer.headers["x-kind"]) == (200, "endless")
        async with asyncio.timeout(10):
            await ended.wait()
        assert (await http.get("/things/next")).text == "next"
