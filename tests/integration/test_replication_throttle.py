"""Replicas that move are throttled, and nothing else is, on three brokers."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.command import Caudal
from tests.support.platform import caudal as caudal_command
from tests.support.service import service_environment

RATE = 10_000
FETCH_BYTES = 100_000
RECORD_BYTES = 10_000
RECORDS = 400
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    # A follower copies ten times the limit with each fetch, and then has to wait for as many seconds.
    settings = {"replica.fetch.max.bytes": str(FETCH_BYTES)}
    with BrokerCluster(tmp_path_factory.mktemp("throttle"), settings=settings) as brokers:
        yield brokers


@pytest.fixture
def admin(cluster: BrokerCluster) -> Admin:
    return Admin(ClientSettings(bootstrap_servers=cluster.bootstrap, properties={"log_level": "0"}))


@pytest.fixture
def caudal(cluster: BrokerCluster, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", cluster.bootstrap)
    return Caudal(monkeypatch)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Commands that the test starts can be interrupted, also where the tests run in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def copied_bytes(admin: Admin, topic: str, broker_id: int) -> int:
    broker = next(item for item in admin.cluster().brokers if item.id == broker_id)
    return sum(folder.partition_bytes.get((topic, 0), 0) for folder in admin.maintenance.log_dirs(broker))


def limited(admin: Admin) -> list[int]:
    """The brokers that have a rate of their own."""
    configs = admin.configs_of_brokers([1, 2, 3]).items()
    own = "DYNAMIC_BROKER_CONFIG"
    return [id_ for id_, found in configs if any(item.key in RATES and item.source == own for item in found)]


def lists(admin: Admin, topic: str) -> list[str | None]:
    return [config.value for config in admin.configs(topic) if config.key in LISTS]


def fill(cluster: BrokerCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, "batch.size": FETCH_BYTES})
    for number in range(RECORDS):
        producer.produce(topic, number.to_bytes(4) * (RECORD_BYTES // 4))
    assert producer.flush(60) == 0


def send_one_by_one(cluster: BrokerCluster, topic: str, count: int) -> int:
    """Write records that wait for all replicas, each after the ack of the one before; returns how many were acked."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0})
    failures: list[object] = []
    for _ in range(count):
        producer.produce(topic, bytes(1000), on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(60) == 0
    return failures.count(None)


@pytest.mark.usefixtures("interruptible")
def test_a_move_is_limited_and_replicas_in_sync_are_not(
    cluster: BrokerCluster, admin: Admin, caudal: Caudal, tmp_path: Path
) -> None:
    admin.create_topic("big", assignment=[[1]], configs={"min.insync.replicas": "1"})
    # In sync, this topic is not throttled although it asks for it; what it copies uses up the limit.
    admin.create_topic("busy", assignment=[[1, 2, 3]], configs=dict.fromkeys(LISTS, "*"))
    fill(cluster, "big")
    whole = copied_bytes(admin, "big", 1)
    assert whole > RECORDS * RECORD_BYTES
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"partitions": [{"topic": "big", "partition": 0, "replicas": [2]}]}))
    with subprocess.Popen(
        caudal_command("cluster", "reassign", "run", str(file), "--throttle", str(RATE)),
        env={**service_environment(), "CAUDAL_BOOTSTRAP": cluster.bootstrap},
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        try:
            eventually(lambda: copied_bytes(admin, "big", 2) > 0)
            assert limited(admin) == [1, 2]
            assert lists(admin, "big") == ["0:2", "0:1"]
            assert send_one_by_one(cluster, "busy", 200) == 200
            assert 0 < copied_bytes(admin, "big", 2) < whole / 2
            assert admin.reassignments()
            command.send_signal(signal.SIGINT)
            said = command.communicate(timeout=60)[1]
        finally:
            command.kill()
    assert "the limit of 10 kB/s for replicas that move stays in place" in said
    assert "caudal cluster reassign watch" in said
    assert limited(admin) == [1, 2], "what moves stays limited"
    cancelled = caudal("cluster", "reassign", "cancel", "--yes").stderr
    assert "1 move cancelled" in cancelled
    assert "replication is no longer limited" in cancelled
    eventually(lambda: limited(admin) == [] and lists(admin, "big") == ["", ""])
    assert lists(admin, "busy") == ["*", "*"], "they were not set for a move"
    moved = caudal.json("cluster", "reassign", "run", str(file), "--throttle", str(100 * whole))
    assert [move["after"] for move in moved["moved"]] == [[2]]
    eventually(lambda: limited(admin) == [] and lists(admin, "big") == ["", ""])
    assert copied_bytes(admin, "big", 2) == whole


def test_limits_that_an_interrupted_command_has_left_are_removed_by_watch(
    admin: Admin, caudal: Caudal, name: str
) -> None:
    admin.create_topic(name, assignment=[[1]], configs={LISTS[0]: "0:1", "min.insync.replicas": "1"})
    admin.alter_broker_configs(3, put={RATES[1]: str(RATE)})
    eventually(lambda: limited(admin) == [3])
    assert "replication is no longer limited" in caudal("cluster", "reassign", "watch").stderr
    eventually(lambda: limited(admin) == [] and lists(admin, name) == ["", ""])
    assert "no longer limited" not in caudal("cluster", "reassign", "watch").stderr
