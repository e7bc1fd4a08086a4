"""Junk for every operation that `/openapi.json` tells of: answered below 500, failures in the envelope."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.postgres import PostgresServer
from tests.support.registry import RegistryProcess

_METHODS = ("get", "post", "put", "delete")

_texts = st.one_of(
    st.sampled_from(
        [
            "",
            "s",
            "latest",
            "-1",
            "0",
            "1",
            "2147483648",
            "9" * 40,
            ":.:s",
            ":.c:s",
            ":*:",
            ":.",
            "a/b",
            "..",
            "\0",
            "\x85",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
_flags = st.sampled_from(["true", "false", "1", "-5", "junk", "", "99999999999999999999"])
_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10), _texts, st.just("\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


class Operation(NamedTuple):
    """One path and method, with what it takes."""

    method: str
    path: str
    in_path: list[str]
    in_query: list[str]
    body: dict[str, Any] | None


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    more = {}
    if request.param == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        more = {"database.url": postgres.create_database()}
    with RegistryProcess(tmp_path_factory.mktemp("registry"), settings=more) as registry:
        registry.register("s")
        with httpx2.Client(base_url=registry.url, timeout=60) as client:
            yield client
        assert registry.is_running
        assert "Traceback" not in registry.log_text()


def operations(client: httpx2.Client) -> list[Operation]:
    document = client.get("/openapi.json").json()
    components = document["components"]["schemas"]
    found = []
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                operation = item[method]
                parameters = operation.get("parameters", [])
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                found.append(
                    Operation(
                        method.upper(),
                        path,
                        [one["name"] for one in parameters if one["in"] == "path"],
                        [one["name"] for one in parameters if one["in"] == "query"],
                        _expanded(content.get("schema"), components),
                    )
                )
    return found


def _expanded(schema: dict[str, Any] | None, components: dict[str, Any], depth: int = 5) -> dict[str, Any] | None:
    """A body's schema with what it refers to inside, to some depth."""
    if schema is None or depth == 0:
        return schema
    if "$ref" in schema:
        return _expanded(components[schema["$ref"].rpartition("/")[2]], components, depth)
    inner = {name: _expanded(part, components, depth - 1) for name, part in schema.get("properties", {}).items()}
    branches = [_expanded(part, components, depth) for part in schema.get("anyOf", ())]
    items = _expanded(schema.get("items"), components, depth - 1)
    return {**schema, "properties": inner, "anyOf": branches, "items": items}


def bodies(schema: dict[str, Any] | None) -> st.SearchStrategy[Any]:
    """What looks like a body of that schema, with junk in some places."""
    if schema is None:
        return _values
    if schema.get("anyOf"):
        return st.one_of(_values, *[bodies(branch) for branch in schema["anyOf"]])
    if schema.get("properties"):
        fields = {name: bodies(part) for name, part in schema["properties"].items()}
        return st.one_of(st.fixed_dictionaries({}, optional=fields), _values)
    if schema.get("type") == "array":
        return st.one_of(st.lists(bodies(schema.get("items")), max_size=3), _values)
    plain = {"string": _texts, "integer": st.integers(), "boolean": st.booleans()}
    return st.one_of(plain.get(str(schema.get("type")), _values), _values)


@st.composite
def requests(draw: st.DrawFn, choices: list[Operation]) -> tuple[str, str, str | None]:
    operation = draw(st.sampled_from(choices))
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", quote(draw(_texts), safe=""))
    names = draw(st.lists(st.sampled_from(operation.in_query), max_size=3)) if operation.in_query else []
    query = "&".join(f"{name}={quote(draw(st.one_of(_flags, _texts)), safe='')}" for name in names)
    has_body = operation.body is not None
    return operation.method, f"{path}?{query}", json.dumps(draw(bodies(operation.body))) if has_body else None


def test_junk_is_answered_in_the_envelope(client: httpx2.Client) -> None:
    choices = operations(client)
    assert len(choices) > 50
    headers = {"content-type": "application/json"}

    @settings(
        max_examples=600,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(request=requests(choices))
    def send(request: tuple[str, str, str | None]) -> None:
        method, path, body = request
        answer = client.request(method, path, content=body, headers=headers)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert answer.json().keys() == {"error_code", "message"}

    send()


def test_methods_that_no_path_has_are_answered_in_the_envelope(client: httpx2.Client) -> None:
    for path in client.get("/openapi.json").json()["paths"]:
        for method in ("PATCH", "OPTIONS", "TRACE", "PROPFIND"):
            answer = client.request(method, path.replace("{", "").replace("}", ""))
            assert answer.status_code in (404, 405)
            assert answer.json().keys() == {"error_code", "message"}
