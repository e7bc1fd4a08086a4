"""Tasks between a connector and a real broker: offsets, transactions, pauses, topics, the end of a task."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from connect.api.errors import DataError, RetriableError
from connect.runtime.models import State, Target
from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect_tasks import TaskWorld, task_world
from tests.support.scripted_connectors import Script


@pytest.fixture
def world(broker: BrokerProcess, name: str) -> Iterator[TaskWorld]:
    with task_world(broker, name) as made:
        yield made


@pytest.fixture
def script(name: str) -> Script:
    return Script(name)


@pytest.fixture
def admin(broker: BrokerProcess) -> Admin:
    return Admin(ClientSettings(bootstrap_servers=broker.bootstrap))


def sink(name: str) -> dict[str, str]:
    return {"connector.class": "ScriptedSink", "script": name, "topics": f"{name}-in"}


def source(name: str) -> dict[str, str]:
    return {"connector.class": "ScriptedSource", "script": name, "topic": f"{name}-out"}


def send(broker: BrokerProcess, topic: str, values: Sequence[str], *, partition: int = -1) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value=value, partition=partition)
    assert producer.flush(60) == 0


def committed_values(broker: BrokerProcess, topic: str) -> list[str]:
    """What readers of committed records see of a topic of one partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        while True:
            message = consumer.poll(60)
            if message is None or message.error() is not None:
                return found
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()


