"""Connectors over REST: created, looked at, changed and deleted, with Kafka Connect's codes and words."""

import json
from typing import Any

import pytest

from connect.runtime.models import Target
from tests.support.connect_api import SINK, Api

ONE = {
    "name": "one",
    "config": {**SINK, "name": "one"},
    "tasks": [{"connector": "one", "task": 0}, {"connector": "one", "task": 1}],
    "type": "sink",
}


def refusal(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


async def test_a_created_connector_is_answered_with_its_place(api: Api) -> None:
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert (answer.status_code, answer.headers["location"]) == (201, "/connectors/one")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == ONE
    assert (await api.get("/connectors/one")).json() == ONE
    assert (await api.get("/connectors")).json() == ["one"]


async def test_spaces_around_the_name_are_dropped(api: Api) -> None:
    answer = await api.post("/connectors", json={"name": " one \n", "config": SINK})
    assert answer.json()["name"] == "one"


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b", "a%2Fb"), ("ö ü", "%C3%B6%20%C3%BC"), ("a?b#c%", "a%3Fb%23c%25"), ("..", ".."), ("a.b", "a.b")],
)
async def test_any_name_can_be_asked_for(api: Api, name: str, path: str) -> None:
    answer = await api.post("/connectors", json={"name": name, "config": SINK})
    assert answer.headers["location"] == f"/connectors/{path}"
    if path != "..":  # which the client takes for a step up
        assert (await api.get(f"/connectors/{path}")).json()["name"] == name
        assert (await api.delete(f"/connectors/{path}")).status_code == 204


async def test_numbers_and_booleans_are_taken_for_text(api: Api) -> None:
    config = {**SINK, "tasks.max": 3, "errors.log.enable": True, "batch.size": 10, "ratio": 0.5}
    answer = await api.post("/connectors", json={"name": "one", "config": config})
    assert answer.json()["config"] == {
        **SINK,
        "tasks.max": "3",
        "errors.log.enable": "true",
        "batch.size": "10",
        "ratio": "0.5",
        "name": "one",
    }


@pytest.mark.parametrize(("given", "name"), [(5, "5"), (True, "true")])
async def test_a_name_may_be_a_number_or_a_boolean(api: Api, given: object, name: str) -> None:
    answer = await api.post("/connectors", json={"name": given, "config": SINK})
    assert (answer.status_code, answer.json()["name"], answer.json()["config"]["name"]) == (201, name, name)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        (None, 201),
        ("application/x-www-form-urlencoded", 415),
        ("text/plain", 415),
        ("application/xml", 415),
    ],
)
async def test_a_body_that_is_no_json_by_its_type_is_refused(api: Api, content_type: str | None, status: int) -> None:
    body = json.dumps({"name": "one", "config": SINK})
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await api.post("/connectors", content=body, headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert answer.json() == refusal(415, "HTTP 415 Unsupported Media Type")


async def test_the_type_of_a_body_that_nobody_reads_does_not_matter(api: Api) -> None:
    await api.post("/connectors", json={"name": "one", "config": SINK})
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert (await api.put("/connectors/one/pause", content="a=b", headers=headers)).status_code == 202


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({}, Target.STARTED),
        ({"initial_state": None}, Target.STARTED),
        ({"initial_state": "RUNNING"}, Target.STARTED),
        ({"initial_state": "paused"}, Target.PAUSED),
        ({"initial_state": "Stopped"}, Target.STOPPED),
        ({"tasks": [], "type": "sink"}, Target.STARTED),
    ],
)
async def test_a_connector_begins_as_wanted(api: Api, given: dict[str, Any], target: Target) -> None:
    answer = await api.post("/connectors", json={"name": "one", "config": SINK, **given})
    assert answer.status_code == 201
    assert api.supervisor.targets == {"one": target}


