"""The API describes itself, every operation with its answers."""

import json
from importlib.metadata import version
from typing import Any

import pytest

from connect.rest.document import TAGS
from tests.support.connect_api import Api


@pytest.fixture
async def document(api: Api) -> dict[str, Any]:
    described: dict[str, Any] = (await api.get("/openapi.json")).json()
    return described


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    paths = document["paths"].items()
    return [(method, path, operation) for path, methods in paths for method, operation in methods.items()]


async def test_every_operation_is_there(document: dict[str, Any]) -> None:
    there = {f"{method.upper()} {path}" for method, path, _ in operations(document)}
    one = "/connectors/{connector}"
    assert there == {
        "GET /",
        "GET /health",
        "GET /metrics",
        "GET /security/acls",
        "POST /security/acls",
        "DELETE /security/acls",
        "GET /connectors",
        "POST /connectors",
        "POST /connectors/dry-run",
        f"GET {one}",
        f"DELETE {one}",
        f"GET {one}/config",
        f"PUT {one}/config",
        f"PATCH {one}/config",
        f"GET {one}/status",
        f"GET {one}/tasks",
        f"GET {one}/tasks-config",
        f"GET {one}/tasks/{{task}}/status",
        f"POST {one}/tasks/{{task}}/restart",
        f"POST {one}/restart",
        f"PUT {one}/pause",
        f"PUT {one}/resume",
        f"PUT {one}/stop",
        f"GET {one}/topics",
        f"PUT {one}/topics/reset",
        f"GET {one}/offsets",
        f"PATCH {one}/offsets",
        f"DELETE {one}/offsets",
        f"GET {one}/dlq",
        f"POST {one}/dlq/redrive",
        "GET /connector-plugins",
        "GET /connector-plugins/{plugin}/config",
        "PUT /connector-plugins/{plugin}/config/validate",
        "GET /admin/loggers",
        "GET /admin/loggers/{logger}",
        "PUT /admin/loggers/{logger}",
    }


async def test_every_operation_is_explained(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert operation["summary"], path
        assert operation["description"], path
        assert set(operation["tags"]) <= set(TAGS), path
        for parameter in operation.get("parameters", []):
            assert parameter["description"], path


async def test_answers_and_failures_have_schemas(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert "422" not in operation["responses"], path
        if path not in ("/health", "/metrics"):
            failure = operation["responses"]["500"]["content"]["application/json"]["schema"]
            assert failure == {"$ref": "#/components/schemas/ErrorBody"}, path


async def test_schemas_are_explained(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for field in schema.get("properties", {}).values():
            assert field.get("description"), name


async def test_ids_of_operations_differ(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)


async def test_the_document_names_the_release_and_nothing_of_the_framework(document: dict[str, Any]) -> None:
    assert document["info"]["version"] == version("caudal")
    assert "HTTPValidationError" not in json.dumps(document)
