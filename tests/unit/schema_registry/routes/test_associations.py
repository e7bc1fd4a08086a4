from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from core_broker.service.clock import ManualClock
from core_broker.service.web.app import create_app
from schema_registry.errors import RegistryError
from schema_registry.registry.associations import Associations
from schema_registry.registry.registry import Registry
from schema_registry.routes import associations, schemas, subjects
from schema_registry.routes.paths import RegistryPaths
from schema_registry.settings import RegistrySettings
from tests.support.registry_access import open_to_all
from tests.support.registry_database import new_database

RESOURCE = {"resourceName": "orders", "resourceNamespace": "lkc1", "resourceId": "id-1"}
WEAK = {"subject": "s", "lifecycle": "WEAK"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    database = new_database(tmp_path)
    clock = ManualClock(1_000)
    registry = Registry(database, RegistrySettings(), clock)
    app = create_app(title="associations", description="", error_type=RegistryError, collect=list)
    open_to_all(app)
    app.include_router(schemas.router(registry))
    app.include_router(subjects.router(registry))
    app.include_router(associations.router(Associations(database, clock, schemas=registry)))
    with TestClient(RegistryPaths(app)) as client:
        for subject in ("s", ":.staging:s"):
            client.post(f"/subjects/{subject}/versions", json={"schema": '"int"'})
        yield client
    database.close()


def body(*wanted: Mapping[str, object], **more: object) -> dict[str, object]:
    return {**RESOURCE, **more, "associations": list(wanted)}


def test_all_operations_answer(client: TestClient) -> None:
    calls: list[tuple[str, str, object, int]] = [
        ("POST", "/associations?dryRun=true", body(WEAK), 200),
        ("POST", "/associations", body(WEAK), 200),
        ("PUT", "/associations", body({"lifecycle": "STRONG"}), 200),
        ("PUT", "/associations/resources/id-1", body(WEAK), 200),
        ("GET", "/associations/subjects/s", None, 200),
        ("GET", "/associations/resources/id-1", None, 200),
        ("GET", "/associations/resources/lkc1/orders", None, 200),
        ("POST", "/associations:batchGet?includeSchemas=true", {"requests": [{"resourceId": "id-1"}]}, 200),
        (
            "POST",
            "/associations:batchMutate",
            {"requests": [body({"opType": "UPSERT", "associationType": "key", **WEAK})]},
            200,
        ),
        ("DELETE", "/associations/resources/id-1?dryRun=true", None, 204),
        ("DELETE", "/associations/resources/id-1?associationType=key", None, 204),
        ("DELETE", "/associations/resources/id-1?cascadeLifecycle=true", None, 204),
        ("DELETE", "/associations/resources/id-1", None, 404),
    ]

    answered = [(method, path, client.request(method, path, json=sent)) for method, path, sent, _ in calls]

    assert [(method, path, answer.status_code) for method, path, answer in answered] == [
        (method, path, status) for method, path, _, status in calls
    ]


@pytest.mark.parametrize(
    "query,found",
    [
        ("resourceType=topic", ["s"]),
        ("associationType=value&associationType=key", ["s"]),
        ("associationType=key", []),
        ("lifecycle=WEAK", ["s"]),
        ("lifecycle=STRONG", []),
        ("resourceType=topic&aliases=true", ["s"]),
        ("resourceType=topic&latestOnly=true&ruleType=CEL", []),
        ("", [":.staging:s", "s"]),
    ],
)
def test_schemas_are_found_by_the_associations_of_their_subjects(
    client: TestClient, query: str, found: list[str]
) -> None:
    client.post("/associations", json=body(WEAK))
    listed = client.get(f"/schemas?subjectPrefix=:*:&{query}").json()
    assert [schema["subject"] for schema in listed] == found


def test_an_error_comes_in_the_envelope(client: TestClient) -> None:
    answer = client.delete("/associations/resources/id-1")

    assert answer.status_code == 404
    assert answer.json() == {"error_code": 40410, "message": "Association for 'id-1' not found."}


def test_filters_and_pages_are_parameters(client: TestClient) -> None:
    client.post("/associations", json=body(WEAK, {**WEAK, "associationType": "key"}))

    def kinds(**parameters: Any) -> list[str]:
        answer = client.get("/associations/resources/-/orders", params=parameters)
        return [association["associationType"] for association in answer.json()]

    assert kinds() == ["key", "value"]
    assert kinds(associationType=["value", "key"]) == ["key", "value"]
    assert kinds(associationType="value") == ["value"]
    assert kinds(lifecycle="STRONG") == []
    assert kinds(lifecycle="WEAK", resourceType="topic") == ["key", "value"]
    assert kinds(resourceType="bucket") == []
    assert kinds(offset=1, limit=1) == ["value"]
    assert kinds(limit=2**31 - 1) == ["key", "value"]
    assert kinds(offset=2**31 - 1) == []
    answer = client.get("/associations/resources/-/orders", params={"lifecycle": "LOOSE"})
    assert answer.json()["error_code"] == 42212


def test_the_context_is_a_parameter_or_in_the_path(client: TestClient) -> None:
    client.post("/associations", params={"context": ":.staging:"}, json=body(WEAK))
    client.post("/contexts/.staging/associations", json=body(WEAK, resourceId="id-2"))

    found = client.get(f"/associations/subjects/{quote(':.staging:s', safe='')}").json()
    assert [association["resourceId"] for association in found] == ["id-1", "id-2"]


def test_path_and_body_must_name_the_same_resource(client: TestClient) -> None:
    answer = client.put("/associations/resources/id-2", json=body(WEAK))

    assert answer.status_code == 422
    assert answer.json()["error_code"] == 42212


def test_a_resource_id_may_hold_a_slash(client: TestClient) -> None:
    client.put(f"/associations/resources/{quote('lkc1/orders', safe='')}", json=body(WEAK, resourceId=None))

    assert len(client.get(f"/associations/resources/{quote('lkc1/orders', safe='')}").json()) == 1
    assert client.get("/associations/resources/lkc1/orders").json()[0]["resourceId"] == "lkc1/orders"


def test_parts_of_a_batch_fail_alone(client: TestClient) -> None:
    answer = client.post(
        "/associations:batchMutate",
        json={"requests": [body({"opType": "CREATE", **WEAK}), body({"opType": "CREATE", "subject": "unknown"})]},
    )

    first, second = answer.json()["results"]
    assert answer.status_code == 200
    assert first["result"]["associations"][0]["subject"] == "s"
    assert second["error"]["error_code"] == 40903


@pytest.mark.parametrize("sent", [{"requests": []}, {}])
def test_an_empty_batch_is_refused(client: TestClient, sent: dict[str, object]) -> None:
    assert client.post("/associations:batchMutate", json=sent).json()["error_code"] == 42212
    assert client.post("/associations:batchGet", json=sent).json()["error_code"] == 42212
