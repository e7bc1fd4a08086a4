import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trustme
from h2.errors import ErrorCodes
from websockets.asyncio.client import connect

from core_broker.service.web.asgi import Receive, Scope, Send
from core_broker.service.web.server import serving
from core_broker.service.web.settings import WebSettings
from streams.rest.connections import speaking
from tests.support.http2_client import http2_client
from tests.support.patience import PATIENCE_S

_DATA, _GOAWAY = 0, 7
VERSIONS = pytest.mark.parametrize("version", ["1.1", "2"])


class World:
    """An app whose answers tests can hold up, and what became of its requests."""

    def __init__(self) -> None:
        self.taken = 0
        self.sent = 0
        self.gone = asyncio.Event()
        self.late = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _greet(receive, send)
            return
        match scope["path"]:
            case "/echo":
                await _echo(receive, send)
            case "/flood":
                await _start(send)
                while not self.gone.is_set():
                    await _part(send, b"x" * 10_000)
                    self.sent += 10_000
                    await asyncio.sleep(0)
            case "/wait":
                await _start(send)
                await _part(send, b"waiting\n")
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.gone.set()
            case "/late":
                await _start(send)
                await _part(send, b"early\n")
                await self.late.wait()
                await _part(send, b"late", more=False)
            case "/refuse":
                await _start(send, 413)
                await _part(send, b"too long", more=False)
            case "/break":
                await _start(send)
                await _part(send, b"half")
                raise ValueError("as the test wants")
            case _:
                await _start(send)
                await _part(send, f"{scope['http_version']} {scope['query_string'].decode()}".encode(), more=False)


async def _greet(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "hello"})
    await send({"type": "websocket.close", "code": 1000})


async def _echo(receive: Receive, send: Send) -> None:
    await _start(send)
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        await _part(send, message.get("body", b""))
    await _part(send, b"", more=False)


async def _start(send: Send, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"keep-alive")]})


