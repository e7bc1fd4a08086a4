"""Callers: routes learn who they are, and never show what they logged in with."""

import io
from typing import Any

import pytest
from fastapi import FastAPI, Request
from rich.console import Console
from starlette.testclient import TestClient

from core_broker.protocol.principals import Principal
from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.web_access.callers import (
    BearerCredentials,
    Caller,
    CallerDependency,
    PasswordCredentials,
    caller_of,
    set_caller,
)

ALICE = Caller(Principal("User", "alice"), "10.0.0.1", PasswordCredentials("alice", "unmistakable"))


def test_without_a_login_the_caller_is_anonymous() -> None:
    caller = caller_of({"type": "http", "client": ("10.0.0.1", 1)})
    assert caller.is_anonymous
    assert caller.host == "10.0.0.1"
    assert caller.credentials is None


def test_the_caller_of_a_request_is_the_one_of_its_scope() -> None:
    scope: dict[str, Any] = {"type": "http"}
    set_caller(scope, ALICE)
    assert caller_of(scope) is caller_of(Request(scope)) is ALICE


def test_a_route_takes_its_caller_as_a_parameter() -> None:
    app = FastAPI()

    @app.get("/me")
    def me(caller: CallerDependency) -> str:
        return str(caller.principal)

    def as_alice(inner: Application) -> Application:
        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            set_caller(scope, ALICE)
            await inner(scope, receive, send)

        return call

    assert TestClient(as_alice(app)).get("/me").json() == "User:alice"
    assert TestClient(app).get("/me").json() == "User:ANONYMOUS"
    assert app.openapi()["paths"]["/me"]["get"].get("parameters", []) == []


@pytest.mark.parametrize("shown", [ALICE, Caller(credentials=BearerCredentials("unmistakable", 1))])
def test_no_secret_is_shown(shown: Caller) -> None:
    file = io.StringIO()
    Console(file=file).print(shown)
    assert "unmistakable" not in file.getvalue() + repr(shown) + str(shown) + f"{shown.credentials}"