def test_a_source_goes_on_where_it_was_after_a_restart(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a", "b"]
    first = world.start(name, source(name))
    eventually(lambda: script.confirmed, lambda found: found == ["a", "b"])
    world.stop(first)
    script.to_give += ["c"]
    world.start(name, source(name))
    eventually(lambda: committed_values(broker, f"{name}-out"), lambda found: found == ["a", "b", "c"])
    assert [event for event in script.events if event.startswith("start")] == ["start at 0", "start at 2"]


def test_offsets_are_written_now_and_then_without_a_stop(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a"]
    world.start(name, source(name))

    def written() -> object:
        world.services.offsets.refresh()
        return world.services.offsets.get(name, {"script": name})

    eventually(written, lambda offset: offset == {"position": 1})


@pytest.mark.parametrize("support", ["requested", "required"])
def test_a_source_is_asked_again_to_commit_although_no_record_is_new(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, support: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a"]
    config = {**source(name), "exactly.once.support": support, "transaction.boundary.interval.ms": "100"}
    world.start(name, config)
    eventually(lambda: script.confirmed, lambda found: found == ["a"])
    before = script.commits
    eventually(lambda: script.commits, lambda commits: commits >= before + 3)


def test_a_cancelled_source_writes_no_offsets(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    task = world.start(name, source(name))
    world.wait_for(task, State.RUNNING)
    task.cancel()
    script.to_give = ["a"]
    assert task.join(60)
    world.services.offsets.refresh()
    assert world.services.offsets.get(name, {"script": name}) is None


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_an_exactly_once_source_writes_each_record_once_with_its_offsets(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, boundary: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = [str(number) for number in range(25)]
    config = {
        **source(name),
        "batch": "10",
        "exactly.once.support": "required",
        "transaction.boundary": boundary,
        "transaction.boundary.interval.ms": "100",
    }
    first = world.start(name, config)
    eventually(lambda: len(script.confirmed), lambda count: count == 25)
    first.cancel()  # as if it was killed
    assert first.join(60)
    script.to_give += ["x"]
    world.start(name, config)
    eventually(lambda: committed_values(broker, f"{name}-out"), lambda found: found == script.to_give)


def test_an_exactly_once_source_that_was_replaced_can_write_no_more(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    config = {**source(name), "exactly.once.support": "required"}
    old = world.start(name, config)
    world.wait_for(old, State.RUNNING)
    new = world.start(name, config)
    world.wait_for(new, State.RUNNING)
    script.to_give = ["a", "b"]
    eventually(lambda: old.state, lambda state: state is State.RESTARTING)
    eventually(lambda: committed_values(broker, f"{name}-out"), lambda found: found == ["a", "b"])
    assert new.state is State.RUNNING


def test_an_exactly_once_source_stops_when_kafka_refuses_a_record_even_if_errors_are_tolerated(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out", configs={"max.message.bytes": "1000"})
    script.to_give = ["a", "b" * 5000]
    task = world.start(name, {**source(name), "exactly.once.support": "required", "errors.tolerance": "all"})
    assert "The transaction failed" in world.wait_for(task, State.FAILED)
    assert committed_values(broker, f"{name}-out") == []


def test_a_source_decides_itself_what_belongs_together(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a", "b", "c"]
    config = {
        **source(name),
        "batch": "1",
        "exactly.once.support": "required",
        "transaction.boundary": "connector",
    }
    polls: list[int] = []

    def poll() -> None:
        polls.append(1)
        if len(polls) == 2:
            script.context.transaction.commit()

    script.on_poll = poll
    world.start(name, config)
    eventually(lambda: committed_values(broker, f"{name}-out"), lambda found: found == ["a", "b"])
    eventually(lambda: len(polls), lambda count: count > 5)
    assert committed_values(broker, f"{name}-out") == ["a", "b"]


def test_a_source_creates_its_topics_as_its_groups_say(
    world: TaskWorld, admin: Admin, script: Script, name: str
) -> None:
    script.to_give = ["a"]
    config = {
        **source(name),
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.groups": "small",
        "topic.creation.small.include": f"{name}-.*",
        "topic.creation.small.partitions": "3",
        "topic.creation.small.retention.ms": "12345678",
    }
    world.start(name, config)
    eventually(lambda: script.confirmed)
    assert admin.topic_names()[f"{name}-out"] == 3
    configs = {config.key: config.value for config in admin.configs(f"{name}-out")}
    assert configs["retention.ms"] == "12345678"


def test_a_paused_sink_stays_in_its_group_and_takes_nothing_until_it_is_resumed(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    task = world.start(name, sink(name))
    send(broker, f"{name}-in", ["a"])
    eventually(lambda: script.values, lambda values: values == ["a"])
    task.set_target(Target.PAUSED)
    world.wait_for(task, State.PAUSED)
    send(broker, f"{name}-in", ["b"])
    eventually(lambda: len(admin.group(f"connect-{name}").members), lambda count: count == 1)
    assert script.values == ["a"]
    task.set_target(Target.STARTED)
    eventually(lambda: script.values, lambda values: values == ["a", "b"])
    world.wait_for(task, State.RUNNING)


def test_a_sink_that_is_stopped_has_committed_what_it_took_and_left_its_group(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])
    task = world.start(name, sink(name))
    eventually(lambda: script.values, lambda values: values == ["a", "b"])
    world.stop(task)
    assert admin.group_offsets(f"connect-{name}") == {(f"{name}-in", 0): 2}
    assert admin.group(f"connect-{name}").members == ()
    assert script.events[-1] == "stop"


def test_a_sink_whose_place_another_run_took_says_so_and_leaves_the_other_in_the_group(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    old = world.start(name, sink(name))
    eventually(lambda: script.values, lambda values: values == ["a"])
    new = world.start(name, sink(name))
    eventually(lambda: old.state, lambda state: state is State.RESTARTING)
    assert old.join(60)
    (member,) = admin.group(f"connect-{name}").members
    send(broker, f"{name}-in", ["b"])
    eventually(lambda: script.values, lambda values: values[-1] == "b")
    assert admin.group(f"connect-{name}").members[0].member_id == member.member_id
    assert new.state is State.RUNNING


def test_two_tasks_of_a_sink_share_the_partitions(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in", partitions=4)
    tasks = [world.start(name, sink(name), task=number) for number in range(2)]
    eventually(lambda: [task.counters.partition_count for task in tasks], lambda counts: counts == [2, 2], timeout_s=40)


def test_records_of_a_partition_that_another_task_got_during_an_outage_are_left_to_it(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    topic, other = f"{name}-in", Script(f"{name}-other")
    create_topic(broker, topic, partitions=2)
    script.on_put = other.on_put = _away
    send(broker, topic, ["b"], partition=1)
    world.start(name, sink(name))
    eventually(lambda: script.batches, timeout_s=60)
    world.start(name, {**sink(name), "script": f"{name}-other"}, task=1)
    eventually(lambda: other.batches, timeout_s=60)
    script.on_put = lambda _: None
    send(broker, topic, ["a"], partition=0)
    offsets = eventually(
        lambda: admin.group_offsets(f"connect-{name}"), lambda found: found.get((topic, 0)) == 1, timeout_s=60
    )
    assert offsets == {(topic, 0): 1}
    assert script.values == ["a"]


def test_records_of_a_partition_that_went_and_came_back_during_an_outage_are_read_again(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    topic = f"{name}-in"
    create_topic(broker, topic, partitions=2)
    script.on_put = _away
    send(broker, topic, ["a1", "a2"], partition=0)
    world.start(name, sink(name))
    eventually(lambda: script.batches, timeout_s=60)
    Script(f"{name}-other")
    world.start(name, {**sink(name), "script": f"{name}-other"}, task=1)
    eventually(lambda: script.events, lambda events: events[-1] == f"open {[(topic, 0)]}", timeout_s=60)
    script.on_put = lambda _: None
    send(broker, topic, ["a3"], partition=0)
    eventually(lambda: admin.group_offsets(f"connect-{name}"), lambda found: found == {(topic, 0): 3}, timeout_s=60)
    assert script.values == ["a1", "a2", "a3"]


def _away(records: Sequence[object]) -> None:
    if records:
        raise RetriableError("down")


def test_topics_that_match_a_pattern_are_read_when_they_come(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    config = {"connector.class": "ScriptedSink", "script": name, "topics.regex": f"{name}-[0-9]"}
    create_topic(broker, f"{name}-1")
    create_topic(broker, f"{name}-other")
    send(broker, f"{name}-other", ["no"])
    world.start(name, config)
    send(broker, f"{name}-1", ["a"])
    eventually(lambda: script.values, lambda values: values == ["a"])
    create_topic(broker, f"{name}-2")
    send(broker, f"{name}-2", ["b"])
    eventually(lambda: script.values, lambda values: values == ["a", "b"])


def test_a_sink_reads_on_where_it_says_itself(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    done: list[int] = []

    def put(records: Sequence[object]) -> None:
        if records and not done:
            done.append(1)
            script.context.rewind({(f"{name}-in", 0): 1})

    script.on_put = put
    world.start(name, sink(name))
    eventually(lambda: script.values, lambda values: values == ["a", "b", "c", "b", "c"])


def test_what_a_sink_wants_to_read_again_is_not_committed(
    world: TaskWorld, broker: BrokerProcess, admin: Admin, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    script.on_put = lambda records: script.context.rewind({(f"{name}-in", 0): 1}) if records else None
    task = world.start(name, sink(name))
    eventually(lambda: script.values, lambda values: len(values) > 5)
    world.stop(task)
    assert admin.group_offsets(f"connect-{name}") == {(f"{name}-in", 0): 1}


def test_the_lag_of_a_sink_is_how_far_it_is_behind(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["x"] * 10)

    def put(records: Sequence[object]) -> None:
        if records:
            script.context.request_commit()
            eventually(lambda: task.counters.sink_record_lag_max, lambda lag: lag == -1 or lag == len(left))
            left.pop()

    left = list(range(10))
    script.on_put = put
    task = world.start(name, {**sink(name), "consumer.override.max.poll.records": "1"})
    eventually(lambda: task.counters.sink_record_lag_max, lambda lag: lag == 0)


def test_the_topics_that_tasks_use_are_noted(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    world.start(name, sink(name))
    eventually(lambda: world.statuses.topics(name), lambda uses: [use.name for use in uses] == [f"{name}-in"])


def test_a_task_that_cannot_start_tells_why(world: TaskWorld, script: Script, name: str) -> None:
    task = world.start(name, {**sink(name), "value.converter": "org.example.Missing"})
    assert "org.example.Missing" in world.wait_for(task, State.FAILED)


def test_a_failure_while_stopping_is_no_failure_of_the_task(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    task = world.start(name, source(name))
    world.wait_for(task, State.RUNNING)

    def poll() -> None:
        task.stop()
        raise DataError("too late")

    script.on_poll = poll
    assert task.join(60)
    assert task.state is State.UNASSIGNED


def test_placeholders_are_filled_in_when_the_task_starts(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(broker, f"{name}-in")
    monkeypatch.setenv("CONNECT_TEST_SCRIPT", name)
    task = world.start(name, {**sink(name), "script": "${env:CONNECT_TEST_SCRIPT}"})
    world.wait_for(task, State.RUNNING)


def test_what_placeholders_stand_for_is_in_no_trace_and_no_dead_letter(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    monkeypatch.setenv("CONNECT_TEST_PASSWORD", "correct horse")

    def put(records: Sequence[object]) -> None:
        if records:
            raise DataError("login with correct horse failed")

    script.on_put = put
    config = {
        **sink(name),
        "password": "${env:CONNECT_TEST_PASSWORD}",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.tolerance": "all",
    }
    world.start(name, config)
    eventually(lambda: committed_values(broker, f"{name}-dead"))
    headers = committed_headers(broker, f"{name}-dead")
    assert "correct horse" not in headers
    assert "${env:CONNECT_TEST_PASSWORD}" in headers
    failing = world.start(f"{name}-2", {**config, "errors.tolerance": "none"})
    assert "login with ${env:CONNECT_TEST_PASSWORD} failed" in world.wait_for(failing, State.FAILED)


def committed_headers(broker: BrokerProcess, topic: str) -> str:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "judge"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        return str(message.headers())
    finally:
        consumer.close()
