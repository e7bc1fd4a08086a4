"""Routes and their rights."""

from pathlib import Path

import pytest
from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from core_broker.service.clock import SystemClock
from core_broker.service.web.app import create_app
from schema_registry.app import _routers
from schema_registry.errors import RegistryError
from schema_registry.registry.registry import Registry
from schema_registry.routes.access_table import ROWS
from schema_registry.routes.guard import AccessDependency, Guard, GuardedRoute
from schema_registry.settings import RegistrySettings
from tests.support.registry_access import access_rules, open_to_all
from tests.support.registry_database import new_database


def new_route(path: str) -> APIRouter:
    routes = APIRouter(route_class=GuardedRoute)

    @routes.get(path)
    def route(access: AccessDependency) -> Response:
        return Response(str(access.is_limited))

    return routes


@pytest.mark.parametrize("path,status", [("/new", 403), ("/schemas/types", 200)])
def test_a_route_without_a_row_is_refused(path: str, status: int) -> None:
    app = create_app(title="new", description="", error_type=RegistryError, collect=list)
    app.include_router(new_route(path))
    Guard(access_rules()).install(app)
    assert TestClient(app).get(path).status_code == status


def test_without_rules_it_is_not() -> None:
    app = create_app(title="new", description="", error_type=RegistryError, collect=list)
    app.include_router(new_route("/new"))
    open_to_all(app)
    assert TestClient(app).get("/new").text == "False"


def test_every_route_is_guarded_and_has_a_row(tmp_path: Path) -> None:
    database = new_database(tmp_path)
    registry = Registry(database, RegistrySettings(), SystemClock())
    routers = list(_routers(registry, database, RegistrySettings(), on_subjects_removed=lambda: None))
    database.close()
    routes = [route for router in routers for route in router.routes]
    assert all(isinstance(route, GuardedRoute) for route in routes)
    served = {
        f"{method} {route.path}" for route in routes if isinstance(route, APIRoute) for method in route.methods or ()
    }
    others = {"GET /health", "GET /metrics", "GET /security/acls", "POST /security/acls", "DELETE /security/acls"}
    assert served | others == set(ROWS)
