"""Content negotiation of the proxy, where no records are carried."""

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from rest_proxy.routes.media_types import MediaTypes

V2 = "application/vnd.kafka.v2+json"


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def echo(request: Request) -> str:
        return request.headers.get("content-type", "")

    return TestClient(MediaTypes(app))


@pytest.mark.parametrize(
    "path,accept,expected",
    [
        ("/brokers", "*/*", V2),
        ("/brokers", "application/json", "application/json"),
        ("/topics/t", "application/vnd.kafka+json", "application/vnd.kafka+json"),
        ("/brokers", "application/vnd.kafka.v1+json", "application/vnd.kafka.v1+json"),
        ("/brokers", "*/json", V2),
        ("/brokers", "*", V2),
        ("/v3/clusters", "*/*", "application/json"),
        ("/v3/clusters", "text/html, application/json", "application/json"),
    ],
)
def test_answers_are_called_what_the_client_asked_for(
    client: TestClient, path: str, accept: str, expected: str
) -> None:
    answer = client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, expected)


@pytest.mark.parametrize("path,accept", [("/brokers", "text/plain"), ("/v3/clusters", V2)])
def test_an_answer_that_cannot_be_given_is_406(client: TestClient, path: str, accept: str) -> None:
    answer = client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 406)


@pytest.mark.parametrize("sent", [V2, "application/json; charset=utf-8", "application/octet-stream"])
def test_bodies_are_json_whatever_they_are_called(client: TestClient, sent: str) -> None:
    answer = client.post("/consumers/g", content=b"{}", headers={"content-type": sent})
    assert (answer.status_code, answer.json().partition(";")[0]) == (200, "application/json")


def test_a_body_that_is_no_json_is_415(client: TestClient) -> None:
    answer = client.post("/consumers/g", content=b"<a/>", headers={"content-type": "text/xml"})
    assert (answer.status_code, answer.json()["error_code"]) == (415, 415)


@pytest.mark.parametrize("path", ["/topics/t", "/topics/t/partitions/0", "/consumers/g/instances/i/records"])
def test_where_records_are_carried_the_routes_decide(client: TestClient, path: str) -> None:
    sent = "application/vnd.kafka.avro.v2+json"
    answer = client.post(path, content=b"{}", headers={"content-type": sent, "accept": "text/plain"})
    assert answer.json() == sent
