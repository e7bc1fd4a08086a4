"""Connectors on a worker, with a real broker, and an executor that only writes down what it is told."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ForeignProducer

from connect.runtime.errors import BadRequest, Conflict, Forbidden, NotFound, NotLeader
from connect.runtime.models import State, Target, TaskId
from connect.settings import ConnectSettings
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect_worker import (
    LastingRecordingExecutor,
    TableSource,
    Worker,
    consume,
    running_worker,
    table_source,
    worker_settings,
)

RUNNING, PAUSED, STOPPED, FAILED = State.RUNNING, State.PAUSED, State.STOPPED, State.FAILED


@pytest.fixture(scope="module")
def shared(broker: BrokerProcess) -> Iterator[Worker]:
    """A worker that leads, for tests of single connectors."""
    with running_worker(worker_settings(broker, "supervisor-shared")) as worker:
        yield worker


def test_a_created_connector_runs_with_its_tasks(shared: Worker, name: str) -> None:
    info = shared.supervisor.create(name, table_source(tables="a b"))
    assert (info.name, info.type, info.config["name"]) == (name, "source", name)
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    tasks = shared.supervisor.tasks(name)
    assert [(task.id, task.config["table"]) for task in tasks] == [(TaskId(name, 0), "a"), (TaskId(name, 1), "b")]
    assert shared.supervisor.info(name).tasks == [TaskId(name, 0), TaskId(name, 1)]
    assert shared.executor.running[TaskId(name, 1)].task_count == 2
    assert name in shared.supervisor.connectors()


def test_what_is_asked_for_before_anybody_leads_is_done_when_somebody_does(broker: BrokerProcess, name: str) -> None:
    worker = Worker(worker_settings(broker, name), "worker:1")
    try:
        worker.supervisor.start()
        assert worker.supervisor.create(name, table_source()).name == name
    finally:
        worker.supervisor.close()


def test_a_name_is_taken_once(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    with pytest.raises(Conflict, match=f"Connector {name} already exists"):
        shared.supervisor.create(name, table_source())


def test_a_wrong_configuration_is_refused(shared: Worker, name: str) -> None:
    with pytest.raises(BadRequest, match=r"following 1 error\(s\)"):
        shared.supervisor.create(name, table_source(version="one"))
    with pytest.raises(BadRequest, match="doesn't match"):
        shared.supervisor.put(name, table_source(name="other"))
    assert name not in shared.supervisor.connectors()


def test_what_is_not_there_is_not_found(shared: Worker) -> None:
    supervisor = shared.supervisor
    for call, told in (
        (lambda: supervisor.info("no"), "Connector no not found"),
        (lambda: supervisor.config("no"), "Connector no not found"),
        (lambda: supervisor.tasks("no"), "Connector no not found"),
        (lambda: supervisor.delete("no"), "Connector no not found"),
        (lambda: supervisor.patch("no", {}), "Connector no not found"),
        (lambda: supervisor.offsets("no"), "Connector no not found"),
        (lambda: supervisor.reset_offsets("no"), "Connector no not found"),
        (lambda: supervisor.set_target("no", Target.PAUSED), "Unknown connector no"),
        (lambda: supervisor.set_target("no", Target.STARTED), "Unknown connector no"),
        (lambda: supervisor.status("no"), "No status found for connector no"),
        (lambda: supervisor.task_status("no", 0), "No status found for task no-0"),
        (lambda: supervisor.restart("no", include_tasks=False, only_failed=False), "Unknown connector: no"),
        (lambda: supervisor.restart_task("no", 0), "Unknown connector: no"),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.message == told


def test_a_new_configuration_restarts_this_connector_alone(shared: Worker, name: str) -> None:
    supervisor, other = shared.supervisor, f"{name}-other"
    supervisor.create(name, table_source(tables="a b"))
    supervisor.create(other, table_source())
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    shared.await_states(other, RUNNING, RUNNING)
    assert supervisor.put(name, table_source(tables="c"))[0] is False
    eventually(lambda: [task.config["table"] for task in supervisor.tasks(name)], ["c"].__eq__)
    eventually(lambda: TaskId(name, 1) not in shared.executor.running_tasks())
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.executor.starts_of(TaskId(other, 0)) == 1


def test_keys_are_changed_and_removed_one_by_one(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source(version="3", tables="a"))
    info = shared.supervisor.patch(name, {"version": None, "tables": "b"})
    assert info.config == {"name": name, "connector.class": "TableSource", "tasks.max": "4", "tables": "b"}
    eventually(lambda: [task.config["table"] for task in shared.supervisor.tasks(name)], ["b"].__eq__)


def test_a_deleted_connector_leaves_nothing_behind(shared: Worker, name: str) -> None:
    supervisor, services = shared.supervisor, shared.supervisor._services
    supervisor.create(name, table_source(tables="a b"))
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    services.statuses.put_topic("orders", TaskId(name, 0))
    supervisor.delete(name)
    with pytest.raises(NotFound):
        supervisor.status(name)
    eventually(lambda: {task.connector for task in shared.executor.running_tasks()}, lambda owners: name not in owners)
    eventually(services.statuses.connectors, lambda known: name not in known)
    assert name not in TableSource.living
    supervisor.create(name, table_source(tables="a b"))
    shared.await_states(name, RUNNING, RUNNING, RUNNING)


def test_a_connector_that_is_created_again_at_once_runs(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.supervisor.delete(name)
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)


def test_a_paused_connector_keeps_its_tasks_and_goes_on(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    shared.supervisor.set_target(name, Target.PAUSED)
    shared.await_states(name, PAUSED, PAUSED)
    shared.supervisor.set_target(name, Target.PAUSED)
    shared.supervisor.set_target(name, Target.STARTED)
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.executor.starts_of(TaskId(name, 0)) == 1


def test_a_stopped_connector_has_no_tasks_until_it_is_resumed(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source(tables="a b"))
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    shared.supervisor.set_target(name, Target.STOPPED)
    shared.await_states(name, STOPPED)
    assert shared.supervisor.tasks(name) == []
    assert {task.connector for task in shared.executor.running_tasks()}.isdisjoint({name})
    shared.supervisor.set_target(name, Target.STARTED)
    shared.await_states(name, RUNNING, RUNNING, RUNNING)


@pytest.mark.parametrize("target", [Target.PAUSED, Target.STOPPED])
def test_a_connector_that_is_not_to_run_yet_has_no_tasks(shared: Worker, name: str, target: Target) -> None:
    shared.supervisor.create(name, table_source(), initial_state=target)
    shared.await_states(name, State(str(target)))
    assert shared.supervisor.tasks(name) == []
    shared.supervisor.set_target(name, Target.STARTED)
    shared.await_states(name, RUNNING, RUNNING)


@pytest.mark.parametrize("method", ["start", "task_configs"])
def test_a_connector_that_fails_is_shown_with_its_trace(shared: Worker, name: str, method: str) -> None:
    shared.supervisor.create(name, table_source(broken=method))
    shared.await_states(name, FAILED)
    assert f"{method} does not work" in (shared.supervisor.status(name).connector.trace or "")
    shared.supervisor.put(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.supervisor.status(name).connector.trace is None


def test_more_tasks_than_allowed_are_refused_unless_that_is_not_enforced(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source(tables="a b c", **{"tasks.max": "2"}))
    shared.await_states(name, FAILED)
    assert "has generated 3 tasks, which is greater than 2" in (shared.supervisor.status(name).connector.trace or "")
    shared.supervisor.patch(name, {"tasks.max.enforce": "false"})
    shared.await_states(name, RUNNING, RUNNING, RUNNING, RUNNING)


def test_a_connector_asks_for_other_tasks(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    connector = TableSource.living[name]
    connector.context.request_reconfiguration()
    connector.more.append("new")
    connector.context.request_reconfiguration()
    eventually(lambda: [task.config["table"] for task in shared.supervisor.tasks(name)], ["a", "new"].__eq__)
    shared.await_states(name, RUNNING, RUNNING, RUNNING)


def test_a_connector_says_that_it_cannot_go_on(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    TableSource.living[name].context.fail(ValueError("the other side is gone"))
    shared.await_states(name, FAILED, RUNNING)
    assert "the other side is gone" in (shared.supervisor.status(name).connector.trace or "")


def test_secrets_stay_placeholders_in_what_is_stored(shared: Worker, name: str, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=open sesame\n")
    placeholder = f"${{file:{secrets}:password}}"
    shared.supervisor.create(name, table_source(password=placeholder))
    shared.await_states(name, RUNNING, RUNNING)
    plan = shared.executor.running[TaskId(name, 0)]
    assert plan.connector_config["password"] == plan.task_config["secret"] == placeholder
    assert TableSource.living[name].config.password == "open sesame"


# --- restarts ---


def test_only_the_connector_restarts_unless_tasks_are_included(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    before = TableSource.living[name]
    assert shared.supervisor.restart(name, include_tasks=False, only_failed=False) is None
    eventually(lambda: TableSource.living.get(name) not in (before, None))
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.executor.starts_of(TaskId(name, 0)) == 1


def test_chosen_instances_are_shown_restarting(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source(tables="a b"))
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    shared.executor.fail(TaskId(name, 1))
    shared.await_states(name, RUNNING, RUNNING, FAILED)
    answer = shared.supervisor.restart(name, include_tasks=True, only_failed=True)
    assert answer is not None
    assert answer.connector.state == RUNNING
    assert [task.state for task in answer.tasks] == [RUNNING, State.RESTARTING]
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    assert [shared.executor.starts_of(TaskId(name, number)) for number in (0, 1)] == [1, 2]
    answer = shared.supervisor.restart(name, include_tasks=True, only_failed=False)
    assert answer is not None
    assert {answer.connector.state, *(task.state for task in answer.tasks)} == {State.RESTARTING}
    shared.await_states(name, RUNNING, RUNNING, RUNNING)


def test_a_single_task_restarts(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    shared.executor.fail(TaskId(name, 0), "because")
    shared.await_states(name, RUNNING, FAILED)
    assert shared.supervisor.task_status(name, 0).trace == "because"
    with pytest.raises(NotFound, match=f"Unknown task: {name}-1"):
        shared.supervisor.restart_task(name, 1)
    shared.supervisor.restart_task(name, 0)
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.supervisor.task_status(name, 0).trace is None


def test_a_failed_task_is_started_again_as_often_as_allowed(shared: Worker, name: str) -> None:
    restarts = {"errors.restart.max": "2", "errors.restart.delay.ms": "50"}
    shared.supervisor.create(name, table_source(**restarts))
    task = TaskId(name, 0)
    for starts in (1, 2, 3):
        eventually(lambda: task in shared.executor.running_tasks())
        assert shared.executor.starts_of(task) == starts
        shared.executor.fail(task, "again")
    shared.await_states(name, RUNNING, FAILED)
    assert shared.executor.starts_of(task) == 3


def test_a_connector_that_fails_is_started_again_as_often_as_allowed(shared: Worker, name: str, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("broken=start\n")
    restarts = {"errors.restart.max": "-1", "errors.restart.delay.ms": "50", "errors.restart.delay.max.ms": "50"}
    shared.supervisor.create(name, table_source(broken=f"${{file:{secrets}:broken}}", **restarts))
    shared.await_states(name, State.RESTARTING)
    assert "does not work" in (shared.supervisor.status(name).connector.trace or "")
    secrets.write_text("broken=\n")
    shared.await_states(name, RUNNING, RUNNING)


def test_a_task_that_waits_for_its_restart_shows_why_it_failed(shared: Worker, name: str) -> None:
    restarts = {
        "errors.restart.max": "-1",
        "errors.restart.delay.ms": "600000",
        "errors.restart.delay.max.ms": "600000",
    }
    shared.supervisor.create(name, table_source(**restarts))
    shared.await_states(name, RUNNING, RUNNING)
    shared.executor.fail(TaskId(name, 0), "no route to host")
    shared.await_states(name, RUNNING, State.RESTARTING)
    assert shared.supervisor.task_status(name, 0).trace == "no route to host"


def test_what_could_not_be_stopped_is_stopped_later(broker: BrokerProcess, name: str) -> None:
    with running_worker(worker_settings(broker, name)) as worker:
        worker.supervisor.create("c", table_source())
        worker.supervisor.create("d", table_source())
        for connector in "cd":
            worker.await_states(connector, RUNNING, RUNNING)
        worker.executor.refusals = 2
        worker.supervisor.delete("c")
        worker.supervisor.restart_task("d", 0)
        eventually(worker.executor.running_tasks, {TaskId("d", 0)}.__eq__)
        eventually(lambda: worker.executor.starts_of(TaskId("d", 0)) == 2)
        worker.await_states("d", RUNNING, RUNNING)


def test_a_task_whose_process_died_is_started_again_at_once(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    generation = shared.executor.running[TaskId(name, 0)].generation
    shared.executor.lose(TaskId(name, 0))
    eventually(lambda: TaskId(name, 0) in shared.executor.running_tasks())
    shared.await_states(name, RUNNING, RUNNING)
    assert shared.executor.running[TaskId(name, 0)].generation > generation


# --- connectors that hang ---


def test_connectors_that_hang_hold_up_nobody_else(broker: BrokerProcess, name: str) -> None:
    with running_worker(worker_settings(broker, name, rest_request_timeout_ms=2_000)) as worker:
        for number, method in enumerate(["start", "task_configs", "start", "start"]):
            worker.supervisor.create(f"hanging-{number}", table_source(hang=method))
        worker.supervisor.create("fine", table_source())
        worker.await_states("fine", RUNNING, RUNNING)
        for number in range(4):
            worker.await_states(f"hanging-{number}", FAILED)
        assert "took longer than 2 s to start" in (worker.supervisor.status("hanging-0").connector.trace or "")
        worker.supervisor.delete("hanging-0")
        worker.supervisor.put("hanging-1", table_source())
        worker.await_states("hanging-1", RUNNING, RUNNING)


def test_a_connector_that_hangs_is_given_up_when_it_is_configured_anew(shared: Worker, name: str) -> None:
    shared.supervisor.create(name, table_source(hang="start"))
    shared.supervisor.put(name, table_source())
    shared.await_states(name, RUNNING, RUNNING)
    shared.supervisor.delete(name)


# --- offsets ---


def test_offsets_of_a_source_change_only_while_it_is_stopped(shared: Worker, name: str) -> None:
    supervisor = shared.supervisor
    entry = {"partition": {"table": "a"}, "offset": {"id": 5}}
    supervisor.create(name, table_source())
    with pytest.raises(BadRequest, match=f"STOPPED state.*'/connectors/{name}/stop' endpoint"):
        supervisor.alter_offsets(name, [entry])
    with pytest.raises(BadRequest, match="STOPPED state"):
        supervisor.reset_offsets(name)
    supervisor.set_target(name, Target.STOPPED)
    assert supervisor.offsets(name) == []
    assert "framework-managed offsets" in supervisor.alter_offsets(name, [entry])
    assert supervisor.offsets(name) == [entry]
    with pytest.raises(BadRequest, match="a partition must name its table"):
        supervisor.alter_offsets(name, [{"partition": {"file": "a"}, "offset": {"id": 5}}])
    with pytest.raises(BadRequest, match="need to be provided"):
        supervisor.alter_offsets(name, [])
    with pytest.raises(BadRequest, match="primitive types"):
        supervisor.alter_offsets(name, [{"partition": {"table": ["a"]}, "offset": None}])
    supervisor.patch(name, {"version": "1"})
    told = supervisor.reset_offsets(name)
    assert told == "The offsets for this connector have been reset successfully"
    assert supervisor.offsets(name) == []


def test_offsets_of_a_source_may_be_in_a_topic_of_its_own(shared: Worker, name: str) -> None:
    supervisor, topic = shared.supervisor, f"{name}-own"
    entry = {"partition": {"table": "a"}, "offset": {"id": 5}}
    supervisor.create(name, table_source(**{"offsets.storage.topic": topic}), initial_state=Target.STOPPED)
    supervisor.alter_offsets(name, [entry])
    assert supervisor.offsets(name) == [entry]
    supervisor.patch(name, {"offsets.storage.topic": None})
    assert supervisor.offsets(name) == []


def test_a_connector_begins_with_offsets_that_it_was_given(shared: Worker, name: str) -> None:
    entry = {"partition": {"table": "a"}, "offset": {"id": 7}}
    shared.supervisor.create(name, table_source(), initial_offsets=[entry])
    assert shared.supervisor.offsets(name) == [entry]
    with pytest.raises(BadRequest):
        shared.supervisor.create(f"{name}-bad", table_source(), initial_offsets=[{"partition": None}])
    assert f"{name}-bad" not in shared.supervisor.connectors()


def test_offsets_of_a_sink_are_those_of_its_group(broker: BrokerProcess, shared: Worker, name: str) -> None:
    create_topic(broker, name, partitions=2)
    supervisor = shared.supervisor
    supervisor.create(name, {"connector.class": "CountingSink", "topics": name}, initial_state=Target.STOPPED)
    entries: list[dict[str, Any]] = [
        {"partition": {"kafka_topic": name, "kafka_partition": number}, "offset": {"kafka_offset": 10 + number}}
        for number in (0, 1)
    ]
    written = [{**entry, "offset": {"kafka_offset": str(entry["offset"]["kafka_offset"])}} for entry in entries]
    supervisor.alter_offsets(name, written)
    assert supervisor.offsets(name) == entries
    supervisor.alter_offsets(name, [{**entries[0], "offset": None}])
    assert supervisor.offsets(name) == entries[1:]
    with pytest.raises(BadRequest, match="must contain the keys 'kafka_topic' and 'kafka_partition'"):
        supervisor.alter_offsets(name, [{"partition": {"table": "a"}, "offset": {"kafka_offset": 1}}])
    supervisor.patch(name, {"consumer.override.group.id": f"{name}-own"})
    assert supervisor.offsets(name) == []
    supervisor.patch(name, {"consumer.override.group.id": None})
    assert "reset successfully" in supervisor.reset_offsets(name)
    assert supervisor.offsets(name) == []
    assert "reset successfully" in supervisor.reset_offsets(name)


# --- topics, health ---


def test_topics_that_were_used_are_shown_and_forgotten(shared: Worker, name: str) -> None:
    shared.supervisor._services.statuses.put_topic("orders", TaskId(name, 0))
    shared.supervisor.create(name, table_source())
    assert shared.supervisor.topics(name) == ["orders"]
    shared.supervisor.reset_topics(name)
    assert shared.supervisor.topics(name) == []


def test_topics_are_not_shown_where_they_are_not_tracked(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name, topic_tracking_enable=False)
    with pytest.raises(Forbidden, match="Topic tracking is disabled"):
        Worker(settings).supervisor.topics("c")


def test_levels_of_loggers_change_on_every_worker(shared: Worker, name: str) -> None:
    shared.supervisor.set_logger_level(name, "ERROR")
    eventually(lambda: logging.getLogger(name).level, logging.ERROR.__eq__)


def test_a_worker_that_leads_is_healthy(shared: Worker) -> None:
    assert shared.supervisor.health()[0] == "healthy"
    assert shared.supervisor.cluster_id()


# --- exactly once ---


def test_tasks_that_write_in_transactions_are_fenced_before_others_begin(shared: Worker, name: str) -> None:
    configs = shared.supervisor.configs
    shared.supervisor.create(name, table_source(tables="a b", **{"exactly.once.support": "required"}))
    shared.await_states(name, RUNNING, RUNNING, RUNNING)
    plan = configs.desired(name)
    assert plan is not None
    assert plan.fenced_tasks == 2
    forgotten = ForeignProducer(
        {"bootstrap.servers": shared.settings.address, "transactional.id": f"{shared.settings.group_id}-{name}-1"}
    )
    forgotten.init_transactions(60)
    forgotten.begin_transaction()
    forgotten.produce(shared.settings.offset_storage_topic, key=b'["a",{}]', value=b"{}")
    forgotten.flush(60)
    shared.supervisor.patch(name, {"tables": "a"})
    eventually(lambda: configs.desired(name), lambda found: found is not None and found.fenced_tasks == 1)
    with pytest.raises(KafkaException) as caught:
        forgotten.commit_transaction(60)
    assert caught.value.args[0].fatal()
    eventually(lambda: shared.executor.starts_of(TaskId(name, 0)) == 2)
    shared.await_states(name, RUNNING, RUNNING)


# --- several workers, and the same one again ---


def test_one_worker_leads_and_the_others_show_what_it_does(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name)
    with running_worker(settings, "first:1") as first:
        second = Worker(settings, "second:1").start()
        first.supervisor.create("c", table_source(tables="a b"))
        first.await_states("c", RUNNING, RUNNING, RUNNING)
        second.await_states("c", RUNNING, RUNNING, RUNNING)
        assert second.supervisor.leader_url == "http://first:1/"
        with pytest.raises(NotLeader) as caught:
            second.supervisor.delete("c")
        assert caught.value.url == "http://first:1/"
    eventually(lambda: second.supervisor.is_leader)
    second.await_states("c", RUNNING, RUNNING, RUNNING)
    assert second.executor.running_tasks() == {TaskId("c", 0), TaskId("c", 1)}
    assert second.supervisor.status("c").connector.worker_id == "second:1"
    second.supervisor.close()


def test_tasks_that_outlive_the_leader_go_on_under_the_next_one(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name)
    with running_worker(settings, executor=LastingRecordingExecutor) as first:
        first.supervisor.create("c", table_source(tables="a b"))
        first.await_states("c", RUNNING, RUNNING, RUNNING)
        generations = {task: plan.generation for task, plan in first.executor.running.items()}
    assert first.executor.stopped == []
    with running_worker(settings, executor=LastingRecordingExecutor) as second:
        eventually(
            lambda: {task: plan.generation for task, plan in second.executor.running.items()}, generations.__eq__
        )
        second.supervisor.patch("c", {"tables": "a c"})
        eventually(lambda: second.executor.starts_of(TaskId("c", 1)) == 2)
        assert second.executor.running[TaskId("c", 1)].generation > generations[TaskId("c", 1)]


def test_a_worker_whose_place_is_taken_stops_everything(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name)
    with running_worker(settings, "same:1") as first:
        first.supervisor.create("c", table_source())
        first.await_states("c", RUNNING, RUNNING)
        with running_worker(settings, "same:1") as second:
            second.await_states("c", RUNNING, RUNNING)
            with pytest.raises(NotLeader):
                first.supervisor.set_target("c", Target.PAUSED)
            eventually(first.executor.running_tasks, lambda owned: not owned)
            assert second.supervisor.is_leader


def test_whatever_the_topics_say_runs_after_a_restart(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name)
    with running_worker(settings) as worker:
        worker.supervisor.create("running", table_source(tables="a b"))
        worker.supervisor.create("paused", table_source())
        worker.supervisor.create("stopped", table_source())
        worker.supervisor.create("deleted", table_source())
        for connector, tasks in (("running", 2), ("paused", 1), ("stopped", 1), ("deleted", 1)):
            worker.await_states(connector, RUNNING, *[RUNNING] * tasks)
        worker.supervisor.set_target("paused", Target.PAUSED)
        worker.supervisor.set_target("stopped", Target.STOPPED)
        worker.supervisor.delete("deleted")
        # Written, and then the leader died: nobody has planned its tasks.
        worker.supervisor.writer().put_connector("unplanned", {"name": "unplanned", **table_source()})
    with running_worker(settings) as again:
        again.await_states("running", RUNNING, RUNNING, RUNNING)
        again.await_states("paused", PAUSED, PAUSED)
        again.await_states("stopped", STOPPED)
        again.await_states("unplanned", RUNNING, RUNNING)
        assert again.supervisor.connectors() == ["paused", "running", "stopped", "unplanned"]
        assert {task.connector for task in again.executor.running_tasks()} == {"running", "paused", "unplanned"}


def test_unchanged_tasks_are_not_written_again(broker: BrokerProcess, name: str) -> None:
    settings = worker_settings(broker, name)
    with running_worker(settings) as worker:
        worker.supervisor.create("c", table_source())
        worker.await_states("c", RUNNING, RUNNING)
        starts = TableSource.starts.count("c")
        worker.supervisor.put("c", table_source())
        eventually(lambda: TableSource.starts.count("c") > starts)
        worker.await_states("c", RUNNING, RUNNING)
    keys = [key for key, _ in consume(broker, settings.config_storage_topic)]
    assert [keys.count(key) for key in (b"connector-c", b"task-c-0", b"commit-c")] == [2, 1, 1]


def test_a_worker_leads_and_runs_everything_again_after_the_broker_was_killed(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        settings: ConnectSettings = worker_settings(broker, name)
        with running_worker(settings) as worker:
            worker.supervisor.create("c", table_source())
            worker.await_states("c", RUNNING, RUNNING)
            broker.kill()
            broker.start()
            eventually(lambda: worker.supervisor.is_leader)
            worker.supervisor.create("d", table_source())
            worker.await_states("c", RUNNING, RUNNING)
            worker.await_states("d", RUNNING, RUNNING)
