from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from core_broker.service.clock import ManualClock
from core_broker.service.web.app import create_app
from schema_registry.errors import RegistryError
from schema_registry.registry.deks import Deks
from schema_registry.registry.kms import LOCAL, LocalKms
from schema_registry.routes.deks import router
from schema_registry.routes.paths import RegistryPaths
from tests.support.registry_access import open_to_all
from tests.support.registry_database import new_database

KEKS = "/dek-registry/v1/keks"
KEK = {"name": "kek1", "kmsType": "local-kms", "kmsKeyId": "mykey"}
DEK = {"subject": "orders-value", "encryptedKeyMaterial": "d3JhcHBlZA=="}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    database = new_database(tmp_path)
    app = create_app(title="keys", description="", error_type=RegistryError, collect=list)
    open_to_all(app)
    app.include_router(router(Deks(database, ManualClock(1_000), drivers={LOCAL: LocalKms("mysecret")})))
    with TestClient(RegistryPaths(app)) as client:
        yield client
    database.close()


def test_all_operations_answer(client: TestClient) -> None:
    calls: list[tuple[str, str, object, int]] = [
        ("POST", "", KEK, 200),
        ("GET", "", None, 200),
        ("GET", "/kek1", None, 200),
        ("PUT", "/kek1", {"shared": True}, 200),
        ("POST", "/kek1/test", None, 200),
        ("POST", "/kek1/deks", {"subject": "orders-value"}, 200),
        ("POST", "/kek1/deks/payments-value", {"version": 2}, 200),
        ("GET", "/kek1/deks", None, 200),
        ("GET", "/kek1/deks/orders-value", None, 200),
        ("GET", "/kek1/deks/orders-value/versions", None, 200),
        ("GET", "/kek1/deks/payments-value/versions/latest", None, 200),
        ("DELETE", "/kek1/deks/payments-value/versions/2", None, 204),
        ("POST", "/kek1/deks/payments-value/versions/2/undelete", None, 204),
        ("DELETE", "/kek1/deks/orders-value", None, 204),
        ("POST", "/kek1/deks/orders-value/undelete", None, 204),
        ("DELETE", "/kek1/deks/orders-value", None, 204),
        ("DELETE", "/kek1/deks/payments-value", None, 204),
        ("DELETE", "/kek1", None, 204),
        ("POST", "/kek1/undelete", None, 204),
    ]

    answered = [(method, path, client.request(method, KEKS + path, json=body)) for method, path, body, _ in calls]

    assert [(method, path, answer.status_code) for method, path, answer in answered] == [
        (method, path, status) for method, path, _, status in calls
    ]


def test_an_error_comes_in_the_envelope(client: TestClient) -> None:
    answer = client.get(f"{KEKS}/kek1")

    assert answer.status_code == 404
    assert answer.json() == {"error_code": 40470, "message": "Key 'kek1' not found"}


def test_deleted_keys_are_listed_when_asked_for(client: TestClient) -> None:
    client.post(KEKS, json=KEK)
    client.delete(f"{KEKS}/kek1")

    assert client.get(KEKS).json() == []
    assert client.get(KEKS, params={"deleted": "true"}).json() == ["kek1"]
    assert client.get(f"{KEKS}/kek1", params={"deleted": "true"}).json()["deleted"] is True
    assert client.delete(f"{KEKS}/kek1", params={"permanent": "true"}).status_code == 204


def test_lists_come_in_pages(client: TestClient) -> None:
    client.post(KEKS, json=KEK)
    for subject in "abcd":
        client.post(f"{KEKS}/kek1/deks", json={**DEK, "subject": subject})

    assert client.get(f"{KEKS}/kek1/deks", params={"offset": 1, "limit": 2}).json() == ["b", "c"]
    assert client.get(f"{KEKS}/kek1/deks", params={"offset": 2}).json() == ["c", "d"]
    assert client.get(KEKS, params={"limit": 0}).json() == []


def test_several_prefixes_of_subjects(client: TestClient) -> None:
    for name, subject in (("a", "orders-value"), ("b", "payments-value"), ("c", "users-value")):
        client.post(KEKS, json={**KEK, "name": name})
        client.post(f"{KEKS}/{name}/deks", json={**DEK, "subject": subject})

    assert client.get(KEKS, params={"subjectPrefix": ["orders", "users"]}).json() == ["a", "c"]


def test_a_subject_may_hold_a_slash(client: TestClient) -> None:
    client.post(KEKS, json=KEK)
    path = f"{KEKS}/kek1/deks/{quote('orders/eu-value', safe='')}"

    assert client.post(path, json={**DEK, "subject": "orders/eu-value"}).json()["subject"] == "orders/eu-value"
    assert client.get(f"{path}/versions").json() == [1]


def test_a_context_in_the_path_is_part_of_the_subject(client: TestClient) -> None:
    client.post(KEKS, json=KEK)
    answer = client.post(f"/contexts/.staging{KEKS}/kek1/deks/orders-value", json=DEK)

    assert answer.json()["subject"] == ":.staging:orders-value"
    assert client.get(f"/contexts/.staging{KEKS}").json() == ["kek1"]
    assert client.get(f"/contexts/.production{KEKS}").json() == []


def test_path_and_body_must_name_the_same_subject(client: TestClient) -> None:
    client.post(KEKS, json=KEK)

    assert client.post(f"{KEKS}/kek1/deks/payments-value", json=DEK).json()["error_code"] == 42271


def test_a_null_in_a_change_is_not_the_same_as_nothing(client: TestClient) -> None:
    client.post(KEKS, json={**KEK, "doc": "for orders"})

    assert client.put(f"{KEKS}/kek1", json={"shared": False}).json()["doc"] == "for orders"
    assert "doc" not in client.put(f"{KEKS}/kek1", json={"doc": None}).json()


def test_unknown_properties_and_parameters_are_ignored(client: TestClient) -> None:
    answer = client.post(KEKS, params={"context": ".staging"}, json={**KEK, "newer": 1})

    assert answer.status_code == 200
    assert "newer" not in answer.json()


@pytest.mark.parametrize("query", [{"testSharing": "true"}, {}])
def test_sharing_is_tried_only_when_asked_for(client: TestClient, query: dict[str, str]) -> None:
    answer = client.post(KEKS, params=query, json={**KEK, "kmsType": "aws-kms", "shared": True})

    assert answer.status_code == (500 if query else 200)
    assert answer.json().get("error_code") == (50070 if query else None)


def test_rewrap_is_a_parameter(client: TestClient) -> None:
    client.post(KEKS, json=KEK)
    client.post(f"{KEKS}/kek1/deks", json=DEK)
    other = {**DEK, "encryptedKeyMaterial": "b3RoZXI="}

    assert client.post(f"{KEKS}/kek1/deks", json=other).json()["error_code"] == 40971
    answer = client.post(f"{KEKS}/kek1/deks", params={"rewrap": "true"}, json=other)
    assert answer.json()["encryptedKeyMaterial"] == "b3RoZXI="
