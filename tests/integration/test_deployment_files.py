"""What deployment files say about running services is true: metrics by name and label, listeners, health."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import promql_parser
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deploy.stack import BROKER
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.compose_cluster import ComposeBroker, ComposeCluster
from tests.support.connect import ConnectProcess
from tests.support.deployment import DEPLOY, read_yaml, settings_in
from tests.support.promql import expressions_of_alerts, expressions_of_dashboard, firing, label_names, selectors
from tests.support.proxy import ProxyProcess
from tests.support.registry import AVRO, RegistryProcess
from tests.support.service import REPOSITORY
from tests.support.spark_java import java_problem
from tests.support.streams_process import StreamsProcess

_PATIENCE_S: Final = 90.0
_SPARK_S: Final = 240.0
_TOPIC: Final = "deployed"
_LABELS_OF_TARGETS: Final = frozenset({"job", "instance", "namespace", "service"})
"""Prometheus adds them; the last two in Kubernetes only."""
_SINK: Final = {
    "connector.class": "FileStreamSink",
    "topics": _TOPIC,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Platform(NamedTuple):
    """Running services: three brokers, and one of each of the others."""

    cluster: ComposeCluster
    registry: RegistryProcess
    proxy: ProxyProcess
    connect: ConnectProcess
    streams: StreamsProcess

    def metrics(self) -> dict[str, Metric]:
        """All families that they tell, by the names that Prometheus stores."""
        found: dict[str, Metric] = {}
        brokers = [broker.metrics_url for broker in self.cluster if broker.is_running]
        services = [f"{service.url}/metrics" for service in (self.registry, self.proxy, self.connect, self.streams)]
        for address in (*brokers, *services):
            text = httpx2.get(address, timeout=_PATIENCE_S).text
            for family in text_string_to_metric_families(text):
                name = f"{family.name}_total" if family.type == "counter" else family.name
                if name in found:
                    found[name].samples += family.samples
                else:
                    found[name] = family
        return found


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Brokers, a registry, a REST proxy and a Connect worker, through which records went, good ones and bad ones."""
    folder = tmp_path_factory.mktemp("platform")
    with (
        ComposeCluster(folder) as cluster,
        RegistryProcess(folder / "registry") as registry,
        ProxyProcess(folder / "proxy", bootstrap=cluster.bootstrap, registry=registry.url) as proxy,
        ConnectProcess(folder / "connect", bootstrap=cluster.bootstrap, group="deployed") as connect,
        StreamsProcess(folder / "streams", bootstrap=cluster.bootstrap, registry=registry.url) as streams,
    ):
        running = Platform(cluster, registry, proxy, connect, streams)
        _use(running, folder)
        yield running


def _use(platform: Platform, folder: Path) -> None:
    """Let something happen of everything that is counted."""
    client = AdminClient({"bootstrap.servers": platform.cluster.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(_TOPIC, 1)])[_TOPIC].result(_PATIENCE_S)
    _produce(platform.proxy, "json", {"n": 1})
    _produce(platform.proxy, "binary", "bm8ganNvbg==")
    page = f"{platform.proxy.url}/topics/{_TOPIC}/partitions/0/records?offset=0"
    assert httpx2.get(page, headers={"Accept": "application/vnd.kafka.binary.v2+json"}, timeout=_PATIENCE_S).is_success
    platform.registry.register("orders-value", AVRO)
    refused = {"schema": '{"type": "no such type"}'}
    assert httpx2.post(f"{platform.registry.url}/subjects/x/versions", json=refused, timeout=_PATIENCE_S).is_error
    letters = {"errors.deadletterqueue.topic.name": "deployed-dead", "errors.tolerance": "all"}
    platform.connect.create("careful", _SINK | letters | {"file": str(folder / "careful.txt")})
    platform.connect.create("strict", _SINK | {"file": str(folder / "strict.txt")})
    eventually(lambda: _value(platform, "caudal_connect_deadletterqueue_produce_requests_total"), timeout_s=_PATIENCE_S)
    eventually(lambda: _value(platform, "caudal_connect_states", kind="task", state="FAILED"), timeout_s=_PATIENCE_S)
    eventually(lambda: platform.metrics()["kafka_consumergroup_lag"].samples, timeout_s=_PATIENCE_S)
    if java_problem() is None:
        _query(platform)


