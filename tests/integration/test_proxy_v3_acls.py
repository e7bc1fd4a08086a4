"""ACLs of API v3 over HTTP: with an authorizer, as Confluent's own tests have it, and without one."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.support.admin import admin_client
from tests.support.authorizing_cluster import AuthorizingCluster
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess

ALICE = {
    "resource_type": "TOPIC",
    "resource_name": "*",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
BOB = {
    "resource_type": "TOPIC",
    "resource_name": "topic-",
    "pattern_type": "PREFIXED",
    "principal": "User:bob",
    "host": "1.2.3.4",
    "operation": "WRITE",
    "permission": "ALLOW",
}
ALL = {"resource_type": "any", "pattern_type": "any", "operation": "any", "permission": "any"}


@pytest.fixture(scope="module")
def _authorizing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AuthorizingCluster, httpx2.Client]]:
    with (
        AuthorizingCluster() as cluster,
        ProxyProcess(
            tmp_path_factory.mktemp("proxy"), bootstrap=cluster.bootstrap, registry="http://127.0.0.1:1"
        ) as proxy,
        httpx2.Client(base_url=f"{proxy.url}/v3/clusters/{cluster.CLUSTER_ID}", timeout=30) as client,
    ):
        yield cluster, client


@pytest.fixture
def authorizing(_authorizing: tuple[AuthorizingCluster, httpx2.Client]) -> AuthorizingCluster:
    cluster, _ = _authorizing
    cluster.rules, cluster.may_alter, cluster.may_describe = [], True, True
    return cluster


@pytest.fixture
def http(_authorizing: tuple[AuthorizingCluster, httpx2.Client], authorizing: AuthorizingCluster) -> httpx2.Client:
    """A proxy in front of a cluster that has an authorizer and no rules."""
    return _authorizing[1]


@pytest.fixture
def lawless(proxy: ProxyProcess, broker: BrokerProcess) -> Iterator[httpx2.Client]:
    """A proxy in front of a cluster without an authorizer."""
    cluster_id = admin_client(broker).describe_cluster().result(30).cluster_id
    with httpx2.Client(base_url=f"{proxy.url}/v3/clusters/{cluster_id}", timeout=30) as client:
        yield client


def address(http: httpx2.Client, rule: dict[str, str]) -> str:
    query = "&".join(f"{field}={value.replace(':', '%3A')}" for field, value in rule.items())
    return f"{http.base_url}acls?{query}"


def data(http: httpx2.Client, rule: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "KafkaAcl",
        "metadata": {"self": address(http, rule), "resource_name": None},
        "cluster_id": AuthorizingCluster.CLUSTER_ID,
        **rule,
    }


# --- with an authorizer ---


def test_rules_are_made_found_and_removed_by_their_addresses(http: httpx2.Client) -> None:
    search = {"resource_type": "topic", "resource_name": "topic-1", "pattern_type": "match"}
    whole_search = {
        "resource_type": "TOPIC",
        "resource_name": "topic-1",
        "pattern_type": "MATCH",
        "principal": "",
        "host": "",
        "operation": "ANY",
        "permission": "ANY",
    }
    empty = {
        "kind": "KafkaAclList",
        "metadata": {"self": address(http, whole_search), "next": None},
        "data": [],
    }
    assert http.get("/acls", params=search).json() == empty

    made = [http.post("/acls", json=rule) for rule in (BOB, ALICE)]
    assert [(one.status_code, one.headers["location"], one.content) for one in made] == [
        (201, address(http, BOB), b""),
        (201, address(http, ALICE), b""),
    ]
    assert http.get("/acls", params=search).json() == {**empty, "data": [data(http, ALICE), data(http, BOB)]}

    removed = [http.delete(one.headers["location"]) for one in made]
    assert [(one.status_code, one.json()) for one in removed] == [
        (200, {"data": [data(http, BOB)]}),
        (200, {"data": [data(http, ALICE)]}),
    ]
    assert http.get("/acls", params=search).json() == empty


def test_batch_makes_all_its_rules(http: httpx2.Client) -> None:
    made = http.post("/acls:batch", json={"data": [ALICE, BOB, ALICE]})
    assert (made.status_code, made.content) == (204, b"")
    assert [found["principal"] for found in http.get("/acls").json()["data"]] == ["User:alice", "User:bob"]


def test_words_are_taken_in_small_letters_and_answered_in_capitals(http: httpx2.Client) -> None:
    small = {**ALICE, "resource_type": "topic", "pattern_type": "literal", "operation": "read", "permission": "allow"}
    assert http.post("/acls", json=small).status_code == 201
    assert http.get("/acls", params={"operation": "read"}).json()["data"] == [data(http, ALICE)]


def test_address_of_a_rule_with_odd_names_finds_it_again(http: httpx2.Client) -> None:
    odd = {**ALICE, "resource_name": "a&b=c d/é?#%", "principal": "User:CN=a b,O=ü"}
    location = http.post("/acls", json=odd).headers["location"]
    assert parse_qs(urlsplit(location).query)["resource_name"] == [odd["resource_name"]]
    (found,) = http.get(location).json()["data"]
    assert {field: found[field] for field in odd} == odd


def test_cluster_is_a_kind_of_resource(http: httpx2.Client, authorizing: AuthorizingCluster) -> None:
    rule = {**ALICE, "resource_type": "CLUSTER", "resource_name": "kafka-cluster", "operation": "ALTER"}
    assert http.post("/acls", json=rule).status_code == 201
    assert [one.resource_type for one in authorizing.rules] == [4]
    assert http.get("/acls", params={"resource_type": "cluster"}).json()["data"] == [data(http, rule)]


def test_user_without_the_right_to_it_is_refused(http: httpx2.Client, authorizing: AuthorizingCluster) -> None:
    authorizing.may_alter = authorizing.may_describe = False
    answers = [
        http.get("/acls"),
        http.post("/acls", json=ALICE),
        http.post("/acls:batch", json={"data": [ALICE]}),
        http.delete("/acls", params=ALL),
    ]
    assert [(one.status_code, one.json()["error_code"]) for one in answers] == [(403, 40301)] * 4


def test_removing_without_saying_what_removes_nothing(http: httpx2.Client, authorizing: AuthorizingCluster) -> None:
    http.post("/acls", json=ALICE)
    for field in ALL:
        refused = http.delete("/acls", params={key: value for key, value in ALL.items() if key != field})
        assert (refused.status_code, refused.json()) == (
            400,
            {"error_code": 400, "message": f"{field} cannot be unspecified or UNKNOWN"},
        )
    assert len(authorizing.rules) == 1


# --- without one ---


def test_cluster_without_an_authorizer_says_so_for_every_operation(lawless: httpx2.Client) -> None:
    answers = [
        lawless.get("/acls"),
        lawless.post("/acls", json=ALICE),
        lawless.post("/acls:batch", json={"data": [ALICE]}),
        lawless.delete("/acls", params=ALL),
    ]
    assert [(one.status_code, one.json()["error_code"]) for one in answers] == [(400, 40002)] * 4
    assert all("authorizer" in one.json()["message"] for one in answers)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("resource_type", "ANY", "resource_type cannot be ANY"),
        ("resource_type", "unknown", "resource_type cannot be UNKNOWN"),
        ("pattern_type", "ANY", "pattern_type cannot be ANY"),
        ("pattern_type", "MATCH", "pattern_type cannot be MATCH"),
        ("operation", "ANY", "operation cannot be ANY"),
        ("permission", "any", "permission cannot be ANY"),
        ("resource_type", "table", "'TOPIC', 'GROUP', 'CLUSTER', 'TRANSACTIONAL_ID', 'DELEGATION_TOKEN' or 'USER'"),
        ("permission", "", "'UNKNOWN', 'ANY', 'DENY' or 'ALLOW'"),
        ("operation", 7, "operation 7: Input should be"),
        ("principal", None, "principal None: Input should be a valid string"),
        ("host", "h" * 40_000, "at most 32767 characters"),
    ],
)
@pytest.mark.parametrize("is_batch", [False, True])
def test_rule_that_is_none_is_refused_with_the_reason(
    lawless: httpx2.Client, field: str, value: Any, message: str, *, is_batch: bool
) -> None:
    rule = {**ALICE, field: value}
    refused = lawless.post("/acls:batch", json={"data": [rule]}) if is_batch else lawless.post("/acls", json=rule)
    assert (refused.status_code, refused.json()["error_code"]) == (400, 400)
    assert message in refused.json()["message"]


@pytest.mark.parametrize("field", ALICE)
def test_every_field_of_a_rule_must_be_there(lawless: httpx2.Client, field: str) -> None:
    refused = lawless.post("/acls", json={key: value for key, value in ALICE.items() if key != field})
    assert (refused.status_code, refused.json()) == (
        400,
        {"error_code": 400, "message": f"Body {field}: Field required"},
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"resource_type": "teapot"}, "'teapot' is unknown: expected one of UNKNOWN, ANY, TOPIC"),
        ({"pattern_type": "x"}, "MATCH, LITERAL, PREFIXED"),
        ({"permission": ""}, "DENY, ALLOW"),
    ],
)
def test_words_that_are_unknown_are_not_found(lawless: httpx2.Client, query: dict[str, str], message: str) -> None:
    for refused in (lawless.get("/acls", params=query), lawless.delete("/acls", params={**ALL, **query})):
        assert (refused.status_code, refused.json()["error_code"]) == (404, 404)
    assert message in lawless.get("/acls", params=query).json()["message"]


def test_search_that_cannot_be_meant_is_refused(lawless: httpx2.Client) -> None:
    query = {"operation": "unknown"}
    for refused in (lawless.get("/acls", params=query), lawless.delete("/acls", params={**ALL, **query})):
        assert (refused.status_code, refused.json()["error_code"]) == (400, 400)
    assert "operation cannot be UNKNOWN" in lawless.get("/acls", params=query).json()["message"]


def test_names_that_the_protocol_cannot_carry_are_refused(lawless: httpx2.Client) -> None:
    for answer in (
        lawless.post("/acls", json={**ALICE, "resource_name": "é" * 20_000}),
        lawless.get("/acls", params={"principal": "p" * 32_768}),
    ):
        assert answer.status_code == 400
        assert "32767" in answer.json()["message"]
    assert "authorizer" in lawless.get("/acls", params={"principal": "p" * 32_767}).json()["message"]


def test_names_with_nul_and_delegation_tokens_are_refused(lawless: httpx2.Client) -> None:
    for answer in (
        lawless.post("/acls", json={**ALICE, "resource_name": "a\0b"}),
        lawless.get("/acls", params={"principal": "a\0b"}),
        lawless.delete("/acls", params={**ALL, "host": "\0"}),
    ):
        assert (answer.status_code, answer.json()["error_code"]) == (400, 40002)
        assert "NUL" in answer.json()["message"]
    tokens = lawless.get("/acls", params={"resource_type": "delegation_token"})
    assert (tokens.status_code, tokens.json()["error_code"]) == (400, 40002)
    assert "delegation tokens" in tokens.json()["message"]


@pytest.mark.parametrize("path", ["/acls", "/acls:batch"])
def test_body_is_needed(lawless: httpx2.Client, path: str) -> None:
    for refused in (lawless.post(path), lawless.post(path, json=None)):
        assert (refused.status_code, refused.json()["error_code"]) == (422, 42206)


def test_batch_is_bounded(lawless: httpx2.Client) -> None:
    refused = lawless.post("/acls:batch", json={"data": [ALICE] * 1001})
    assert (refused.status_code, refused.json()["error_code"]) == (400, 400)
    assert "at most 1000" in refused.json()["message"]


def test_another_cluster_is_not_there(lawless: httpx2.Client, proxy: ProxyProcess) -> None:
    for answer in (
        httpx2.get(f"{proxy.url}/v3/clusters/other/acls", timeout=30),
        httpx2.post(f"{proxy.url}/v3/clusters/other/acls", json=ALICE, timeout=30),
        httpx2.post(f"{proxy.url}/v3/clusters/other/acls:batch", json={"data": [ALICE]}, timeout=30),
        httpx2.delete(f"{proxy.url}/v3/clusters/other/acls", params=ALL, timeout=30),
    ):
        assert (answer.status_code, answer.json()) == (
            404,
            {"error_code": 404, "message": "Cluster other cannot be found."},
        )
