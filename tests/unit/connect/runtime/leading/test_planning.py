"""Configurations of tasks, and which tasks a change is about."""

import pytest

from connect.api.errors import ConnectError
from connect.runtime.configuration.connector_config import SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.leading.planning import Difference, difference, planned
from tests.support.connect_worker import CountingSink, NoSinkTask, TableSource

_RAW = {"name": "c", "connector.class": "TableSource", "tasks.max": "1", "password": "${file:/s:p}", "user": "${env:U}"}
_RESOLVED = {**_RAW, "password": "open sesame", "user": "me"}


def _planned(*given: dict[str, str], **changes: str) -> list[dict[str, str]]:
    raw, resolved = {**_RAW, **changes}, {**_RESOLVED, **changes}
    return planned(given, TableSource, settled=SourceConnectorConfig.parse(resolved), raw=raw, resolved=resolved)


def test_what_was_filled_in_is_a_placeholder_again() -> None:
    (task,) = _planned({"password": "open sesame", "pass.word": "open sesame", "user": "me", "other": "me"})
    assert {key: task[key] for key in ("password", "pass.word", "user", "other")} == {
        "password": "${file:/s:p}",
        "pass.word": "${file:/s:p}",
        "user": "${env:U}",
        "other": "me",
    }


def test_every_task_knows_its_class() -> None:
    (task,) = _planned({})
    assert task["task.class"].endswith(".NoSourceTask")


def test_the_class_of_a_task_has_the_name_that_workers_of_kafka_connect_know_it_by() -> None:
    class Task(NoSinkTask):
        java_name = "org.example.CountingSinkTask"

    class Sink(CountingSink):
        task_class = Task

    raw = {"name": "c", "connector.class": "Sink", "topics": "a"}
    (task,) = planned([{}], Sink, settled=SinkConnectorConfig.parse(raw), raw=raw, resolved=raw)
    assert task["task.class"] == "org.example.CountingSinkTask"


def test_tasks_of_sinks_know_their_topics() -> None:
    raw = {"name": "c", "connector.class": "CountingSink", "topics": "a,b"}
    (task,) = planned([{}], CountingSink, settled=SinkConnectorConfig.parse(raw), raw=raw, resolved=raw)
    assert task["topics"] == "a,b"


def test_too_many_tasks_are_an_error_where_that_is_enforced() -> None:
    with pytest.raises(ConnectError, match="has generated 2 tasks, which is greater than 1"):
        _planned({}, {})
    assert len(_planned({}, {}, **{"tasks.max.enforce": "false"})) == 2


@pytest.mark.parametrize(
    ("running", "wanted", "all_at_once", "ending", "beginning"),
    [
        ({}, {0: "a", 1: "b"}, False, set(), {0, 1}),
        ({0: "a", 1: "b"}, {0: "a", 1: "b"}, True, set(), set()),
        ({0: "a", 1: "b"}, {0: "a", 1: "c"}, False, {1}, {1}),
        ({0: "a", 1: "b"}, {0: "a", 1: "c"}, True, {0, 1}, {0, 1}),
        ({0: "a", 1: "b"}, {0: "a"}, False, {1}, set()),
        ({0: "a", 1: "b"}, {0: "a"}, True, {0, 1}, {0}),
        ({0: "a"}, {}, True, {0}, set()),
    ],
)
def test_only_what_changed_ends_and_begins_unless_all_must(
    running: dict[int, str], wanted: dict[int, str], all_at_once: bool, ending: set[int], beginning: set[int]
) -> None:
    expected = Difference(ending=frozenset(ending), beginning=frozenset(beginning))
    assert difference(running, wanted, all_at_once=all_at_once) == expected
