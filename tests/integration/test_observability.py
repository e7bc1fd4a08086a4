"""What a running broker tells about itself: metrics, health, the request log, and its end."""

import json
import re
import shutil
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import consumer_config


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"metrics.listener": "http://127.0.0.1:0", "request.log.enable": "true", "logging.format": "json"}
    with BrokerProcess(tmp_path_factory.mktemp("watched"), settings=settings) as process:
        yield process


def metrics_address(broker: BrokerProcess) -> str:
    found = re.search(r"metrics=(http://\S+)/metrics", broker.log_text())
    assert found, broker.log_text()
    return found[1]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def sample(text: str, name: str, **labels: str) -> float | None:
    """The value of one sample of the Prometheus text."""
    for line in text.splitlines():
        if line.startswith(name) and all(f'{key}="{value}"' in line for key, value in labels.items()):
            return float(line.rpartition(" ")[2])
    return None


def round_trip(broker: BrokerProcess, topic: str, count: int) -> None:
    create_topic(broker, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert len(consumer.consume(count, 30)) == count
    consumer.close()


def test_traffic_is_counted_under_the_names_that_dashboards_know(watched: BrokerProcess, name: str) -> None:
    round_trip(watched, name, 25)
    text = get(metrics_address(watched) + "/metrics")
    prefix = "kafka_server_brokertopicmetrics"
    assert sample(text, f"{prefix}_messagesin_total", topic=name) == 25
    bytes_in = sample(text, f"{prefix}_bytesin_total", topic=name)
    assert bytes_in is not None
    assert bytes_in > 25
    assert (sample(text, f"{prefix}_bytesout_total", topic=name) or 0) >= bytes_in
    assert sample(text, "kafka_log_log_logendoffset", topic=name, partition="0") == 25
    assert (sample(text, "kafka_network_requestmetrics_requests_total", request="Produce") or 0) >= 1
    assert sample(text, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert sample(text, "kafka_server_replicamanager_underreplicatedpartitions") == 0


def test_groups_are_told_with_their_members_and_how_far_behind_they_are(watched: BrokerProcess, name: str) -> None:
    round_trip(watched, name, 25)
    group = f"{name}-readers"
    consumer = Consumer(consumer_config(watched.bootstrap, group))
    consumer.subscribe([name])
    eventually(lambda: consumer.poll(0.1) is not None)
    consumer.commit(offsets=[TopicPartition(name, 0, 10)], asynchronous=False)
    text = get(metrics_address(watched) + "/metrics")
    consumer.close()

    place = {"consumergroup": group, "topic": name, "partition": "0"}
    assert sample(text, "kafka_consumergroup_members", consumergroup=group) == 1
    assert sample(text, "kafka_consumergroup_current_offset", **place) == 10
    assert sample(text, "kafka_consumergroup_lag", **place) == 15


def test_the_disk_is_told_by_directory(watched: BrokerProcess) -> None:
    text = get(metrics_address(watched) + "/metrics")
    disk = shutil.disk_usage(watched.data)
    directory = str(watched.data)

    assert sample(text, "caudal_broker_log_dir_total_bytes", log_dir=directory) == disk.total
    assert 0 < (sample(text, "caudal_broker_log_dir_usable_bytes", log_dir=directory) or 0) < disk.total


def test_open_connections_are_counted_until_they_are_closed(watched: BrokerProcess) -> None:
    metric = "kafka_server_socket_server_metrics_connection_count"
    address = metrics_address(watched) + "/metrics"

    def count() -> float:
        return sample(get(address), metric) or 0

    sockets = [socket.create_connection(("127.0.0.1", watched.port)) for _ in range(50)]
    eventually(lambda: count() >= 50)
    for each in sockets:
        each.close()
    eventually(lambda: count() < 10)


def test_health_answers_while_the_broker_serves(watched: BrokerProcess) -> None:
    assert json.loads(get(metrics_address(watched) + "/health")) == {"status": "ok"}


def test_the_request_log_names_api_client_and_time(watched: BrokerProcess, name: str) -> None:
    round_trip(watched, name, 1)
    lines = [json.loads(line) for line in watched.log_tail(100).splitlines()]
    requests = [line for line in lines if line["message"] == "request"]
    assert {"Produce", "Fetch", "Metadata", "ApiVersions"} <= {line["api"] for line in requests}
    produce = next(line for line in requests if line["api"] == "Produce")
    assert produce["software"].startswith("confluent-kafka-python")
    assert produce["ms"] >= 0
    assert produce["bytes"] > 0


def test_without_the_switch_no_request_is_logged(broker: BrokerProcess, name: str) -> None:
    round_trip(broker, name, 1)
    assert '"message": "request"' not in broker.log_text()


def test_a_stopped_broker_says_so_and_leaves_a_clean_directory(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path, settings={"logging.format": "json"}) as broker:
        round_trip(broker, name, 3)
        broker.stop()
        assert (broker.data / ".kafka_cleanshutdown").exists()
        messages = [json.loads(line)["message"] for line in broker.log_tail(10).splitlines()]
        assert messages[-1] == "stopped"


def test_records_are_forced_to_disk_before_the_answer_when_the_topic_asks_for_it(
    broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name, configs={"flush.messages": "1"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0})
    offsets: list[int | None] = []
    for number in range(20):
        producer.produce(
            name, str(number).encode(), on_delivery=lambda error, message: offsets.append(message.offset())
        )
        assert producer.flush(30) == 0
    assert offsets == list(range(20))
