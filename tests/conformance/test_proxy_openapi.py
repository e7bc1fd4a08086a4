"""The proxy's OpenAPI document: complete, true, and with every route that Confluent's REST proxy has."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.support.furnished_proxy import GROUP, FurnishedProxy, furnished_proxy
from tests.support.service import REPOSITORY

_V2_ROUTES: Final = """
GET /
POST /
GET /brokers
GET /topics
GET /topics/{}
POST /topics/{}
GET /topics/{}/partitions
GET /topics/{}/partitions/{}
POST /topics/{}/partitions/{}
GET /topics/{}/partitions/{}/offsets
POST /consumers/{}
DELETE /consumers/{}/instances/{}
GET /consumers/{}/instances/{}/subscription
POST /consumers/{}/instances/{}/subscription
DELETE /consumers/{}/instances/{}/subscription
GET /consumers/{}/instances/{}/assignments
POST /consumers/{}/instances/{}/assignments
POST /consumers/{}/instances/{}/positions
POST /consumers/{}/instances/{}/positions/beginning
POST /consumers/{}/instances/{}/positions/end
GET /consumers/{}/instances/{}/offsets
POST /consumers/{}/instances/{}/offsets
GET /consumers/{}/instances/{}/records
"""
_V3_ROUTES: Final = """
GET /clusters
GET /clusters/{}
GET /clusters/{}/acls
POST /clusters/{}/acls
DELETE /clusters/{}/acls
POST /clusters/{}/acls:batch
GET /clusters/{}/broker-configs
POST /clusters/{}/broker-configs:alter
GET /clusters/{}/broker-configs/{}
PUT /clusters/{}/broker-configs/{}
DELETE /clusters/{}/broker-configs/{}
GET /clusters/{}/brokers
GET /clusters/{}/brokers/{}
GET /clusters/{}/brokers/-/configs
GET /clusters/{}/brokers/{}/configs
POST /clusters/{}/brokers/{}/configs:alter
GET /clusters/{}/brokers/{}/configs/{}
PUT /clusters/{}/brokers/{}/configs/{}
DELETE /clusters/{}/brokers/{}/configs/{}
GET /clusters/{}/brokers/{}/partition-replicas
GET /clusters/{}/consumer-groups
GET /clusters/{}/consumer-groups/{}
GET /clusters/{}/consumer-groups/{}/consumers
GET /clusters/{}/consumer-groups/{}/consumers/{}
GET /clusters/{}/consumer-groups/{}/consumers/{}/assignments
GET /clusters/{}/consumer-groups/{}/consumers/{}/assignments/{}/partitions/{}
GET /clusters/{}/consumer-groups/{}/lag-summary
GET /clusters/{}/consumer-groups/{}/lags
GET /clusters/{}/consumer-groups/{}/lags/{}/partitions/{}
GET /clusters/{}/topics
POST /clusters/{}/topics
GET /clusters/{}/topics/{}
PATCH /clusters/{}/topics/{}
DELETE /clusters/{}/topics/{}
GET /clusters/{}/topics/-/configs
POST /clusters/{}/topics/-/configs:alter
GET /clusters/{}/topics/{}/configs
POST /clusters/{}/topics/{}/configs:alter
GET /clusters/{}/topics/{}/configs/{}
PUT /clusters/{}/topics/{}/configs/{}
DELETE /clusters/{}/topics/{}/configs/{}
GET /clusters/{}/topics/{}/default-configs
GET /clusters/{}/topics/{}/partitions
GET /clusters/{}/topics/{}/partitions/{}
GET /clusters/{}/topics/{}/partitions/{}/offset
GET /clusters/{}/topics/{}/partitions/{}/replicas
GET /clusters/{}/topics/{}/partitions/{}/replicas/{}
GET /clusters/{}/topics/-/partitions/-/reassignment
GET /clusters/{}/topics/{}/partitions/-/reassignment
GET /clusters/{}/topics/{}/partitions/{}/reassignment
POST /clusters/{}/topics/{}/records
POST /clusters/{}/topics/{}/records:batch
"""
_V2: Final = "application/vnd.kafka.v2+json"
_CHECKS: Final = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method"
)


class Operation(NamedTuple):
    """One path and method, and what the document tells of it."""

    method: str
    path: str
    payload: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FurnishedProxy]:
    with furnished_proxy(tmp_path_factory.mktemp("furnished")) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def document(furnished: FurnishedProxy) -> dict[str, Any]:
    return furnished.document()


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> list[Operation]:
    return [
        Operation(method.upper(), path, payload)
        for path, methods in document["paths"].items()
        for method, payload in methods.items()
    ]


# --- what there is ---


@pytest.mark.parametrize(("prefix", "routes"), [("", _V2_ROUTES), ("/v3", _V3_ROUTES)], ids=["v2", "v3"])
def test_every_route_of_confluents_proxy_is_there(operations: list[Operation], prefix: str, routes: str) -> None:
    ours = {f"{one.method} {re.sub(r'{[^}]+}', '{}', one.path)}" for one in operations}
    theirs = {line.replace(" ", f" {prefix}", 1) for line in routes.split("\n") if line}
    assert theirs - ours == set()


def test_docs_are_a_page_that_shows_the_document(furnished: FurnishedProxy) -> None:
    answer = furnished.http.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "Caudal REST proxy" in answer.text
    assert "/openapi.json" in answer.text


# --- descriptions ---


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []


def test_the_document_tells_what_it_is_about_and_names_no_machine(document: dict[str, Any]) -> None:
    info = document["info"]
    assert info["title"] == "Caudal REST proxy"
    assert len(info["description"]) > 200
    assert [server["url"] for server in document["servers"]] == ["/"]
    assert "127.0.0.1" not in str(document)


def test_every_operation_has_words_and_a_tag_that_is_explained(
    document: dict[str, Any], operations: list[Operation]
) -> None:
    explained = {tag["name"] for tag in document["tags"] if tag["description"]}
    poor = [
        one.name
        for one in operations
        if not (one.payload.get("summary") and one.payload.get("description") and set(one.payload["tags"]) <= explained)
    ]
    assert poor == []
    assert explained == {tag for one in operations for tag in one.payload["tags"]}


def test_operation_ids_are_unique_and_readable(operations: list[Operation]) -> None:
    ids = [one.payload["operationId"] for one in operations]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if not re.fullmatch("[a-z]+([A-Z][a-z]+)*(V2)?", one)] == []


def test_every_parameter_and_every_field_is_described(document: dict[str, Any], operations: list[Operation]) -> None:
    parameters = [
        f"{one.name}: {parameter['name']}"
        for one in operations
        for parameter in one.payload.get("parameters", ())
        if not parameter.get("description")
    ]
    fields = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, payload in schema.get("properties", {}).items()
        if not payload.get("description")
    ]
    assert parameters + fields == []


def test_every_answer_has_a_schema_or_no_body(operations: list[Operation]) -> None:
    bare = [
        f"{one.name}: {status} {media_type}"
        for one in operations
        for status, answer in one.payload["responses"].items()
        for media_type, media in (answer.get("content") or {"none": {}}).items()
        if not media.get("schema") and not (status in ("201", "204") and media_type == "none")
    ]
    assert bare == []


def test_every_error_has_the_envelope(document: dict[str, Any], operations: list[Operation]) -> None:
    schemas = document["components"]["schemas"]
    for one in operations:
        failures = {status: answer for status, answer in one.payload["responses"].items() if status >= "400"}
        if one.payload["tags"] == ["operation"]:
            continue
        assert {"400", "403", "406", "500", "503"} <= set(failures), one.name
        assert ("404" in failures) or "{" not in one.path, one.name
        assert {"408", "413", "415"} <= set(failures) or "requestBody" not in one.payload, one.name
        for answer in failures.values():
            for media in answer["content"].values():
                fields = schemas[media["schema"]["$ref"].rpartition("/")[2]]["properties"]
                assert {"error_code", "message"} <= set(fields), one.name


# --- whether it is true ---


def test_every_example_of_a_body_is_taken(
    furnished: FurnishedProxy, document: dict[str, Any], operations: list[Operation]
) -> None:
    refused = []
    sent = 0
    for one in operations:
        for media_type, media in one.payload.get("requestBody", {}).get("content", {}).items():
            examples = _examples(media, document)
            assert examples, f"{one.name} {media_type} has no example"
            for example in examples:
                path = _prepared(furnished, one, example, f"{one.payload['operationId']}-{sent}")
                answer = furnished.http.request(
                    one.method, path, json=example, headers={"content-type": media_type, "accept": _accepted(one)}
                )
                sent += 1
                if not _is_taken(answer):
                    refused.append(f"{one.name} {media_type} {example}: {answer.text}")
    assert refused == []
    assert sent > 30


def test_answers_of_api_v2_have_the_documented_media_type(
    furnished: FurnishedProxy, operations: list[Operation]
) -> None:
    for one in operations:
        if one.path.startswith("/v3") or one.method != "GET" or one.path.endswith("/records"):
            continue
        path = _filled(one, {"name": "reader-1"}, furnished)
        answer = furnished.http.get(path)
        assert answer.status_code == 200, answer.text
        payload = one.payload["responses"]["200"]["content"]
        assert answer.headers["content-type"] in payload, one.name
        assert one.payload["tags"] == ["operation"] or list(payload) == [_V2], one.name


@pytest.mark.timeout(600)
def test_made_up_requests_are_answered_as_the_document_says(tmp_path: Path) -> None:
    with furnished_proxy(tmp_path) as proxy:
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "SCHEMATHESIS_HOOKS": "tests.support.proxy_fuzz_hooks",
            "PROXY_KNOWN": json.dumps(proxy.known()),
        }
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{proxy.http.base_url}/openapi.json"]
        options = {
            "checks": _CHECKS,
            "phases": "coverage,fuzzing,stateful",
            "max-examples": "3",
            "seed": "1",
            "workers": "2",
            "request-timeout": "20",
            "generation-database": "none",
            "suppress-health-check": "all",
            "warnings": "off",
        }
        words = [f"--{key}={value}" for key, value in options.items()]
        words += ["--continue-on-failure", "--no-color"]
        run = subprocess.run(
            [*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=500
        )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2000:]


def _examples(media: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    if "example" in media:
        return [media["example"]]
    if "examples" in media:
        return [example["value"] for example in media["examples"].values()]
    schema = document["components"]["schemas"][media["schema"]["$ref"].rpartition("/")[2]]
    examples: list[Any] = schema.get("examples", [])
    return examples


def _prepared(proxy: FurnishedProxy, one: Operation, example: Any, name: str) -> str:
    """Where to send an example, once there is what it needs and nothing that stands in its way."""
    values = {}
    if one.payload["operationId"] == "createKafkaTopic":
        proxy.http.delete(f"/v3/clusters/{proxy.cluster_id}/topics/{example['topic_name']}")
    elif one.payload["operationId"] == "createConsumerInstanceV2":
        proxy.http.delete(f"/consumers/{GROUP}/instances/{example['name']}")
    elif "/instances/" in one.path:
        values = {"group": name, "name": name}
        proxy.create_instance(name, group=name)
        if not one.path.endswith(("/subscription", "/assignments")):
            partitions = [{"topic": "orders", "partition": 0}]
            proxy.sent("POST", f"/consumers/{name}/instances/{name}/assignments", {"partitions": partitions})
    elif one.payload["tags"] == ["v2 produce"]:  # A topic has values of one schema.
        values = {"topic": name}
        proxy.create_topic(name)
    return _filled(one, values, proxy)


def _filled(one: Operation, known: dict[str, str], proxy: FurnishedProxy) -> str:
    """The path with the examples of its parameters in it."""
    values: dict[str, object] = {"cluster_id": proxy.cluster_id, **known}
    for parameter in one.payload.get("parameters", ()):
        if parameter["in"] == "path":
            values.setdefault(parameter["name"], parameter["schema"]["examples"][0])
    return one.path.format_map(values)


def _accepted(one: Operation) -> str:
    return "application/json" if one.path.startswith("/v3") else _V2


def _is_taken(answer: httpx2.Response) -> bool:
    if "/acls" in answer.request.url.path:  # This cluster has no authorizer, and says so.
        return answer.status_code == 400 and answer.json()["error_code"] == 40002
    if answer.status_code == 207 and "failures" in answer.json():
        return not answer.json()["failures"]
    is_all_written = not any(item["error_code"] for item in _offsets(answer))
    return answer.is_success and is_all_written


def _offsets(answer: httpx2.Response) -> list[dict[str, Any]]:
    """What became of each record of API v2."""
    body = answer.json() if answer.content else None
    return body.get("offsets", []) if isinstance(body, dict) and "key_schema_id" in body else []
