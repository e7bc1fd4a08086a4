from typing import Any

import msgspec
import pytest

from deploy.views.connectors import KeyErrors, Task, Verdict, count_states, failures, problems, summarize, verdict


def status(connector: str, *tasks: str) -> dict[str, Any]:
    return {"connector": {"state": connector}, "tasks": [{"id": i, "state": it} for i, it in enumerate(tasks)]}


@pytest.mark.parametrize(
    "states,counts",
    [
        ([], []),
        (["RUNNING", "RUNNING"], [("RUNNING", 2)]),
        (["RUNNING", "FAILED", "RUNNING", "PAUSED"], [("FAILED", 1), ("PAUSED", 1), ("RUNNING", 2)]),
        (["RUNNING", "SOMETHING"], [("SOMETHING", 1), ("RUNNING", 1)]),
    ],
)
def test_states_of_tasks_are_counted_the_worst_first(states: list[str], counts: list[tuple[str, int]]) -> None:
    assert count_states([Task(number, state) for number, state in enumerate(states)]) == counts


def test_each_failure_has_its_reason_in_one_line() -> None:
    found = status("RUNNING", "RUNNING", "FAILED", "FAILED")
    found["tasks"][1]["trace"] = "Traceback (most recent call last):\n  File x\nKeyError: 'id'\n"
    assert list(failures(found)) == [("task 1", "KeyError: 'id'"), ("task 2", "the worker gives no reason")]


@pytest.mark.parametrize(
    "found,expected",
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
def test_only_when_connector_and_all_tasks_run_is_it_running(found: dict[str, Any], expected: Verdict) -> None:
    assert verdict(found) == expected


def test_a_connector_without_a_status_is_listed_as_unassigned() -> None:
    info = {"type": "sink", "config": {"connector.class": "a.b.Sink"}}
    assert msgspec.to_builtins(summarize("n", {"info": info})) == {
        "name": "n",
        "type": "sink",
        "state": "UNASSIGNED",
        "tasks": [],
        "worker": "",
        "class": "a.b.Sink",
    }


def config(name: str, value: str | None, *errors: str, kind: str = "STRING") -> dict[str, Any]:
    return {"definition": {"type": kind}, "value": {"name": name, "value": value, "errors": list(errors)}}


def test_problems_show_what_was_given_but_no_password() -> None:
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
