"""The compose files follow the specification, agree with the stack, and give every service settings that it has."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from core_broker.cluster.registration import SHUTDOWN_SECONDS
from core_broker.settings import BrokerSettings
from deploy.cli import application
from deploy.health_check import address
from deploy.stack import BROKER, SPARK_CONNECT_PORT, STACK, Service, ServiceAddress, settings_of
from streams.settings import SparkSettings
from tests.support.deployment import (
    DEPLOY,
    DOCKERFILE,
    NETWORK_PORT,
    merge_compose,
    observed_ports,
    parse_settings,
    read_compose,
    settings_in,
    stack_settings,
    stages,
)

COMPOSE: Final = DEPLOY / "compose"
SINGLE: Final = read_compose(COMPOSE / "compose.yaml")
SCALED: Final = read_compose(COMPOSE / "scale-out.yaml")
OVERLAY: Final = read_compose(COMPOSE / "monitoring.yaml")
CLUSTER: Final = merge_compose(SINGLE, read_compose(COMPOSE / "cluster.yaml"))
SECURED: Final = merge_compose(SINGLE, read_compose(COMPOSE / "secure.yaml"))
SECURED_CLUSTER: Final = merge_compose(
    merge_compose(CLUSTER, read_compose(COMPOSE / "secure.yaml")), read_compose(COMPOSE / "secure-cluster.yaml")
)
FILES: Final = {
    "compose.yaml": SINGLE,
    "cluster.yaml": CLUSTER,
    "scale-out.yaml": SCALED,
    "monitoring.yaml": OVERLAY,
    "secure.yaml": SECURED,
    "secure-cluster.yaml": SECURED_CLUSTER,
    "secure-monitoring.yaml": merge_compose(
        merge_compose(SECURED, OVERLAY), read_compose(COMPOSE / "secure-monitoring.yaml")
    ),
}
BROKERS: Final = ("broker", "broker-2", "broker-3")


def _containers(*, ours_only: bool) -> Iterator[Any]:
    for file, document in FILES.items():
        for name, container in document["services"].items():
            if "build" in container or not ours_only:
                yield pytest.param(document, container, id=f"{file}-{name}")


@pytest.mark.processes
@pytest.mark.parametrize("name", FILES)
def test_it_follows_the_compose_specification(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_single_node_runs_every_service_of_the_stack() -> None:
    assert [container["command"] for container in SINGLE["services"].values()] == [[item.name] for item in STACK]


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_container_has_the_settings_and_the_health_check_of_the_stack(service: Service) -> None:
    container = SINGLE["services"][service.name]
    settings = settings_in(service.name, container["environment"])
    wanted = stack_settings(service.name, data="/var/lib/caudal")
    if service is BROKER:  # which has a second listener, for clients on the machine
        wanted["listeners"] += f",HOST://:{BROKER.port}"
    assert wanted.items() <= settings.items()
    assert set(container.get("depends_on", {})) == set(service.needs)
    command, *asked = container["healthcheck"]["test"]
    assert (command, asked[:3]) == ("CMD", ["python", "-m", "deploy.health_check"])
    assert address(asked[3:], container["environment"]) == f"http://localhost:{observed_ports()[service.name]}/health"


@pytest.mark.parametrize("_document,container", list(_containers(ours_only=True)))
def test_every_variable_of_a_container_is_a_setting_that_its_service_takes(
    _document: Any, container: dict[str, Any]
) -> None:
    environment, command = container.get("environment", {}), container["command"][0]
    if command in ("spark", "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"):
        SparkSettings.read(file=None, environment=environment)
    else:
        parse_settings(command, settings_in(command, environment))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_apache_kafka_is_given_settings_that_kafka_has(number: int) -> None:
    environment = dict(SCALED["services"][f"kafka-{number}"]["environment"])
    assert len(environment.pop("CLUSTER_ID")) == 22
    settings = BrokerSettings.parse(settings_in("broker", environment))
    assert [voter_id for voter_id, _, _ in settings.static_voters] == [1, 2, 3]


@pytest.mark.parametrize("_document,container", list(_containers(ours_only=True)))
def test_the_image_has_the_command_and_the_folders_of_a_container(_document: Any, container: dict[str, Any]) -> None:
    target = container["build"]["target"]
    assert (COMPOSE / container["build"]["context"] / container["build"]["dockerfile"]).samefile(DOCKERFILE)
    needs_spark = container["command"][0].startswith(("connect", "streams", "spark", "org.apache.spark"))
    assert target == ("caudal-spark" if needs_spark else "caudal")
    body = stages(DOCKERFILE.read_text())[target]
    (made,) = re.findall(r"install -d -o caudal -g caudal .*", body)
    written = [mount for mount in container.get("volumes", []) if not mount.endswith(":ro")]
    assert {mount.split(":")[1] for mount in written} <= set(made.split())
    if container.get("entrypoint"):
        assert container["entrypoint"][-1] == "spark-class"
    else:
        commands = {command.name for command in application().registered_commands}
        assert container["command"][0] in commands | {group.name for group in application().registered_groups}


@pytest.mark.parametrize("document,container", list(_containers(ours_only=False)))
def test_what_a_container_refers_to_is_there(document: dict[str, Any], container: dict[str, Any]) -> None:
    needs = container.get("depends_on", {})
    for needed in needs:
        assert needed in document["services"]
        if isinstance(needs, dict) and needs[needed]["condition"] == "service_healthy":
            assert "test" in document["services"][needed]["healthcheck"]
    for mount in container.get("volumes", []):
        source = mount.split(":")[0]
        if not source.startswith("./secrets/"):  # which is made by its owner
            assert (COMPOSE / source).is_file() if source.startswith(".") else source in document["volumes"]
    for secret in container.get("secrets", []):
        named = secret if isinstance(secret, str) else secret["source"]
        if named != "ca.crt":  # that of secure.yaml
            assert document["secrets"][named]["file"].startswith("./secrets/")
    for key, value in container.get("environment", {}).items():
        if key.endswith("BOOTSTRAP_SERVERS"):
            assert {server.split(":")[0] for server in value.split(",")} <= set(document["services"])


@pytest.mark.parametrize(
    "platform",
    [SINGLE, CLUSTER, SCALED, SECURED_CLUSTER],
    ids=["compose.yaml", "cluster.yaml", "scale-out.yaml", "secure-cluster.yaml"],
)
def test_ports_are_open_on_this_machine_only_and_each_once(platform: dict[str, Any]) -> None:
    published = [
        port
        for document in (platform, OVERLAY)
        for container in document["services"].values()
        for port in container.get("ports", [])
    ]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published)


def test_the_ports_of_the_stack_are_reached_from_the_machine() -> None:
    own = {port for service in STACK for port in (service.port, service.metrics_port, SPARK_CONNECT_PORT) if port}
    published = [port for container in SINGLE["services"].values() for port in container["ports"]]
    assert {int(port.split(":")[1]) for port in published} == own


@pytest.mark.parametrize(
    "document,name",
    [(SINGLE, "broker"), *((CLUSTER, name) for name in BROKERS), (SCALED, "kafka-1"), (SCALED, "kafka-3")],
)
def test_a_broker_is_advertised_under_the_name_that_each_side_knows(document: dict[str, Any], name: str) -> None:
    container = document["services"][name]
    published = container["ports"][0].split(":")[1]
    advertised = container["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert advertised[:2] == [f"PLAINTEXT://{name}:{NETWORK_PORT}", f"HOST://localhost:{published}"]
    assert advertised[2:] == ([f"CONTROLLER://{name}:9093"] if document is CLUSTER else [])
    assert container["ports"][0].endswith(f":{BROKER.port}")


def test_the_first_broker_forms_a_cluster_and_the_others_join_it() -> None:
    found = [BrokerSettings.parse(settings_in("broker", CLUSTER["services"][name]["environment"])) for name in BROKERS]
    assert [settings.node_id for settings in found] == [1, 2, 3]
    assert [settings.forms_cluster for settings in found] == [True, False, False]
    assert {settings.quorum_servers for settings in found[1:]} == {(("broker", 9093),)}
    assert all(settings.controller_quorum_auto_join_enable for settings in found)
    assert found[0].broker_rack is None
    volumes = [mount for name in BROKERS for mount in CLUSTER["services"][name]["volumes"]]
    assert len(set(volumes)) == len(BROKERS), "a disk belongs to one broker"


@pytest.mark.parametrize("document", [CLUSTER, SECURED_CLUSTER], ids=["cluster.yaml", "secure-cluster.yaml"])
def test_the_brokers_of_a_cluster_differ_in_nothing_else_and_keep_as_many_copies_as_those_of_the_launcher(
    document: dict[str, Any],
) -> None:
    own = {"KAFKA_NODE_ID", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS"}
    environments = [document["services"][name]["environment"] for name in BROKERS]
    shared = [{key: value for key, value in found.items() if key not in own} for found in environments]
    assert shared[0] == shared[1] == shared[2]
    addresses = {
        f"broker-{number}": ServiceAddress(host="h", port=number, controller_port=number, data="d")
        for number in (1, 2, 3)
    }
    settings = settings_in("broker", environments[1])
    for key, value in settings_of("broker-2", addresses).items():
        if "replica" in key or key.endswith(("min.isr", "auto.join.enable", "listener.names")):
            assert settings[key] == value, key


@pytest.mark.parametrize("document", [SECURED, SECURED_CLUSTER], ids=["secure.yaml", "secure-cluster.yaml"])
def test_every_listener_of_a_secured_broker_asks_for_a_name(document: dict[str, Any]) -> None:
    for name in BROKERS[: 3 if document is SECURED_CLUSTER else 1]:
        container = document["services"][name]
        settings = BrokerSettings.parse(settings_in("broker", container["environment"]))
        for listener in settings.listeners:
            protocol = settings.security_protocol(listener.name)
            shows = settings.for_listener(listener.name).ssl_client_auth
            assert protocol == "SASL_SSL" or (protocol, shows) == ("SSL", "required"), listener.name
        advertised = container["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        hosts = dict(re.findall(r"([A-Z]+)://([\w-]+):", advertised))
        assert hosts == {"CLIENTS": name, "HOST": "localhost", "BROKERS": name, "CONTROLLER": name}


@pytest.mark.parametrize("service", [item for item in STACK if item is not BROKER], ids=lambda service: service.name)
def test_a_secured_service_reaches_others_over_tls_and_knows_every_broker(service: Service) -> None:
    single, cluster = (settings_in(service.name, found["services"][service.name]["environment"]) for found in _SECURED)
    assert single["listeners"] == f"https://:{service.port}"
    assert not [value for value in single.values() if "http://" in value]
    for settings, count in ((single, 1), (cluster, 3)):
        for key, port in (("authentication.kafka.bootstrap.servers", 29092), ("bootstrap.servers", 29094)):
            if key in single:
                assert settings[key] == ",".join(f"{broker}:{port}" for broker in BROKERS[:count])


_SECURED: Final = (SECURED, SECURED_CLUSTER)


def test_no_secured_container_is_given_a_secret_but_as_a_file() -> None:
    document = merge_compose(SECURED_CLUSTER, FILES["secure-monitoring.yaml"])
    for container in document["services"].values():
        for key, value in container.get("environment", {}).items():
            assert "PASSWORD" not in key or key.endswith("__FILE")
            assert "PRIVATE KEY" not in value
    assert "/deploy/compose/secrets/" in (DEPLOY.parent / ".gitignore").read_text().split()
    assert "deploy/compose" in (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text().split()


@pytest.mark.parametrize("name", ["rest-proxy", "connect"])
def test_services_of_a_cluster_know_every_broker_and_wait_for_each(name: str) -> None:
    container = CLUSTER["services"][name]
    (servers,) = (value for key, value in container["environment"].items() if key.endswith("BOOTSTRAP_SERVERS"))
    assert servers == ",".join(f"{broker}:{NETWORK_PORT}" for broker in BROKERS)
    assert {*BROKERS, "registry"} == set(container["depends_on"])


def test_a_broker_of_a_cluster_has_time_to_hand_over_its_leaders() -> None:
    for name in BROKERS:
        assert int(CLUSTER["services"][name]["stop_grace_period"].rstrip("s")) > SHUTDOWN_SECONDS


def test_connect_and_its_workers_share_settings_and_a_spark_engine() -> None:
    services = SCALED["services"]
    assert services["connect"]["environment"] == services["connect-worker"]["environment"]
    assert services["connect"]["environment"]["CONNECT_EXECUTOR"] == "celery"
    folder = services["connect"]["environment"]["CONNECT_SPARK_CAUDAL_DATA_DIR"]
    engine = services["spark-engine"]["environment"]
    assert engine["CAUDAL_SPARK_CAUDAL_DATA_DIR"] == folder
    for name in ("spark-engine", "connect", "connect-worker"):
        assert f"spark-data:{folder}" in services[name]["volumes"]
    for name in ("spark-engine", "spark-worker"):
        assert f"warehouse:{engine['CAUDAL_SPARK_CAUDAL_WAREHOUSE_DIR']}" in services[name]["volumes"]


def test_the_gateway_serves_each_port_from_the_containers_behind_it() -> None:
    text = (COMPOSE / "gateway.conf").read_text()
    passed_on = zip(re.findall(r"listen (\d+);", text), re.findall(r"proxy_pass http://([\w-]+);", text), strict=True)
    listening = {(name, port) for port, name in passed_on}
    assert listening == set(re.findall(r"server ([\w-]+):(\d+);", text))
    assert listening <= {(service.name, str(service.port)) for service in STACK}
    assert {port.split(":")[1] for port in SCALED["services"]["gateway"]["ports"]} == {port for _, port in listening}
    assert all("ports" not in SCALED["services"][name] for name, _ in listening), "a port belongs to one container"
