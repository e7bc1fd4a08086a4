"""The registry, put together."""

from pathlib import Path

from fastapi.routing import APIRoute

from core_broker.service.clock import SystemClock
from core_broker.service.web.limits import BoundedRoute
from schema_registry.app import _routers
from schema_registry.registry.registry import Registry
from schema_registry.settings import RegistrySettings
from tests.support.registry_database import new_database

# Confluent's operations that are ours too: method and path, as its documents spell them.
OPERATIONS = """
GET / · POST / · GET /schemas/types · GET /schemas · GET /schemas/ids/{} · GET /schemas/ids/{}/schema
GET /schemas/ids/{}/subjects · GET /schemas/ids/{}/versions · GET /schemas/guids/{} · GET /schemas/guids/{}/ids
GET /subjects · POST /subjects/{} · DELETE /subjects/{} · GET /subjects/{}/versions · POST /subjects/{}/versions
GET /subjects/{}/versions/{} · DELETE /subjects/{}/versions/{} · GET /subjects/{}/versions/{}/schema
GET /subjects/{}/versions/{}/referencedby · POST /subjects/{}/versions/{}/tags · GET /subjects/{}/metadata
POST /compatibility/subjects/{}/versions · POST /compatibility/subjects/{}/versions/{}
GET /config · PUT /config · DELETE /config · GET /config/{} · PUT /config/{} · DELETE /config/{}
GET /mode · PUT /mode · DELETE /mode · GET /mode/{} · PUT /mode/{} · DELETE /mode/{}
GET /contexts · DELETE /contexts/{} · GET /v1/metadata/id · GET /v1/metadata/version · GET /v1/metadata/deployment
GET /associations/subjects/{} · GET /associations/resources/{}/{} · GET /associations/resources/{}
POST /associations · PUT /associations · PUT /associations/resources/{} · DELETE /associations/resources/{}
POST /associations:batchGet · POST /associations:batchMutate
GET /dek-registry/v1/keks · POST /dek-registry/v1/keks · GET /dek-registry/v1/keks/{} · PUT /dek-registry/v1/keks/{}
DELETE /dek-registry/v1/keks/{} · POST /dek-registry/v1/keks/{}/undelete · POST /dek-registry/v1/keks/{}/test
GET /dek-registry/v1/keks/{}/deks · POST /dek-registry/v1/keks/{}/deks · GET /dek-registry/v1/keks/{}/deks/{}
POST /dek-registry/v1/keks/{}/deks/{} · DELETE /dek-registry/v1/keks/{}/deks/{}
GET /dek-registry/v1/keks/{}/deks/{}/versions · GET /dek-registry/v1/keks/{}/deks/{}/versions/{}
POST /dek-registry/v1/keks/{}/deks/{}/undelete · DELETE /dek-registry/v1/keks/{}/deks/{}/versions/{}
POST /dek-registry/v1/keks/{}/deks/{}/versions/{}/undelete
"""


def routes(folder: Path) -> list[APIRoute]:
    database = new_database(folder)
    registry = Registry(database, RegistrySettings(), SystemClock())
    routers = _routers(registry, database, RegistrySettings(), on_subjects_removed=lambda: None)
    found = [route for router in routers for route in router.routes]
    database.close()
    assert all(isinstance(route, APIRoute) for route in found)
    return [route for route in found if isinstance(route, APIRoute)]


def test_every_operation_has_its_route_and_there_are_no_others(tmp_path: Path) -> None:
    wanted = {operation.strip() for line in OPERATIONS.strip().splitlines() for operation in line.split("·")}
    served = {
        f"{method} {'/'.join('{}' if part.startswith('{') else part for part in route.path.split('/'))}"
        for route in routes(tmp_path)
        for method in route.methods or ()
    }
    assert served == wanted


def test_every_route_bounds_what_it_is_sent(tmp_path: Path) -> None:
    assert [route.path for route in routes(tmp_path) if not isinstance(route, BoundedRoute)] == []
