"""Redis against a real server: the standard suites, refusals, outages, and a kill in the middle of a put."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
from confluent_kafka import Producer
from typing_extensions import override

from connect.api import data
from connect.api.config import Problem
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.api.record import SinkRecord
from connect.testing.contexts import FakeConnectorContext, FakeSinkContext, FakeSourceContext
from connect.testing.samples import sink_record
from connect.testing.sink_suite import TOPIC, SinkSuite
from connect.testing.source_suite import SourceSuite
from connectors.redis.config import RedisSinkConfig, RedisStreamConfig
from connectors.redis.sink import RedisSinkConnector, RedisSinkTask
from connectors.redis.source import RedisStreamSourceConnector, RedisStreamTask
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.certificates import self_signed
from tests.support.connect import ConnectProcess
from tests.support.connect_worker import consume
from tests.support.redis_server import RedisServer, redis_program, running_redis

DATABASE = 5
GROUP = "kafka-consumer-group"


@pytest.fixture
def database(redis_server: RedisServer) -> Iterator[Any]:
    """A client of an empty database, whose number is DATABASE."""
    with redis.Redis(port=redis_server.port, db=DATABASE, decode_responses=True, encoding_errors="replace") as client:
        client.flushdb()
        yield client
        client.flushdb()


def address(server: RedisServer) -> dict[str, str]:
    return {"redis.uri": server.url_of(DATABASE)}


class RedisSinkChecks(SinkSuite):
    """The standard suite, for one type."""

    connector_class = RedisSinkConnector
    can_break = True
    is_idempotent = True
    kind: ClassVar[str]

    @pytest.fixture(autouse=True)
    def other_side(self, redis_server: RedisServer, database: Any) -> None:
        self.server = redis_server
        self.client = database

    @override
    def config(self) -> Mapping[str, str]:
        return {
            **address(self.server),
            "redis.type": self.kind,
            "redis.timeout": "0.5",
            "retry.backoff.ms": "10",
        }

    @override
    def break_other_side(self) -> None:
        self.server.freeze()

    @override
    def mend_other_side(self) -> None:
        self.server.thaw()


class TestHashSuite(RedisSinkChecks):
    kind = "HASH"

    @override
    def written(self) -> list[Value]:
        return [self.client.hgetall(key) for key in self.client.scan_iter()]

    @override
    def expected(self, record: SinkRecord) -> Value:
        return {name: str(item) for name, item in record.value.items()}

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.STRING, "no fields"


class TestStringSuite(RedisSinkChecks):
    kind = "STRING"

    @override
    def written(self) -> list[Value]:
        return [self.client.get(key) for key in self.client.scan_iter()]

    @override
    def expected(self, record: SinkRecord) -> Value:
        return f'{{"id":{record.value["id"]},"name":"{record.value["name"]}"}}'

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return None, {"not": float("nan")}


class TestStreamSuite(RedisSinkChecks):
    kind = "STREAM"
    is_idempotent = False

    @override
    def written(self) -> list[Value]:
        return [fields for _, fields in self.client.xrange(TOPIC)]

    @override
    def expected(self, record: SinkRecord) -> Value:
        return {name: str(item) for name, item in record.value.items()}

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.OPTIONAL_STRING, None


class TestSetInTransactionsSuite(RedisSinkChecks):
    kind = "SET"

    @override
    def config(self) -> Mapping[str, str]:
        return {**super().config(), "redis.multiexec": "true"}

    @override
    def written(self) -> list[Value]:
        return list(self.client.smembers(TOPIC))

    @override
    def expected(self, record: SinkRecord) -> Value:
        return record.key


class TestStreamSourceSuite(SourceSuite):
    connector_class = RedisStreamSourceConnector
    batch_option = "batch.size"
    can_break = True

    @pytest.fixture(autouse=True)
    def other_side(self, redis_server: RedisServer, database: Any) -> None:
        self.server = redis_server
        self.client = database

    @override
    def config(self) -> Mapping[str, str]:
        return {
            **address(self.server),
            "redis.stream.name": "orders",
            "redis.stream.block": "20",
            "redis.timeout": "0.5",
        }

    @override
    def produce(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.client.xadd("orders", {"number": str(number)})

    @override
    def break_other_side(self) -> None:
        self.server.freeze()

    @override
    def mend_other_side(self) -> None:
        self.server.thaw()


# --- the sink ---


def sink(server: RedisServer, context: FakeSinkContext, **config: str) -> RedisSinkTask:
    given = {
        **address(server),
        "retry.backoff.ms": "10",
        **{key.replace("_", "."): text for key, text in config.items()},
    }
    return RedisSinkTask(RedisSinkConfig.parse(given), context)


def orders(count: int) -> list[SinkRecord]:
    return [sink_record("orders", number, key=str(number), value={"id": number}) for number in range(count)]


def test_a_key_of_another_type_is_the_fault_of_its_record_alone(redis_server: RedisServer, database: Any) -> None:
    database.rpush("orders:1", "a list")
    context = FakeSinkContext()
    task = sink(redis_server, context, redis_type="HASH")
    task.put(orders(3))
    task.stop()
    assert [record.offset for record, _ in context.reported] == [1]
    assert "WRONGTYPE" in str(context.reported[0][1])
    assert sorted(database.keys()) == ["orders:0", "orders:1", "orders:2"]


def test_a_tombstone_deletes_its_key(redis_server: RedisServer, database: Any) -> None:
    task = sink(redis_server, FakeSinkContext(), redis_type="HASH")
    task.put([*orders(2), sink_record("orders", 2, key="0", value=None)])
    task.stop()
    assert database.keys() == ["orders:1"]


def test_keys_expire(redis_server: RedisServer, database: Any) -> None:
    task = sink(redis_server, FakeSinkContext(), redis_type="HASH", **{"redis.key.ttl": "100"})
    task.put(orders(1))
    task.stop()
    assert 0 < database.ttl("orders:0") <= 100


@pytest.mark.parametrize("multiexec", ["false", "true"])
def test_a_full_redis_is_waited_for_and_what_it_has_is_not_written_twice(
    redis_server: RedisServer, database: Any, multiexec: str
) -> None:
    context = FakeSinkContext()
    task = sink(redis_server, context, redis_type="STREAM", redis_multiexec=multiexec)
    task.put(orders(1))
    database.config_set("maxmemory", "1")
    try:
        with pytest.raises(RetriableError):
            task.put(orders(5)[1:])
    finally:
        database.config_set("maxmemory", "0")
    task.put(orders(5)[1:])
    task.stop()
    assert context.reported == []
    assert context.retries_after_ms == [10]
    assert [fields for _, fields in database.xrange("orders")] == [{"id": str(number)} for number in range(5)]


def test_what_redis_took_before_it_refused_the_rest_is_not_written_twice(
    redis_server: RedisServer, database: Any
) -> None:
    database.acl_setuser("half", enabled=True, passwords=["+x"], keys=["a"], commands=["+@all"])
    context = FakeSinkContext()
    task = sink(redis_server, context, **{"redis.username": "half", "redis.password": "x"})
    topics = ["a", "b", "a", "b"]
    records = [sink_record(topic, number, value={"n": number}) for number, topic in enumerate(topics)]
    try:
        with pytest.raises(RetriableError):
            task.put(records)
        database.acl_setuser("half", enabled=True, keys=["b"])
        task.put(records)
        task.stop()
    finally:
        database.acl_deluser("half")
    assert context.reported == []
    assert [fields["n"] for _, fields in database.xrange("a")] == ["0", "2"]
    assert [fields["n"] for _, fields in database.xrange("b")] == ["1", "3"]


def test_a_bad_record_is_told_once_though_its_batch_comes_again(redis_server: RedisServer, database: Any) -> None:
    context = FakeSinkContext()
    task = sink(redis_server, context, redis_type="HASH")
    records = [sink_record("orders", 0, key="0", value="no fields"), *orders(3)[1:]]
    database.config_set("maxmemory", "1")
    try:
        with pytest.raises(RetriableError):
            task.put(records)
    finally:
        database.config_set("maxmemory", "0")
    task.put(records)
    task.stop()
    assert [record.offset for record, _ in context.reported] == [0]
    assert sorted(database.keys()) == ["orders:1", "orders:2"]


def test_a_replica_that_must_not_be_written_is_no_fault_of_a_record(redis_server: RedisServer) -> None:
    with running_redis() as replica, replica.client() as client:
        client.replicaof("127.0.0.1", str(redis_server.port))
        context = FakeSinkContext()
        task = sink(replica, context, redis_type="HASH")
        with pytest.raises(RetriableError):
            task.put(orders(2))
        task.stop()
    assert context.reported == []


def test_replicas_that_are_missing_are_waited_for(redis_server: RedisServer, database: Any) -> None:
    task = sink(
        redis_server, FakeSinkContext(), redis_type="HASH", **{"redis.wait.replicas": "1", "redis.wait.timeout": "10"}
    )
    with pytest.raises(RetriableError, match="replicas"):
        task.put(orders(1))
    task.stop()


def test_json_is_refused_clearly_where_redis_does_not_know_it(redis_server: RedisServer, database: Any) -> None:
    config = RedisSinkConfig.parse({**address(redis_server), "redis.type": "JSON"})
    with redis.Redis(port=redis_server.port) as client:
        if client.execute_command("COMMAND INFO", "JSON.SET") != [None]:
            pytest.skip("this Redis knows JSON")
    problems: list[Problem] = list(RedisSinkConnector.validate(config))
    assert [problem.key for problem in problems] == ["redis.type"]
    task = RedisSinkTask(config, FakeSinkContext())
    with pytest.raises(ConfigError, match="JSON"):
        task.start()
    task.stop()


def test_a_redis_that_is_killed_in_the_middle_of_puts_loses_nothing() -> None:
    with running_redis(is_durable=True) as server:
        task = sink(server, FakeSinkContext(), redis_type="HASH", **{"batch.size": "50"})
        records = orders(4000)
        midst = threading.Event()

        def kill_and_start() -> None:
            midst.wait(30)
            server.kill()
            server.start()

        killer = threading.Thread(target=kill_and_start)
        killer.start()
        failures = 0
        for start in range(0, len(records), 400):
            if start == 800:
                midst.set()
            failures += put_until_done(task, records[start : start + 400])
        killer.join()
        failures += put_until_done(task, records[:1])
        task.stop()
        with redis.Redis(port=server.port, db=DATABASE) as client:
            found = sum(1 for number in range(4000) if client.hget(f"orders:{number}", "id") == str(number).encode())
    assert found == 4000
    assert failures > 0, "the kill was not noticed"


def put_until_done(task: RedisSinkTask, records: list[SinkRecord]) -> int:
    """Put as a worker does, and count the failures."""
    failures: list[RetriableError] = []

    def attempt() -> bool:
        try:
            task.put(records)
        except RetriableError as error:
            failures.append(error)
            return False
        return True

    eventually(attempt, bool)
    return len(failures)


def test_an_encrypted_redis_is_trusted_by_its_certificate(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    tls = {"redis.tls": "true", "redis.uri": "", "redis.host": "127.0.0.1", "redis.type": "HASH"}
    with encrypted_redis(tmp_path, certificate, key) as port:
        given = {**tls, "redis.port": str(port)}
        for trust in {"redis.cacert": str(certificate)}, {"redis.insecure": "true"}:
            task = RedisSinkTask(RedisSinkConfig.parse({**given, **trust}), FakeSinkContext())
            task.put(orders(1))
            task.stop()
        task = RedisSinkTask(RedisSinkConfig.parse(given), FakeSinkContext())
        with pytest.raises(RetriableError, match="(?i)certificate"):
            task.put(orders(1))
        task.stop()


@contextmanager
def encrypted_redis(folder: Path, certificate: Path, key: Path) -> Iterator[int]:
    """A Redis that speaks TLS only, and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-ca-cert-file", str(certificate)]
    options = ["--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no", "--save", "", "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as said:
        process = subprocess.Popen([redis_program(), "--bind", "127.0.0.1", *options, *files], stdout=said)
    try:
        client = redis.Redis(port=port, ssl=True, ssl_cert_reqs="none", ssl_check_hostname=False)
        with client:
            eventually(lambda: answers(client))
        yield port
    finally:
        process.kill()
        process.wait()


def answers(client: "redis.Redis") -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


# --- the source ---


def source(server: RedisServer, context: FakeSourceContext, **config: str) -> RedisStreamTask:
    given = {"redis.stream.name": "orders", "redis.stream.block": "20"}
    return RedisStreamTask(RedisStreamConfig.parse({**address(server), **given, **config}), context)


def add(database: Any, *numbers: int) -> list[str]:
    return [database.xadd("orders", {"number": str(number)}) for number in numbers]


def test_an_entry_is_acknowledged_when_it_is_safe_and_not_before(redis_server: RedisServer, database: Any) -> None:
    add(database, 1, 2, 3)
    task = source(redis_server, FakeSourceContext())
    records = task.poll()
    assert database.xpending("orders", GROUP)["pending"] == 3
    for record in records[:2]:
        task.commit_record(record)
    assert database.xpending("orders", GROUP)["pending"] == 3
    task.commit()
    assert database.xpending("orders", GROUP)["pending"] == 1
    task.stop()


def test_at_most_once_leaves_nothing_to_acknowledge(redis_server: RedisServer, database: Any) -> None:
    add(database, 1, 2)
    config = {"redis.stream.delivery": "at-most-once"}
    first = source(redis_server, FakeSourceContext(), **config)
    assert len(first.poll()) == 2
    first.stop()
    second = source(redis_server, FakeSourceContext(), **config)
    assert second.poll() == []
    second.stop()
    assert database.xpending("orders", GROUP)["pending"] == 0


def test_entries_of_a_consumer_that_is_gone_are_taken_over(redis_server: RedisServer, database: Any) -> None:
    ids = add(database, 1, 2, 3)
    gone = source(redis_server, FakeSourceContext(task=1))
    gone.poll()
    gone.stop()
    heir = source(redis_server, FakeSourceContext(task=0), **{"redis.stream.claim.idle.ms": "1"})
    taken = eventually(heir.poll, bool)
    assert [record.key for record in taken] == ids
    again = [record for _ in range(10) for record in heir.poll()]
    assert again == [], "what is under way is not taken over once more"
    for record in taken:
        heir.commit_record(record)
    heir.commit()
    heir.stop()
    assert database.xpending("orders", GROUP)["pending"] == 0


def test_tasks_share_the_entries(redis_server: RedisServer, database: Any) -> None:
    ids = add(database, *range(20))
    tasks = [source(redis_server, FakeSourceContext(task=number), **{"batch.size": "5"}) for number in range(2)]
    found = [record.key for _ in range(3) for task in tasks for record in task.poll()]
    for task in tasks:
        task.stop()
    assert sorted(found) == sorted(ids)


def test_an_entry_that_is_no_text_is_reported_and_acknowledged(redis_server: RedisServer, database: Any) -> None:
    with redis.Redis(port=redis_server.port, db=DATABASE) as client:
        client.xadd("orders", {"number": b"\xff"})
    add(database, 2)
    context = FakeSourceContext()
    task = source(redis_server, context)
    records = task.poll()
    assert [record.value["body"] for record in records] == [{"number": "2"}]
    assert [reported.data for reported in context.reported] == [b"number=\xff"]
    task.commit_record(records[0])
    task.commit()
    task.stop()
    assert database.xpending("orders", GROUP)["pending"] == 0


def test_an_entry_that_was_deleted_meanwhile_holds_nothing_up(redis_server: RedisServer, database: Any) -> None:
    first, _ = add(database, 1, 2)
    before = source(redis_server, FakeSourceContext())
    assert len(before.poll()) == 2
    before.stop()
    database.xdel("orders", first)
    after = source(redis_server, FakeSourceContext())
    assert [record.value["body"]["number"] for record in after.poll()] == ["2"]
    after.commit()
    after.stop()
    assert database.xpending("orders", GROUP)["pending"] == 1


def test_a_record_has_id_body_and_stream(redis_server: RedisServer, database: Any) -> None:
    [entry] = add(database, 1)
    task = source(redis_server, FakeSourceContext(), topic="from-${stream}")
    [record] = task.poll()
    task.stop()
    assert (record.topic, record.key) == ("from-orders", entry)
    assert record.value == {"id": entry, "body": {"number": "1"}, "stream": "orders"}
    assert record.timestamp_ms == int(entry.split("-")[0])
    assert record.source_offset == {"offset": entry}


def test_a_group_that_is_lost_is_created_again(redis_server: RedisServer, database: Any) -> None:
    task = source(redis_server, FakeSourceContext())
    assert task.poll() == []
    database.flushdb()
    add(database, 1)
    records = eventually(task.poll, bool)
    task.stop()
    assert [record.value["body"]["number"] for record in records] == ["1"]


def test_offsets_that_are_changed_by_hand_move_the_group(redis_server: RedisServer, database: Any) -> None:
    ids = add(database, 1, 2, 3)
    task = source(redis_server, FakeSourceContext())
    assert len(task.poll()) == 3
    config = RedisStreamConfig.parse({**address(redis_server), "redis.stream.name": "orders"})
    connector = RedisStreamSourceConnector(config, FakeConnectorContext())
    connector.alter_offsets([({"stream": "orders"}, {"offset": ids[0]})])
    assert [record.key for record in task.poll()] == ids[1:]
    connector.alter_offsets([({"stream": "orders"}, None)])
    assert [record.key for record in task.poll()] == ids
    task.stop()
    for wrong in ({"stream": "x"}, {"offset": ids[0]}), ({"stream": "orders"}, {"offset": 5}):
        with pytest.raises(ConnectError):
            connector.alter_offsets([wrong])


# --- through a worker ---


def test_a_stream_goes_through_kafka_and_comes_out_as_hashes(
    connect: ConnectProcess, broker: BrokerProcess, redis_server: RedisServer, database: Any, name: str
) -> None:
    create_topic(broker, name)
    json = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    text = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
    reading = {
        "connector.class": "com.redis.kafka.connect.RedisStreamSourceConnector",
        **address(redis_server),
        "redis.stream.name": "orders",
        "topic": name,
        "transforms": "body",
        "transforms.body.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.body.field": "body",
        **json,
        **text,
    }
    writing = {
        "connector.class": "com.redis.kafka.connect.RedisSinkConnector",
        **address(redis_server),
        "topics": name,
        "redis.type": "HASH",
        "redis.keyspace": "out",
        **json,
        **text,
    }
    ids = add(database, *range(100))
    connect.create(f"{name}-in", reading)
    connect.create(f"{name}-out", writing)
    eventually(lambda: len(database.keys("out:*")), lambda count: count == 100)
    assert database.hgetall(f"out:{ids[7]}") == {"number": "7"}
    assert len(consume(broker, name)) == 100
    eventually(lambda: database.xpending("orders", GROUP)["pending"], lambda count: count == 0)
    connect.delete(f"{name}-in")
    connect.delete(f"{name}-out")


def killed_under_load(server: RedisServer, progress: Callable[[], int], *, until: int) -> None:
    """Kill Redis three times on the way, and start it again."""
    for part in (1, 2, 3):
        eventually(progress, lambda count, part=part: count >= until * part // 5)  # type: ignore[misc]  # bound early
        server.kill()
        server.start()


def test_a_sink_loses_nothing_and_blames_nobody_when_redis_is_killed_under_load(
    connect: ConnectProcess, broker: BrokerProcess, name: str
) -> None:
    count = 30_000
    create_topic(broker, name, partitions=2)
    create_topic(broker, f"{name}-dead")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 200_000})
    for number in range(count):
        producer.produce(name, f'{{"id":{number}}}', key=str(number))
    producer.flush()
    with running_redis(is_durable=True) as server:
        config = {
            "connector.class": "com.redis.kafka.connect.RedisSinkConnector",
            "topics": name,
            "tasks.max": "2",
            "redis.uri": server.url,
            "redis.type": "HASH",
            "redis.keyspace": "out",
            "batch.size": "200",
            "retry.backoff.ms": "50",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{name}-dead",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }

        def written() -> int:
            with server.client() as client:
                return int(client.dbsize())

        connect.create(name, config)
        killed_under_load(server, written, until=count)
        # A disk that is busy with other things makes each of the 150 synced batches slow.
        eventually(written, lambda found: found == count, timeout_s=200.0)
        with server.client() as client:
            sample = [client.hget(f"out:{number}", "id") for number in range(0, count, 97)]
        assert sample == [str(number).encode() for number in range(0, count, 97)]
        assert consume(broker, f"{name}-dead") == []
        connect.wait_for(name, "RUNNING", tasks=2)
        connect.delete(name)


def test_a_source_loses_nothing_when_redis_is_killed_under_load(
    connect: ConnectProcess, broker: BrokerProcess, name: str
) -> None:
    count = 20_000
    create_topic(broker, name)
    with running_redis(is_durable=True) as server:
        with server.client() as client, client.pipeline(transaction=False) as pipeline:
            for number in range(count):
                pipeline.xadd("entries", {"number": number})
            pipeline.execute()
        config = {
            "connector.class": "com.redis.kafka.connect.RedisStreamSourceConnector",
            "tasks.max": "2",
            "redis.uri": server.url,
            "redis.stream.name": "entries",
            "batch.size": "100",
            "topic": name,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
        connect.create(name, config)
        killed_under_load(server, lambda: len(consume(broker, name)), until=count)
        eventually(lambda: len({key for key, _ in consume(broker, name)}), lambda found: found == count)

        def pending() -> int:
            with server.client() as client:
                return int(client.xpending("entries", GROUP)["pending"])

        eventually(pending, lambda found: found == 0)
        connect.delete(name)
