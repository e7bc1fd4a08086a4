"""Connectors and tasks are paused, resumed, stopped and restarted over REST."""

import pytest

from tests.support.connect_api import Api


@pytest.mark.parametrize(
    ("path", "status", "state", "tasks"),
    [
        ("pause", 202, "PAUSED", 2),
        ("resume", 202, "RUNNING", 2),
        ("stop", 204, "STOPPED", 0),
    ],
)
async def test_a_connector_does_as_it_is_told_again_and_again(
    api: Api, path: str, status: int, state: str, tasks: int
) -> None:
    await api.create("one")
    for _ in range(2):
        answer = await api.put(f"/connectors/one/{path}")
        assert (answer.status_code, answer.content) == (status, b"")
    shown = (await api.get("/connectors/one/status")).json()
    assert (shown["connector"]["state"], len(shown["tasks"])) == (state, tasks)


async def test_the_status_tells_of_the_connector_and_its_tasks(api: Api) -> None:
    await api.create("one")
    assert (await api.get("/connectors/one/status")).json() == {
        "name": "one",
        "connector": {"state": "RUNNING", "worker_id": "memory:8083"},
        "tasks": [
            {"id": 0, "state": "RUNNING", "worker_id": "memory:8083"},
            {"id": 1, "state": "RUNNING", "worker_id": "memory:8083"},
        ],
        "type": "sink",
    }


async def test_the_trace_is_told_of_what_failed_alone(api: Api) -> None:
    await api.create("one", file="failing")
    assert (await api.get("/connectors/one/tasks/1/status")).json() == {
        "id": 1,
        "state": "FAILED",
        "worker_id": "memory:8083",
        "trace": "Traceback: it failed",
    }


@pytest.mark.parametrize(
    ("query", "status", "restarted"),
    [
        ("", 204, "one"),
        ("?includeTasks=false&onlyFailed=false", 204, "one"),
        ("?includeTasks=true", 202, "one include_tasks=True only_failed=False"),
        ("?onlyFailed=true", 202, "one include_tasks=False only_failed=True"),
        ("?includeTasks=true&onlyFailed=true", 202, "one include_tasks=True only_failed=True"),
    ],
)
async def test_a_restart_with_flags_answers_what_is_restarted(
    api: Api, query: str, status: int, restarted: str
) -> None:
    await api.create("one")
    answer = await api.post(f"/connectors/one/restart{query}")
    assert answer.status_code == status
    assert api.supervisor.restarted == [restarted]
    assert answer.content == b"" if status == 204 else answer.json()["name"] == "one"


async def test_one_task_is_restarted(api: Api) -> None:
    await api.create("one")
    answer = await api.post("/connectors/one/tasks/1/restart")
    assert (answer.status_code, answer.content, api.supervisor.restarted) == (204, b"", ["one-1"])
