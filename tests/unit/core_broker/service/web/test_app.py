"""What every HTTP service answers in the same way, over a real socket."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import psutil
import pytest
import trustme
from fastapi import APIRouter, Request
from pydantic import BaseModel

from core_broker.service.metrics import Family
from core_broker.service.web.app import create_app, with_limits
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.server import endpoints, serving
from core_broker.service.web.settings import WebSettings
from tests.support.patience import PATIENCE_S


class Refused(Exception):
    status = 409
    code = 40901
    message = "no"


class Body(BaseModel):
    count: int
    many: list[int] = []


@asynccontextmanager
async def service(**changes: str) -> AsyncIterator[httpx2.AsyncClient]:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0", **changes})
    counts = RequestCounts("test")
    healthy = [True]
    app = create_app(
        title="t", description="d", error_type=Refused, collect=counts.families, is_healthy=lambda: healthy[0]
    )

    @app.get("/things/{number}")
    def thing(number: int, limit: int = 1) -> int:
        return number

    @app.post("/things")
    async def make(body: Body) -> int:
        return body.count

    @app.post("/bytes")
    async def read(request: Request) -> int:
        return len(await request.body())

    @app.get("/long")
    def long() -> str:
        return "x" * 20_000_000

    go = threading.Event()

    @app.post("/slow")
    def wait() -> None:
        assert go.wait(30)

    @app.get("/go")
    async def let_go() -> None:
        go.set()

    @app.get("/refused")
    def refuse() -> None:
        raise Refused

    @app.get("/sick")
    def fall_ill() -> None:
        healthy[0] = False

    async with serving(with_limits(app, settings, counts), settings) as urls:
        verify: ssl.SSLContext | bool = True
        if certificate := settings.ssl_certificate_location:
            verify = ssl.create_default_context(cafile=certificate)
        async with httpx2.AsyncClient(base_url=urls[0], verify=verify, timeout=60) as client:
            yield client


async def test_health_tells_whether_the_service_works() -> None:
    async with service() as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        await client.get("/sick")
        assert (await client.get("/health")).status_code == 503


async def test_metrics_count_requests_by_route_and_never_by_path() -> None:
    async with service() as client:
        for path in ("/things/1", "/things/2", "/nowhere", "/elsewhere"):
            await client.get(path)
        text = (await client.get("/metrics")).text
    assert 'test_http_requests_total{method="GET",route="/things/{number}",status="200"} 2.0' in text
    assert 'test_http_requests_total{method="GET",route="other",status="404"} 2.0' in text
    assert "process_resident_memory_bytes" in text
    assert "nowhere" not in text


@pytest.mark.parametrize(
    "method,path,body,status,code,words",
    [
        ("GET", "/refused", None, 409, 40901, "no"),
        ("GET", "/nowhere", None, 404, 404, "HTTP 404 Not Found"),
        ("DELETE", "/things/1", None, 405, 405, "HTTP 405 Method Not Allowed"),
        ("GET", "/things/one", None, 404, 404, "HTTP 404 Not Found"),
        ("GET", "/things/1?limit=many", None, 400, 400, "Parameter limit 'many': Input should be a valid integer"),
        ("POST", "/things", b"{", 400, 400, "The body is not valid JSON"),
        ("POST", "/things", b'{"count": "x"}', 400, 400, "Body count 'x': Input should be a valid integer"),
        ("POST", "/things", b"{}", 400, 400, "Body count: Field required"),
        ("POST", "/things", b"", 400, 400, "The request needs a body"),
        ("POST", "/things", b"null", 400, 400, "The request needs a body"),
        ("POST", "/bytes", b"x" * 2000, 413, 413, "request.max.bytes"),
    ],
)
async def test_failures_come_in_one_envelope(
    method: str, path: str, body: bytes | None, status: int, code: int, words: str
) -> None:
    async with service(**{"request.max.bytes": "1024"}) as client:
        answer = await client.request(method, path, content=body)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert words in answer.json()["message"]


async def test_a_body_of_unknown_length_is_cut_off_where_it_gets_too_long() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 1000

    async with service(**{"request.max.bytes": "5000"}) as client:
        try:
            status = (await client.post("/bytes", content=endless())).status_code
        except (httpx2.WriteError, httpx2.ReadError, httpx2.RemoteProtocolError):
            status = 413  # the server closed the connection while we were still sending
    assert status == 413


def _send(client: httpx2.AsyncClient, data: bytes) -> socket.socket:
    assert client.base_url.port is not None
    connection = socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10)
    connection.sendall(data)
    return connection


async def test_a_client_that_does_not_finish_its_head_is_disconnected() -> None:
    async with service(**{"request.read.timeout.ms": "100"}) as client:
        with _send(client, b"GET /health HTTP/1.1\r\nHos") as connection:
            assert await asyncio.to_thread(connection.recv, 100) == b""


async def test_a_client_that_does_not_finish_its_body_gets_408() -> None:
    async with service(**{"request.read.timeout.ms": "100"}) as client:
        with _send(client, b"POST /bytes HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc") as connection:
            assert b" 408 " in await asyncio.to_thread(connection.recv, 1000)


async def test_an_endless_head_is_refused() -> None:
    async with service(**{"request.header.max.bytes": "2048"}) as client:
        with _send(client, b"GET /health HTTP/1.1\r\n") as connection:

            def send_all() -> bytes:
                try:
                    for number in range(10_000):
                        connection.sendall(b"x-%d: %s\r\n" % (number, b"a" * 100))
                except OSError:
                    pass
                try:
                    return connection.recv(1000)
                except ConnectionResetError:
                    return b" 400 "

            assert b" 400 " in await asyncio.to_thread(send_all)


async def test_half_a_head_behind_another_request_is_not_waited_for() -> None:
    async with service(**{"request.read.timeout.ms": "100"}) as client:
        with _send(client, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
            assert b" 200 " in await asyncio.to_thread(_receive_until, connection, b'{"status":"ok"}')
            connection.sendall(b"GET /he")
            assert await asyncio.to_thread(connection.recv, 1000) == b""


async def test_a_client_that_does_not_read_its_answer_is_disconnected() -> None:
    async with service(**{"request.read.timeout.ms": "100"}) as client:
        with _send(client, b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
            assert b" 200 " in await asyncio.to_thread(connection.recv, 1000)
            await asyncio.to_thread(_wait_until_the_server_lets_go, connection)


def _receive_until(connection: socket.socket, end: bytes) -> bytes:
    """A head and a body may come one after the other."""
    received = b""
    while not received.endswith(end):
        part = connection.recv(1000)
        assert part, f"the server closed the connection after {received!r}"
        received += part
    return received


def _wait_until_the_server_lets_go(connection: socket.socket) -> None:
    ours = connection.getsockname()
    deadline = time.monotonic() + 10
    while any(other.raddr == ours and other.status == "ESTABLISHED" for other in psutil.Process().net_connections()):
        assert time.monotonic() < deadline, "the server still waits"
        time.sleep(0.01)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 hello\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_what_is_no_http_is_answered_in_the_envelope(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with service() as client:
        with _send(client, sent) as connection:
            answer = await asyncio.to_thread(connection.recv, 1000)
    assert b" 400 " in answer
    assert b'{"error_code":400,"message":' in answer
    assert "Fatal error" not in caplog.text


async def test_a_client_that_announces_too_long_a_body_reads_why_after_sending_it() -> None:
    async with service(**{"request.max.bytes": "1024"}) as client:
        for _ in range(3):  # the connection stays usable
            answer = await client.post("/bytes", content=b"x" * 3_000_000)
            assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


async def test_a_client_that_waits_for_leave_to_send_too_long_a_body_gets_none() -> None:
    async with service(**{"request.max.bytes": "1024"}) as client:
        head = b"POST /bytes HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n"
        with _send(client, head) as connection:
            answer = await asyncio.to_thread(connection.recv, 1000)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b'{"count":1,"many":[' + b"0," * 1_000_000 + b"0]}", {}, 413, "The body has more than 20000 values"),
        (b"[" + b"[]," * 1_000_000 + b"[]]", {}, 413, "The body has more than 20000 values"),
        (b"[" * 1_000_000, {}, 413, "The body has more than 20000 values"),
        (b"[" * 19_000, {}, 400, "nested too deeply"),
        (b'{"count":"' + b"," * 100_000 + b'"}', {}, 400, "Body count ',,,,"),
        (b'{"count":1,"many":[' + b'"x",' * 10_000 + b'"x"]}', {}, 400, "; and 9991 more"),
        (b'{"count":"\\ud800"}', {}, 400, "unpaired surrogate"),
        (b'{"count":{"\\ud800":1}}', {}, 400, "unpaired surrogate"),
        (b"\x1f\x8b\x08", {}, 400, "not encoded in UTF-8"),
        (b"\x1f\x8b\x08", {"content-encoding": "gzip"}, 415, "The content-encoding gzip is not supported"),
        (b"9" * 5000, {}, 400, "error parsing the body"),
    ],
)
async def test_a_hostile_body_is_refused_at_once(body: bytes, headers: dict[str, str], status: int, words: str) -> None:
    async with service() as client:
        started = time.process_time()
        answer = await client.post("/things", content=body, headers=headers)
    assert time.process_time() - started < PATIENCE_S
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    assert words in answer.json()["message"]
    assert len(answer.content) < 3000


async def test_requests_follow_each_other_on_one_connection() -> None:
    async with service(**{"request.header.max.bytes": "1024"}) as client:
        for _ in range(50):
            assert (await client.post("/bytes", content=b"x" * 100)).json() == 100


async def test_reads_go_on_while_all_that_is_sent_takes_long() -> None:
    async with service(**{"worker.threads": "4"}) as client:
        slow = [asyncio.create_task(client.post("/slow")) for _ in range(8)]
        try:
            assert (await client.get("/things/1", timeout=60)).json() == 1
            assert not any(task.done() for task in slow)
        finally:
            await client.get("/go")
            answers = await asyncio.gather(*slow)
    assert [answer.status_code for answer in answers] == [200] * 8


async def test_a_request_that_waits_too_long_for_its_turn_gets_503() -> None:
    async with service(**{"worker.threads": "1", "request.queue.timeout.ms": "50"}) as client:
        first = asyncio.create_task(client.post("/slow"))
        refused = await client.post("/bytes", content=b"x")
        while refused.status_code != 503:  # the first one may not have its turn yet
            refused = await client.post("/bytes", content=b"x")
        assert "request.queue.timeout.ms" in refused.json()["message"]
        await client.get("/go")
        assert (await first).status_code == 200


async def test_every_listener_is_served_and_announced() -> None:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0,http://:0", "shutdown.timeout.ms": "0"})
    app = create_app(title="t", description="d", error_type=Refused, collect=lambda: [Family(name="x", help="y")])
    async with serving(app, settings) as urls, httpx2.AsyncClient(timeout=60) as client:
        assert [(await client.get(f"{url}/health")).status_code for url in urls] == [200, 200]
        assert urls[1].startswith("http://localhost:")
        assert endpoints(urls) == {"listeners": ",".join(urls), "metrics": f"{urls[0]}/metrics"}


async def test_an_error_while_an_app_is_served_is_raised_as_it_is() -> None:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0"})
    app = create_app(title="t", description="d", error_type=Refused, collect=list)
    with pytest.raises(Refused):
        async with serving(app, settings):
            raise Refused


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "server.pem"
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(path))
    authority.cert_pem.write_to_path(str(path), append=True)
    return path


async def test_https_is_served_with_a_certificate(certificate: Path) -> None:
    changes = {"listeners": "https://127.0.0.1:0", "ssl.certificate.location": str(certificate)}
    async with service(**changes) as client:
        assert client.base_url.scheme == "https"
        assert (await client.get("/health")).json() == {"status": "ok"}


async def test_a_method_that_is_not_allowed_is_answered_with_those_that_are() -> None:
    async with service() as client:
        answer = await client.delete("/things/1")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


async def test_all_methods_of_a_path_are_allowed_though_each_has_a_route_of_its_own() -> None:
    app = create_app(title="t", description="d", error_type=Refused, collect=RequestCounts("test").families)
    for method in ("PUT", "GET", "DELETE"):
        router = APIRouter()
        router.add_api_route("/things/{number}", lambda number: number, methods=[method])
        app.include_router(router)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        answer = await client.post("/things/1")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, PUT, DELETE")


class Later(Refused):
    status = 503
    retry_after_seconds = 7


async def test_an_error_that_may_pass_tells_when_to_try_again() -> None:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0"})
    counts = RequestCounts("test")
    app = create_app(title="t", description="d", error_type=Refused, collect=counts.families)

    @app.get("/later")
    def later() -> None:
        raise Later

    async with (
        serving(with_limits(app, settings, counts), settings) as urls,
        httpx2.AsyncClient(base_url=urls[0], timeout=60) as client,
    ):
        answer = await client.get("/later")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
