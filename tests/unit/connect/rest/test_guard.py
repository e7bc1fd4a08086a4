"""A worker does not start with a route that is not in the access table."""

import pytest
from fastapi import APIRouter, Response

from connect.rest.forwarding import Leader, led_route
from connect.rest.guard import Guard, require_rows
from connect.settings import ConnectSettings
from core_broker.web_access.rules import Rules

GUARDED = led_route(Leader(ConnectSettings()), timeout_seconds=1, guard=Guard(Rules(ConnectSettings())))


def router_with(path: str, *, guarded: bool = True) -> APIRouter:
    routes = APIRouter(prefix="/connectors", route_class=GUARDED) if guarded else APIRouter(prefix="/connectors")

    @routes.get(path)
    def route() -> Response:
        return Response()

    return routes


def test_a_route_in_the_table_is_served() -> None:
    require_rows([router_with("/{connector}/status")], GUARDED)


def test_a_route_without_a_row_is_not_served() -> None:
    with pytest.raises(LookupError, match="GET /connectors/{connector}/secrets"):
        require_rows([router_with("/{connector}/secrets")], GUARDED)


def test_a_route_that_is_not_guarded_is_not_served() -> None:
    with pytest.raises(LookupError, match="GET /connectors"):
        require_rows([router_with("", guarded=False)], GUARDED)