async def _part(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


@asynccontextmanager
async def _served(stall_seconds: float = 5.0, **settings: int) -> AsyncIterator[tuple[World, str]]:
    world = World()
    web = WebSettings(listeners=("http://127.0.0.1:0",)).replace(**settings)
    async with asyncio.timeout(3 * PATIENCE_S):
        async with serving(world, web, speaking=speaking(stall_seconds=stall_seconds)) as urls:
            try:
                yield world, urls[0]
            finally:
                world.gone.set()


def _client(version: str, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    return httpx.AsyncClient(http1=version == "1.1", http2=version == "2", verify=verify, timeout=PATIENCE_S)


@VERSIONS
async def test_both_versions_are_served_on_one_port(version: str) -> None:
    async with _served() as (_, url), _client(version) as client:
        answer = await client.get(f"{url}/here?a=b")
    assert (answer.http_version, answer.text) == (f"HTTP/{version}", f"{version} a=b")


@VERSIONS
async def test_large_bodies_go_in_and_out(version: str) -> None:
    body = bytes(range(256)) * 8000
    async with _served() as (_, url), _client(version) as client:
        answer = await client.post(f"{url}/echo", content=body)
    assert answer.content == body


@VERSIONS
async def test_many_requests_at_once(version: str) -> None:
    async with _served() as (_, url), _client(version) as client:
        answers = await asyncio.gather(*(client.post(f"{url}/echo", content=b"%d" % n) for n in range(150)))
    assert [answer.content for answer in answers] == [b"%d" % number for number in range(150)]


async def test_websocket() -> None:
    async with _served() as (_, url), connect(url.replace("http", "ws", 1)) as socket:
        assert [message async for message in socket] == ["hello"]


async def test_request_and_response_go_on_at_the_same_time() -> None:
    async with _served() as (_, url), http2_client(url) as client:
        stream = await client.request("/echo")
        for number in range(3):
            await client.send(stream, b"%d\n" % number)
            assert await client.body(stream, lines=number + 1) == b"".join(b"%d\n" % n for n in range(number + 1))
        await client.send(stream, b"end", ends=True)
        assert await client.body(stream) == b"0\n1\n2\nend"


async def test_client_that_does_not_read_holds_up_its_response_alone() -> None:
    async with _served() as (world, url), http2_client(url) as client:
        client.h2.increment_flow_control_window(1 << 20)  # of the connection
        flood = await client.request("/flood", ends=True)
        while len(client.bodies.get(flood, b"")) < 65_535:
            await client.read(takes=False)
        assert await client.body(await client.request("/", method="GET", ends=True)) == b"2 "
        assert world.sent <= 65_535
        world.gone.set()


async def test_client_that_does_not_read_is_given_up_in_time() -> None:
    async with _served(stall_seconds=0.2) as (world, url), http2_client(url) as client:
        stream = await client.request("/flood", ends=True)
        while stream not in client.resets and not client.is_closed:
            await client.read(takes=False)
        assert client.resets == {stream: ErrorCodes.CANCEL}
        world.gone.set()


async def test_app_learns_that_a_request_was_given_up() -> None:
    async with _served() as (world, url), http2_client(url) as client:
        stream = await client.request("/wait", ends=True)
        await client.body(stream, lines=1)
        client.h2.reset_stream(stream)
        await client.flush()
        await asyncio.wait_for(world.gone.wait(), PATIENCE_S)


@VERSIONS
async def test_app_learns_that_the_connection_was_lost(version: str) -> None:
    async with _served() as (world, url):
        async with _client(version) as client, client.stream("POST", f"{url}/wait") as answer:
            assert await anext(answer.aiter_lines()) == "waiting"
        await asyncio.wait_for(world.gone.wait(), PATIENCE_S)


async def test_rest_of_a_refused_request_does_not_hold_up_the_connection() -> None:
    async with _served() as (_, url), http2_client(url) as client:
        streams = set()
        for _ in range(90):
            stream = await client.request("/refuse")
            await client.send(stream, b"x" * 16_000)
            assert await client.body(stream) == b"too long"
            assert client.statuses[stream] == 413
            streams.add(stream)
        while client.resets.keys() != streams:
            await client.read()
        assert set(client.resets.values()) == {ErrorCodes.NO_ERROR}


async def test_failure_in_the_middle_of_a_response_breaks_it_off() -> None:
    async with _served() as (_, url), http2_client(url) as client:
        stream = await client.request("/break", ends=True)
        assert await client.body(stream) == b"half"
        assert client.resets == {stream: ErrorCodes.INTERNAL_ERROR}


async def test_client_that_gives_up_requests_all_the_time_is_disconnected() -> None:
    async with _served() as (_, url), http2_client(url) as client:
        for _ in range(1100):
            stream = client.h2.get_next_available_stream_id()
            head = [(":method", "POST"), (":path", "/wait"), (":scheme", "http"), (":authority", "x")]
            client.h2.send_headers(stream, head)
            client.h2.reset_stream(stream)
        await client.flush()
        while not (client.goaways or client.is_closed):
            await client.read()
        assert client.goaways in ([], [ErrorCodes.ENHANCE_YOUR_CALM])


async def test_headers_are_bounded() -> None:
    async with _served(request_header_max_bytes=2000) as (_, url), http2_client(url) as client:
        stream = client.h2.get_next_available_stream_id()
        head = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        client.h2.send_headers(stream, [*head, *((f"x-{n}", "y" * 100) for n in range(40))], end_stream=True)
        await client.flush()
        while not client.is_closed:
            await client.read()
        assert stream not in client.statuses


@pytest.mark.parametrize("begin", [b"", b"PRI * HTT", b"GET / HTTP/1.1\r\n"])
async def test_client_that_never_finishes_its_first_words_is_disconnected(begin: bytes) -> None:
    async with _served(request_read_timeout_ms=200) as (_, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(begin)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()


async def test_idle_connection_is_closed() -> None:
    async with _served(idle_timeout_ms=1000) as (_, url), http2_client(url) as client:
        await client.body(await client.request("/", method="GET", ends=True))
        while not client.is_closed:
            await client.read()
        assert client.goaways == [ErrorCodes.NO_ERROR]


async def test_server_that_stops_lets_requests_finish() -> None:
    stopping, addresses = asyncio.Event(), asyncio.Queue[str]()
    worlds: list[World] = []

    async def serve() -> None:
        async with _served() as (world, url):
            worlds.append(world)
            addresses.put_nowait(url)
            await stopping.wait()
            world.gone = asyncio.Event()  # not yet

    async with asyncio.TaskGroup() as group:
        group.create_task(serve())
        async with http2_client(await addresses.get()) as client:
            stream = await client.request("/late", ends=True)
            await client.body(stream, lines=1)
            stopping.set()
            frames: list[tuple[int, bytes]] = []
            while not any(kind == _GOAWAY for kind, _ in frames):
                frames += await client.frames()
            worlds[0].late.set()
            while not client.is_closed:
                frames += await client.frames()
    assert (_DATA, b"late") in frames


@VERSIONS
async def test_tls_agrees_on_the_version(version: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    pem = tmp_path / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(pem))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    web = WebSettings(listeners=("https://127.0.0.1:0",), ssl_certificate_location=str(pem))
    async with serving(World(), web, speaking=speaking(stall_seconds=5)) as (url,):
        async with _client(version, trusting) as client:
            answer = await client.get(f"{url}/")
            assert answer.http_version == f"HTTP/{version}"
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(url.rpartition(":")[2]), ssl=_offers_h2(trusting)
        )
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        writer.close()
        assert reader is not None


def _offers_h2(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context