def _query(platform: Platform) -> None:
    """A query that reads the records, keeps a table, and puts aside what is no JSON."""
    text = (
        f"CREATE STREAM events (n INT) WITH (KAFKA_TOPIC = '{_TOPIC}', KEY_FORMAT = 'NONE', VALUE_FORMAT = 'JSON');"
        "CREATE TABLE counts AS SELECT n, COUNT(*) AS c FROM events WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY n;"
    )
    body = {"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}
    answer = httpx2.post(f"{platform.streams.url}/ksql", json=body, timeout=_SPARK_S)
    assert answer.is_success, answer.text
    eventually(lambda: _value(platform, "streams_query_dlq_total"), timeout_s=_SPARK_S)
    eventually(lambda: _value(platform, "streams_table_rows"), timeout_s=_SPARK_S)
    _produce(platform.proxy, "json", {"n": 2})  # a watermark is that of the batch before
    name = "streams_query_watermark_delay_seconds"
    eventually(lambda: platform.metrics()[name].samples, timeout_s=_SPARK_S)


def _produce(proxy: ProxyProcess, kind: str, value: object) -> None:
    answer = httpx2.post(
        f"{proxy.url}/topics/{_TOPIC}",
        headers={"Content-Type": f"application/vnd.kafka.{kind}.v2+json"},
        json={"records": [{"value": value}]},
        timeout=_PATIENCE_S,
    )
    assert answer.is_success, answer.text


def _value(platform: Platform, name: str, **labels: str) -> float:
    samples = platform.metrics()[name].samples
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


@pytest.fixture(scope="module")
def told(platform: Platform) -> dict[str, Metric]:
    """What the services tell after all that."""
    return platform.metrics()


@pytest.mark.parametrize("expression", [*expressions_of_alerts(), *expressions_of_dashboard()])
def test_metrics_that_are_asked_for_are_told(told: dict[str, Metric], expression: str) -> None:
    missing = [selector.name for selector in selectors(expression) if selector.name not in told]
    assert missing == []


@pytest.mark.parametrize("expression", [*expressions_of_alerts(), *expressions_of_dashboard()])
def test_labels_that_are_asked_for_are_told(told: dict[str, Metric], expression: str) -> None:
    for selector in selectors(expression):
        assert selector.name is not None
        wanted = label_names(expression) | {matcher.name for matcher in selector.matchers.matchers}
        samples = told[selector.name].samples
        is_rare = selector.name in _SELDOM or (selector.name.startswith("streams_") and java_problem() is not None)
        assert samples or is_rare, f"{selector.name}: nothing was counted"
        for sample in samples:
            assert wanted - _LABELS_OF_TARGETS <= set(sample.labels), selector.name


_SELDOM: Final = frozenset({"kafka_server_brokertopicmetrics_failedproducerequests_total"})


def test_a_failed_task_is_told_in_the_words_of_the_alert(told: dict[str, Metric]) -> None:
    (expression,) = [text for text in expressions_of_alerts() if "FAILED" in text]
    (selector,) = selectors(expression)
    wanted = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
    assert all(matcher.op == promql_parser.MatchOp.Equal for matcher in selector.matchers.matchers)
    assert [sample.value for sample in told["caudal_connect_states"].samples if wanted.items() <= sample.labels.items()]


def test_statuses_are_told_as_the_alerts_compare_them(told: dict[str, Metric]) -> None:
    statuses = {sample.labels["status"] for sample in told["caudal_registry_http_requests_total"].samples}
    assert statuses
    assert all(re.fullmatch("[1-5][0-9][0-9]", status) for status in statuses)


def test_a_broker_of_the_compose_file_tells_each_side_the_name_it_knows(tmp_path: Path) -> None:
    environment = read_yaml(DEPLOY / "compose" / "compose.yaml")["services"]["broker"]["environment"]
    settings = settings_in("broker", environment) | {
        "listeners": "PLAINTEXT://127.0.0.1:0,HOST://127.0.0.1:0",
        "metrics.listener": "",
        "log.dirs": str(tmp_path / "data"),
    }
    with BrokerProcess(tmp_path / "broker", settings=settings) as broker:
        (ports,) = re.findall(r"PLAINTEXT://[\w.:-]*?:(\d+),HOST://[\w.:-]*?:(\d+)", broker.log_text())
        told = []
        for port in ports:
            client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
            (node,) = client.list_topics(timeout=_PATIENCE_S).brokers.values()
            told.append(f"{node.host}:{node.port}")
    assert told == ["broker:29092", f"localhost:{BROKER.port}"]


def test_brokers_of_the_compose_files_form_a_cluster_and_topics_have_three_copies(platform: Platform) -> None:
    client = AdminClient({"bootstrap.servers": platform.cluster.bootstrap, "log_level": 0})
    found = client.list_topics(timeout=_PATIENCE_S)
    assert sorted(found.brokers) == [1, 2, 3]
    assert sorted(found.topics[_TOPIC].partitions[0].replicas) == [1, 2, 3]
    assert sorted(found.topics["__consumer_offsets"].partitions[0].replicas) == [1, 2, 3]


def test_alerts_of_the_cluster_tell_a_broker_and_then_a_majority_that_is_lost(platform: Platform) -> None:
    cluster = platform.cluster
    known = {"CaudalConnectorFailed"}  # on purpose, by the fixture
    eventually(lambda: firing(platform.metrics()) - known, lambda alerts: not alerts, timeout_s=_PATIENCE_S)
    first, second, third = cluster
    third.kill()
    one_is_lost = {"CaudalBrokerFenced", "CaudalPartitionsUnderReplicated"}
    eventually(lambda: firing(platform.metrics()) - known, one_is_lost.__eq__, timeout_s=_PATIENCE_S)
    eventually(lambda: _value(platform, "caudal_quorum_replica_lag_seconds", node="3", role="voter") > 1)
    assert _value(platform, "kafka_server_replicamanager_isrshrinks_total") > 0
    second.kill()
    majority_is_lost = {"CaudalControllerMissing", "CaudalQuorumLeaderUnknown"}
    eventually(lambda: firing(platform.metrics()), majority_is_lost.issubset, timeout_s=_PATIENCE_S)
    cluster.start()
    eventually(lambda: firing(platform.metrics()) - known, lambda alerts: not alerts, timeout_s=_PATIENCE_S)
    assert first.is_running


def test_a_node_that_is_only_a_controller_tells_its_metrics_and_its_health(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    controller.settings = {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:0",
        "log.dirs": str(controller.data),
        "metrics.listener": "http://127.0.0.1:0",
    }
    with controller:
        text = httpx2.get(f"{controller.address}/metrics", timeout=_PATIENCE_S).text
        values = {sample.name: sample.value for f in text_string_to_metric_families(text) for sample in f.samples}
        health = httpx2.get(f"{controller.address}/health", timeout=_PATIENCE_S)
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert values["kafka_server_raft_metrics_current_leader"] == 1
    assert "kafka_server_replicamanager_partitioncount" not in values
    assert health.json() == {"status": "ok"}


class Controller(ComposeBroker):
    """A controller without a broker, by the address of its metrics."""

    ready = re.compile(rb"metrics=(http://[\w.:-]+:\d+)/metrics")


def test_the_health_of_a_running_service_is_found_through_its_variables(platform: Platform) -> None:
    variables = {"CONNECT_LISTENERS": platform.connect.url}
    asked = [sys.executable, "-m", "deploy.health_check", "--wait", "60", "connect"]
    done = subprocess.run(asked, env=variables, cwd=REPOSITORY, capture_output=True, check=False, timeout=_PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, b"")
