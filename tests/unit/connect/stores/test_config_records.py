"""Records of the config topic: the very bytes that Kafka Connect writes."""

import pytest

from connect.stores import config_records as records
from connect.stores.config_records import Leader
from connect.stores.states import Target, TaskId
from connect.stores.writer import Pair


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (records.connector_record("c", {"a": "1"}), "connector-c", '{"properties":{"a":"1"}}'),
        (records.task_record(TaskId("c-1", 2), {"a": "1"}), "task-c-1-2", '{"properties":{"a":"1"}}'),
        (records.commit_record("c", 2), "commit-c", '{"tasks":2}'),
        (records.target_record("c", Target.PAUSED), "target-state-c", '{"state":"PAUSED","state.v2":"PAUSED"}'),
        (records.target_record("c", Target.STOPPED), "target-state-c", '{"state":"PAUSED","state.v2":"STOPPED"}'),
        (records.fencing_record("c", 3), "tasks-fencing-c", '{"task-count":3}'),
        (records.logger_record("connect.runtime", "DEBUG"), "logger-cluster-connect.runtime", '{"level":"DEBUG"}'),
        (
            records.leader_record(Leader(url="http://w:1", worker_id="w:1")),
            "leader",
            '{"url":"http://w:1","worker_id":"w:1"}',
        ),
    ],
)
def test_records_have_kafka_connects_format(record: Pair, key: str, value: str | None) -> None:
    assert record == (key.encode(), None if value is None else value.encode())


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("connector-a", ("connector-", "a")),
        ("task-a-0", ("task-", "a-0")),
        ("tasks-fencing-a", ("tasks-fencing-", "a")),
        ("restart-connector-a", ("restart-connector-", "a")),
        ("leader", ("leader", "")),
        ("session-key", ("session-key", "")),
        ("access-rule-0a", ("access-rule-", "0a")),
        ("something-else", ("", "something-else")),
    ],
)
def test_keys_are_told_apart(key: str, parts: tuple[str, str]) -> None:
    assert records.split_key(key) == parts


@pytest.mark.parametrize(("rest", "task"), [("a-b-12", TaskId("a-b", 12)), ("a", None), ("-1", None), ("a-x", None)])
def test_a_task_is_read_from_its_key(rest: str, task: TaskId | None) -> None:
    assert records.task_of(rest) == task


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (b'{"state":"STARTED"}', Target.STARTED),
        (b'{"state":"PAUSED"}', Target.PAUSED),
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', Target.STOPPED),
    ],
)
def test_what_is_wanted_is_read_from_old_and_new_records(value: bytes, target: Target) -> None:
    assert records.target_of(value) == target


def test_keys_without_a_value_are_no_part_of_a_configuration() -> None:
    assert records.properties_of(b'{"properties":{"a":"1","b":null}}') == {"a": "1"}


def test_a_removed_connector_takes_its_tasks_with_it_and_stays_to_be_fenced() -> None:
    assert records.removal_records("c", 2) == [
        (key, None) for key in (b"connector-c", b"target-state-c", b"task-c-0", b"task-c-1", b"commit-c")
    ]