async def test_a_connector_begins_where_wanted(api: Api) -> None:
    offsets = [{"partition": {"kafka_topic": "t1", "kafka_partition": 0}, "offset": {"kafka_offset": 5}}]
    await api.post("/connectors", json={"name": "one", "config": SINK, "initial_offsets": offsets})
    assert (await api.get("/connectors/one/offsets")).json() == {"offsets": offsets}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "one"}, "Body config: Field required"),
        ({"config": SINK}, "String may not be empty"),
        (
            {"name": "one", "config": {**SINK, "name": "two"}},
            "Connector name configuration (two) doesn't match connector name in the URL (one)",
        ),
        ({"name": "one", "config": {**SINK, "a": {}}}, "Body config.a"),
        ({"name": "one", "config": {**SINK, "a": [1]}}, "Body config.a"),
        ({"name": "one", "config": {**SINK, "a": None}}, "following 1 error(s):\nNull value can not be supplied"),
        ({"name": "one", "config": {**SINK, "tasks.max": "0"}}, "Value must be at least 1\nYou can also find"),
        ({"name": "one", "config": {}}, "contains no connector type"),
        ({"name": "one", "config": {"connector.class": "Nope"}}, "which name matches Nope, available connectors are"),
        ({"name": "one", "config": SINK, "initial_state": "ASLEEP"}, "Body initial_state 'ASLEEP'"),
        ({"name": "one", "config": SINK, "intial_state": "PAUSED"}, "Body intial_state"),
        ({"name": "one", "config": SINK, "initial_offsets": [{"partition": 5}]}, "Body initial_offsets.0.partition"),
        ([], "Body body"),
        (5, "Body body"),
    ],
)
async def test_what_is_wrong_is_answered_with_400(api: Api, body: object, message: str) -> None:
    answer = await api.post("/connectors", json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert message in answer.json()["message"]
    assert api.supervisor.connectors() == []


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
async def test_a_number_that_is_none_is_refused(api: Api, number: bytes) -> None:
    answer = await api.put("/connectors/one/config", content=b'{"connector.class": "QuietSink", "a": ' + number + b"}")
    assert answer.status_code == 400


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"name": "\\ud800", "config": {}}'])
async def test_a_body_that_is_no_json_is_answered_with_400(api: Api, content: bytes) -> None:
    answer = await api.post("/connectors", content=content)
    assert answer.status_code == 400


async def test_a_name_is_taken_once(api: Api) -> None:
    await api.create("one")
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert (answer.status_code, answer.json()) == (409, refusal(409, "Connector one already exists"))


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/connectors/no", "Connector no not found"),
        ("GET", "/connectors/no/config", "Connector no not found"),
        ("GET", "/connectors/no/tasks", "Connector no not found"),
        ("GET", "/connectors/no/tasks-config", "Connector no not found"),
        ("GET", "/connectors/no/offsets", "Connector no not found"),
        ("GET", "/connectors/no/status", "No status found for connector no"),
        ("GET", "/connectors/no/tasks/0/status", "No status found for task no-0"),
        ("GET", "/connectors/one/tasks/7/status", "No status found for task one-7"),
        ("DELETE", "/connectors/no", "Connector no not found"),
        ("DELETE", "/connectors/no/offsets", "Connector no not found"),
        ("PUT", "/connectors/no/pause", "Unknown connector no"),
        ("PUT", "/connectors/no/resume", "Unknown connector no"),
        ("PUT", "/connectors/no/stop", "Unknown connector no"),
        ("POST", "/connectors/no/restart", "Unknown connector: no"),
        ("POST", "/connectors/no/restart?includeTasks=true", "Unknown connector: no"),
        ("POST", "/connectors/no/tasks/0/restart", "Unknown connector: no"),
        ("POST", "/connectors/one/tasks/7/restart", "Unknown task: one-7"),
        ("GET", "/connectors/nothing/dlq", "Connector nothing not found"),
        ("GET", "/connector-plugins/no/config", "Unknown plugin no."),
        ("GET", "/admin/loggers/no.such", "Logger no.such not found."),
        ("GET", "/nothing", "HTTP 404 Not Found"),
        ("GET", "/connectors/one/tasks/x/status", "HTTP 404 Not Found"),
    ],
)
async def test_what_does_not_exist_is_answered_with_404(api: Api, method: str, path: str, message: str) -> None:
    await api.create("one")
    answer = await api.request(method, path)
    assert (answer.status_code, answer.json()) == (404, refusal(404, message))


