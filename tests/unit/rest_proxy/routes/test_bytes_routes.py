"""Routes that read requests as bytes."""

import asyncio
import logging
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request, Response

from core_broker.service.web.asgi import Message, Scope
from rest_proxy.routes.bytes_routes import Shortcut, route_class


async def echo(request: Request) -> Response:
    """Answers with the path's parts and the body; fails for some."""
    body = await request.body()
    if body == b"bug":
        raise RuntimeError("a bug")
    return Response(f"{request.path_params} {body.decode()}")


def router() -> APIRouter:
    """One route past the framework, and one through it."""
    routes = APIRouter(route_class=route_class(echo))

    @routes.post("/things/{thing}")
    async def post_thing(thing: int) -> None:
        """Declared, never called."""

    return routes


def answered(application: Any, method: str, path: str, body: bytes = b"") -> tuple[int, str, Scope]:
    """The status and text of an answer, and what is known of the request afterwards."""
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode(), scope


def app_and_shortcut() -> tuple[FastAPI, Shortcut]:
    """The framework's app, and the way past it."""
    app, routes = FastAPI(), router()
    app.include_router(routes)

    @app.get("/things/{thing}")
    async def get_thing(thing: int) -> int:
        return thing

    return app, Shortcut(app, [routes])


@pytest.mark.parametrize("way", [0, 1], ids=["through the framework", "past it"])
def test_a_request_is_answered_alike_on_both_ways(way: int) -> None:
    status, text, scope = answered(app_and_shortcut()[way], "POST", "/things/a%20b", b"hello")
    assert (status, text) == (200, "{'thing': 'a%20b'} hello")
    assert scope["route"].path == "/things/{thing}"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("GET", "/things/1", (200, "1")), ("PUT", "/things/1", (405, '{"detail":"Method Not Allowed"}'))],
)
def test_other_requests_go_through_the_framework(method: str, path: str, expected: tuple[int, str]) -> None:
    assert answered(app_and_shortcut()[1], method, path)[:2] == expected


def test_a_fault_of_ours_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        status, text, _ = answered(app_and_shortcut()[1], "POST", "/things/1", b"bug")
    assert status == 500
    assert text == '{"error_code":500,"message":"HTTP 500 Internal Server Error"}'
    assert "a bug" in caplog.text
