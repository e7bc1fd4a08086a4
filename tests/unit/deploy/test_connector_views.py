from typing import Any

import pytest

from deploy.connector_validation import KeyErrors, problems
from deploy.connector_views import listed, tasks_text
from deploy.connector_waiting import Verdict, judged


def status(connector: str, *tasks: str) -> dict[str, Any]:
    return {"connector": {"state": connector}, "tasks": [{"id": i, "state": it} for i, it in enumerate(tasks)]}


@pytest.mark.parametrize(
    "states,text",
    [
        ([], "–"),
        (["RUNNING", "RUNNING"], "2 RUNNING"),
        (["RUNNING", "FAILED", "RUNNING", "PAUSED"], "1 FAILED, 1 PAUSED, 2 RUNNING"),
        (["RUNNING", "SOMETHING"], "1 RUNNING, 1 SOMETHING"),
    ],
)
def test_states_of_tasks_are_counted_the_worst_first(states: list[str], text: str) -> None:
    assert tasks_text(status("RUNNING", *states)["tasks"]).plain == text


@pytest.mark.parametrize(
    "found,verdict",
    [
        (status("RUNNING"), "waiting"),
        (status("RUNNING", "UNASSIGNED"), "waiting"),
        (status("UNASSIGNED", "RUNNING"), "waiting"),
        (status("RUNNING", "RUNNING", "RUNNING"), "running"),
        (status("RUNNING", "RUNNING", "FAILED"), "failed"),
        (status("FAILED"), "failed"),
        (status("PAUSED", "PAUSED"), "waiting"),
    ],
)
def test_only_when_connector_and_all_tasks_run_is_it_running(found: dict[str, Any], verdict: Verdict) -> None:
    assert judged(found) == verdict


def test_a_connector_without_a_status_is_listed_as_unassigned() -> None:
    info = {"type": "sink", "config": {"connector.class": "a.b.Sink"}}
    assert listed("n", {"info": info}) == {
        "name": "n",
        "type": "sink",
        "state": "UNASSIGNED",
        "tasks": [],
        "worker": "",
        "class": "a.b.Sink",
    }


def config(name: str, value: str | None, *errors: str, kind: str = "STRING") -> dict[str, Any]:
    return {"definition": {"type": kind}, "value": {"name": name, "value": value, "errors": list(errors)}}


def test_problems_tell_what_was_given_but_no_password() -> None:
    configs = [
        config("topics", "a", "both are set"),
        config("tasks.max", None, "must be at least 1", kind="INT"),
        config("file", None, "missing"),
        config("password", None, "too short", kind="PASSWORD"),
        config("name", "n"),
    ]
    infos = {"name": "Sink", "error_count": 4, "configs": configs}
    given = {"topics": "a", "tasks.max": 0, "password": "secret", "name": "n"}
    found = problems(infos, given=given)
    assert found.errors == [
        KeyErrors(key="topics", value="a", errors=["both are set"]),
        KeyErrors(key="tasks.max", value="0", errors=["must be at least 1"]),
        KeyErrors(key="file", value=None, errors=["missing"]),
        KeyErrors(key="password", value="[hidden]", errors=["too short"]),
    ]
    assert found.warnings == []
