from importlib.metadata import version
from threading import current_thread
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Path, Query
from pydantic import BaseModel

from rest_proxy.routes.document import TAGS, describe

V2 = "application/vnd.kafka.v2+json"
JSON = "application/json"


class Thing(BaseModel):
    """A thing."""

    name: str


Number = Annotated[int, Path(ge=0, le=2**63 - 2)]


@pytest.fixture
def document() -> dict[str, Any]:
    app = FastAPI()
    old, new = APIRouter(tags=["v2 topics"]), APIRouter(prefix="/v3", tags=["v3 topics"])

    @old.post("/things/{number}")
    def put_old_thing(number: Number, body: Thing | None = None) -> Thing:
        """Put a thing."""
        raise NotImplementedError

    @new.post("/things")
    def put_thing(*, limit: Annotated[int | None, Query(ge=1)] = None, body: Thing | None = None) -> Thing:
        """Put a thing."""
        raise NotImplementedError

    @new.get("/acls")
    def list_acls_of_all(*, kind: str = "UNKNOWN") -> list[Thing]:
        """List."""
        raise NotImplementedError

    stream = {"application/x-ndjson": {"schema": {}}, "text/event-stream": {"schema": {"type": "string"}}}

    @new.get("/stream", response_model=None, responses={200: {"content": stream}, 299: {"model": Thing}})
    def stream_things() -> None:
        """Stream."""

    @new.get("/page", response_model=None, responses={200: {"content": dict(stream), "model": Thing}})
    def page_of_things() -> None:
        """Page."""

    for router in (old, new):
        app.include_router(router)
    describe(app)
    return app.openapi()


def test_bodies_of_api_v2_have_their_own_media_type(document: dict[str, Any]) -> None:
    operation = document["paths"]["/things/{number}"]["post"]
    assert list(operation["requestBody"]["content"]) == [V2]
    assert {name for answer in operation["responses"].values() for name in answer["content"]} == {V2}


def test_bodies_of_api_v3_are_json(document: dict[str, Any]) -> None:
    operation = document["paths"]["/v3/things"]["post"]
    assert list(operation["requestBody"]["content"]) == [JSON]
    assert {name for answer in operation["responses"].values() for name in answer["content"]} == {JSON}


def test_a_body_is_needed_in_api_v3_though_its_route_does_without(document: dict[str, Any]) -> None:
    old = document["paths"]["/things/{number}"]["post"]["requestBody"]
    new = document["paths"]["/v3/things"]["post"]["requestBody"]
    assert (old["required"], new["required"]) == (False, True)
    assert new["content"][JSON]["schema"] == {"$ref": "#/components/schemas/Thing"}


@pytest.mark.parametrize(
    ("path", "method", "statuses"),
    [
        ("/things/{number}", "post", "200 400 403 404 406 408 413 415 500 503"),
        ("/v3/things", "post", "200 400 403 406 408 413 415 500 503"),
        ("/v3/acls", "get", "200 400 403 406 500 503"),
        ("/v3/stream", "get", "200 400 403 406 500 503"),
    ],
)
def test_errors_of_the_layers_around_are_documented(
    document: dict[str, Any], path: str, method: str, statuses: str
) -> None:
    assert list(document["paths"][path][method]["responses"]) == statuses.split()


def test_no_model_of_the_framework_is_left(document: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in str(document)
    assert {"ErrorBody", "Thing", "V2ProduceAvro", "V2ProduceRecord"} <= set(document["components"]["schemas"])


def test_parameters_are_never_null_and_needed_where_unknown_is_refused(document: dict[str, Any]) -> None:
    (limit,) = document["paths"]["/v3/things"]["post"]["parameters"]
    assert (limit["schema"]["type"], limit["schema"]["minimum"], limit["required"]) == ("integer", 1, False)
    (kind,) = document["paths"]["/v3/acls"]["get"]["parameters"]
    assert kind["required"]
    assert "default" not in kind["schema"]


def test_bounds_are_whole_numbers_and_exact(document: dict[str, Any]) -> None:
    (number,) = document["paths"]["/things/{number}"]["post"]["parameters"]
    assert (repr(number["schema"]["minimum"]), number["schema"]["maximum"]) == ("0", 2**63 - 2)


@pytest.mark.parametrize(
    ("path", "media_types"),
    [
        ("/v3/stream", ["application/x-ndjson", "text/event-stream"]),
        ("/v3/page", [JSON, "application/x-ndjson", "text/event-stream"]),
    ],
)
def test_streams_come_last(document: dict[str, Any], path: str, media_types: list[str]) -> None:
    assert list(document["paths"][path]["get"]["responses"]["200"]["content"]) == media_types


def test_the_version_is_that_of_the_release(document: dict[str, Any]) -> None:
    assert document["info"]["version"] == version("caudal")


def test_summaries_are_sentences(document: dict[str, Any]) -> None:
    assert document["paths"]["/v3/acls"]["get"]["summary"] == "List ACLs of all"


def test_tags_that_are_used_are_explained_in_their_order(document: dict[str, Any]) -> None:
    assert document["tags"] == [{"name": name, "description": TAGS[name]} for name in ("v2 topics", "v3 topics")]


async def test_the_document_is_served_off_the_event_loop() -> None:
    app = FastAPI()
    threads = []

    def written() -> dict[str, Any]:
        threads.append(current_thread())
        return {"paths": {}, "info": {}, "components": {"schemas": {}}}

    app.openapi = written  # type: ignore[method-assign]  # as the framework advises
    describe(app)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        answers = [await client.get("/openapi.json") for _ in range(2)]
    assert [answer.json()["servers"][0]["url"] for answer in answers] == ["/", "/"]
    assert len(threads) == 1
    assert threads[0] is not current_thread()