async def test_a_method_that_a_path_has_not_is_answered_with_405(api: Api) -> None:
    answer = await api.delete("/connectors")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


async def test_the_configuration_is_told_as_it_was_given(api: Api) -> None:
    await api.create("one", file="${env:HOME}")
    assert (await api.get("/connectors/one/config")).json() == {**SINK, "file": "${env:HOME}", "name": "one"}


async def test_put_creates_and_changes(api: Api) -> None:
    created = await api.put("/connectors/one/config", json=SINK)
    assert (created.status_code, created.headers["location"], created.json()) == (201, "/connectors/one", ONE)
    changed = await api.put("/connectors/one/config", json={**SINK, "name": "one", "tasks.max": 1})
    assert (changed.status_code, "location" in changed.headers) == (200, False)
    assert changed.json()["tasks"] == [{"connector": "one", "task": 0}]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**SINK, "name": "two"}, "Connector name configuration (two) doesn't match connector name in the URL (one)"),
        ({**SINK, "tasks.max": "x"}, "Connector configuration is invalid and contains the following 2 error(s):"),
        ({**SINK, "topics": None}, "Null value can not be supplied as the configuration value."),
        ({}, "contains no connector type"),
    ],
)
async def test_put_refuses_what_is_wrong(api: Api, config: dict[str, Any], message: str) -> None:
    answer = await api.put("/connectors/one/config", json=config)
    assert answer.status_code == 400
    assert message in answer.json()["message"]


async def test_patch_changes_and_removes_keys(api: Api) -> None:
    await api.create("one", file="a")
    answer = await api.patch("/connectors/one/config", json={"tasks.max": 1, "file": None, "mode": "replace"})
    assert answer.status_code == 200
    assert answer.json()["config"] == {**SINK, "tasks.max": "1", "mode": "replace", "name": "one"}


async def test_patch_of_what_does_not_exist_or_is_wrong_is_refused(api: Api) -> None:
    missing = await api.patch("/connectors/one/config", json={"a": "b"})
    assert (missing.status_code, missing.json()["message"]) == (404, "Connector one not found")
    await api.create("one")
    wrong = await api.patch("/connectors/one/config", json={"tasks.max": "0"})
    assert wrong.status_code == 400


async def test_delete_answers_nothing(api: Api) -> None:
    await api.create("one")
    answer = await api.delete("/connectors/one")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await api.get("/connectors")).json() == []


async def test_tasks_are_told_with_their_configurations(api: Api) -> None:
    await api.create("one", **{"tasks.max": "1"})
    config = {**SINK, "tasks.max": "1", "name": "one"}
    assert (await api.get("/connectors/one/tasks")).json() == [
        {"id": {"connector": "one", "task": 0}, "config": config}
    ]
    assert (await api.get("/connectors/one/tasks-config")).json() == {"one-0": config}


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("expand=status", {"status"}),
        ("expand=info", {"info"}),
        ("expand=info&expand=status", {"info", "status"}),
        ("expand=info&expand=nothing", {"info"}),
        ("expand=nothing", set()),
    ],
)
async def test_connectors_are_listed_with_what_is_asked_for(api: Api, query: str, parts: set[str]) -> None:
    await api.create("one")
    await api.create("two")
    listed = (await api.get(f"/connectors?{query}")).json()
    assert list(listed) == ["one", "two"]
    assert set(listed["one"]) == parts
    for part in parts:
        path = "/connectors/one/status" if part == "status" else "/connectors/one"
        assert listed["one"][part] == (await api.get(path)).json()


async def test_a_connector_that_went_meanwhile_is_left_out(api: Api) -> None:
    await api.create("one")
    await api.create("two")
    api.supervisor.without_status.add("one")
    assert list((await api.get("/connectors?expand=status")).json()) == ["two"]
    assert list((await api.get("/connectors?expand=info")).json()) == ["one", "two"]


async def test_paths_may_end_with_a_slash(api: Api) -> None:
    await api.create("one")
    assert (await api.get("/connectors/")).json() == ["one"]
    assert (await api.get("/connectors/one/")).json() == ONE


async def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    answer = await api.put("/connectors/one/config", json={"a": "x" * (5 * 1024 * 1024)})
    assert answer.status_code == 413
