"""Configurations of tasks as they are stored."""

import pytest

from connect.api.connector import Connector
from connect.api.errors import ConnectError
from connect.runtime.configuration.validation import definition_class
from connect.runtime.leading.connector_host import stored_task_configs
from connect.runtime.leading.services import ParsedConnector
from connect.settings import ConnectSettings
from tests.support.connect_worker import CountingSink, NoSinkTask, TableSource

_RAW = {"name": "c", "connector.class": "TableSource", "tasks.max": "1", "password": "${file:/s:p}", "user": "${env:U}"}
_RESOLVED = {**_RAW, "password": "open sesame", "user": "me"}
_SINK = {"name": "c", "connector.class": "CountingSink", "topics": "a,b"}


def _parsed(connector: type[Connector], raw: dict[str, str], resolved: dict[str, str]) -> ParsedConnector:
    settled = definition_class(connector).parse(resolved)
    return ParsedConnector(raw=raw, resolved=resolved, connector=connector, common=settled, settings=ConnectSettings())


def _stored(*given: dict[str, str], **changes: str) -> list[dict[str, str]]:
    return stored_task_configs(given, _parsed(TableSource, {**_RAW, **changes}, {**_RESOLVED, **changes}))


def test_what_was_filled_in_is_a_placeholder_again() -> None:
    (task,) = _stored({"password": "open sesame", "pass.word": "open sesame", "user": "me", "other": "me"})
    assert {key: task[key] for key in ("password", "pass.word", "user", "other")} == {
        "password": "${file:/s:p}",
        "pass.word": "${file:/s:p}",
        "user": "${env:U}",
        "other": "me",
    }


def test_every_task_knows_its_class() -> None:
    (task,) = _stored({})
    assert task["task.class"].endswith(".NoSourceTask")


def test_the_class_of_a_task_has_the_name_that_workers_of_kafka_connect_know_it_by() -> None:
    class Task(NoSinkTask):
        java_name = "org.example.CountingSinkTask"

    class Sink(CountingSink):
        task_class = Task

    (task,) = stored_task_configs([{}], _parsed(Sink, _SINK, _SINK))
    assert task["task.class"] == "org.example.CountingSinkTask"


def test_tasks_of_sinks_know_their_topics() -> None:
    (task,) = stored_task_configs([{}], _parsed(CountingSink, _SINK, _SINK))
    assert task["topics"] == "a,b"


def test_too_many_tasks_are_an_error_where_that_is_enforced() -> None:
    with pytest.raises(ConnectError, match="has generated 2 tasks, which is greater than 1"):
        _stored({}, {})
    assert len(_stored({}, {}, **{"tasks.max.enforce": "false"})) == 2
