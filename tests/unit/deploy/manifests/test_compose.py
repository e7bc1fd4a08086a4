"""The compose files follow the specification, and every container would take the settings it is given."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings
from deploy.cli import application
from deploy.health_check import address
from deploy.manifests.containers import NETWORK_PORT
from deploy.stack import BROKER, BY_NAME, SPARK_CONNECT_PORT, STACK
from streams.settings import SparkSettings
from tests.support.deployment import DEPLOY, parse_settings, read_yaml, settings_in

COMPOSE = DEPLOY / "compose"
SINGLE = read_yaml(COMPOSE / "compose.yaml")
SCALED = read_yaml(COMPOSE / "scale-out.yaml")
OVERLAY = read_yaml(COMPOSE / "monitoring.yaml")
FILES = {"compose.yaml": SINGLE, "scale-out.yaml": SCALED, "monitoring.yaml": OVERLAY}
DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text()


def _ours() -> Iterator[Any]:
    for file, document in FILES.items():
        for name, service in document["services"].items():
            if "build" in service:
                yield pytest.param(service, id=f"{file}-{name}")


def _all() -> Iterator[Any]:
    for file, document in FILES.items():
        for name, service in document["services"].items():
            yield pytest.param(document, service, id=f"{file}-{name}")


@pytest.mark.processes
@pytest.mark.parametrize("name", FILES)
def test_it_follows_the_compose_specification(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.processes
def test_the_specification_is_really_asked(tmp_path: Path) -> None:
    (wrong := tmp_path / "compose.yaml").write_text(
        "services: {broker: {image: caudal, healthcheck: {tests: [CMD]}}}\n"
    )
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong)]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 1


def test_a_single_node_runs_every_service_of_the_stack() -> None:
    assert [service["command"] for service in SINGLE["services"].values()] == [[service.name] for service in STACK]


@pytest.mark.parametrize("service", list(_ours()))
def test_a_container_takes_all_the_settings_it_is_given(service: dict[str, Any]) -> None:
    environment, command = service.get("environment", {}), service["command"][0]
    if command in ("spark", "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"):
        SparkSettings.read(file=None, environment=environment)
    else:
        parse_settings(command, settings_in(command, environment))


def test_a_variable_that_is_no_setting_would_be_noticed() -> None:
    environment = SINGLE["services"]["broker"]["environment"] | {"KAFKA_LOG_DIRZ": "/x"}
    with pytest.raises(SettingsError):
        parse_settings("broker", settings_in("broker", environment))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_apache_kafka_is_given_settings_that_kafka_has(number: int) -> None:
    environment = dict(SCALED["services"][f"kafka-{number}"]["environment"])
    assert len(environment.pop("CLUSTER_ID")) == 22
    voters = environment.pop("KAFKA_CONTROLLER_QUORUM_VOTERS")  # our broker refuses to be one of several
    assert voters == "1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"
    BrokerSettings.parse(settings_in("broker", environment))


@pytest.mark.parametrize("service", list(_ours()))
def test_the_command_of_a_container_is_one_of_ours(service: dict[str, Any]) -> None:
    if service.get("entrypoint"):
        assert service["entrypoint"][-1] == "spark-class"
    else:
        commands = {command.name for command in application().registered_commands}
        groups = {group.name for group in application().registered_groups}
        assert service["command"][0] in commands | groups


@pytest.mark.parametrize("document,service", list(_all()))
def test_what_a_container_refers_to_is_there(document: dict[str, Any], service: dict[str, Any]) -> None:
    for needed in service.get("depends_on", {}):
        assert needed in document["services"]
    for mount in service.get("volumes", []):
        source = mount.split(":")[0]
        assert (COMPOSE / source).is_file() if source.startswith(".") else source in document["volumes"]


@pytest.mark.parametrize("document,service", list(_all()))
def test_who_waits_for_health_waits_for_somebody_who_is_asked(
    document: dict[str, Any], service: dict[str, Any]
) -> None:
    needs = service.get("depends_on", {})
    for needed, how in needs.items() if isinstance(needs, dict) else ():
        if how["condition"] == "service_healthy":
            assert "test" in document["services"][needed]["healthcheck"]


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_the_health_of_a_container_is_asked_where_it_listens(service: Any) -> None:
    container = SINGLE["services"][service.name]
    asked = container["healthcheck"]["test"]
    assert asked[:4] == ["CMD", "python", "-m", "deploy.health_check"]
    port = service.metrics_port or service.port
    assert address(asked[4:], container["environment"]) == f"http://localhost:{port}/health"


@pytest.mark.parametrize("service", list(_ours()))
def test_the_image_has_what_a_container_needs(service: dict[str, Any]) -> None:
    target = service["build"]["target"]
    assert re.search(rf"^FROM \S+ AS {target}$", DOCKERFILE, re.MULTILINE)
    assert (COMPOSE / service["build"]["context"] / service["build"]["dockerfile"]).samefile(
        DEPLOY / "docker" / "Dockerfile"
    )
    needs_spark = service["command"][0].startswith(("connect", "spark", "org.apache.spark"))
    assert target == ("caudal-spark" if needs_spark else "caudal")


@pytest.mark.parametrize("service", list(_ours()))
def test_volumes_are_mounted_at_folders_that_belong_to_the_image_s_user(service: dict[str, Any]) -> None:
    made = re.search(r"install -d -o caudal -g caudal .*", DOCKERFILE)
    assert made is not None
    for mount in service.get("volumes", []):
        assert mount.split(":")[1] in made[0].split()


@pytest.mark.parametrize("name", FILES)
def test_ports_are_open_on_this_machine_only_and_each_once(name: str) -> None:
    published = [port for service in FILES[name]["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published)


def test_the_ports_of_the_stack_are_reached_from_the_machine() -> None:
    own = {str(port) for service in STACK for port in (service.port, service.metrics_port, SPARK_CONNECT_PORT) if port}
    published = [port for service in SINGLE["services"].values() for port in service["ports"]]
    assert {port.split(":")[1] for port in published} == own


def test_no_port_of_the_overlay_is_taken_by_the_platform() -> None:
    for document in (SINGLE, SCALED):
        ports = [
            port.split(":")[1]
            for services in (document["services"], OVERLAY["services"])
            for service in services.values()
            for port in service.get("ports", [])
        ]
        assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("document,name", [(SINGLE, "broker"), (SCALED, "kafka-1"), (SCALED, "kafka-3")])
def test_a_broker_is_told_by_the_name_that_each_side_knows(document: dict[str, Any], name: str) -> None:
    service = document["services"][name]
    published = service["ports"][0].split(":")[1]
    told = service["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert told == [f"PLAINTEXT://{name}:{NETWORK_PORT}", f"HOST://localhost:{published}"]
    assert service["ports"][0].endswith(f":{BROKER.port}")


def test_services_find_each_other_by_the_names_of_containers() -> None:
    for document in (SINGLE, SCALED):
        for service in document["services"].values():
            for key, value in service.get("environment", {}).items():
                if key.endswith("BOOTSTRAP_SERVERS"):
                    hosts = {address.split(":")[0] for address in value.split(",")}
                    assert hosts <= set(document["services"])
                if key.endswith("SCHEMA_REGISTRY_URL"):
                    assert value == f"http://registry:{BY_NAME['registry'].port}"


def test_connect_and_its_workers_have_the_same_settings() -> None:
    services = SCALED["services"]
    assert services["connect"]["environment"] == services["connect-worker"]["environment"]
    assert services["connect"]["environment"]["CONNECT_EXECUTOR"] == "celery"


def test_all_who_use_the_spark_engine_name_the_same_folder_on_the_same_volume() -> None:
    folders = set()
    for name, prefix in (("spark-engine", "CAUDAL_"), ("connect", "CONNECT_"), ("connect-worker", "CONNECT_")):
        service = SCALED["services"][name]
        folder = service["environment"][f"{prefix}SPARK_CAUDAL_DATA_DIR"]
        assert f"spark-data:{folder}" in service["volumes"]
        folders.add(folder)
    assert len(folders) == 1


def test_executors_write_tables_where_the_engine_finds_them() -> None:
    folder = SCALED["services"]["spark-engine"]["environment"]["CAUDAL_SPARK_CAUDAL_WAREHOUSE_DIR"]
    for name in ("spark-engine", "spark-worker"):
        assert f"warehouse:{folder}" in SCALED["services"][name]["volumes"]


def test_there_are_several_of_what_should_grow() -> None:
    counts = {
        name: service["deploy"]["replicas"] for name, service in SCALED["services"].items() if "deploy" in service
    }
    assert counts == {"spark-worker": 2, "registry": 2, "rest-proxy": 3, "connect": 2, "connect-worker": 2}
    assert all("ports" not in SCALED["services"][name] for name in counts), "a port belongs to one container"


def test_the_gateway_serves_each_port_from_the_containers_behind_it() -> None:
    text = (COMPOSE / "gateway.conf").read_text()
    listening = dict(
        zip(re.findall(r"listen (\d+);", text), re.findall(r"proxy_pass http://([\w-]+);", text), strict=True)
    )
    servers = re.findall(r"server ([\w-]+):(\d+);", text)
    assert {(name, port) for port, name in listening.items()} == set(servers)
    published = {port.split(":")[1] for port in SCALED["services"]["gateway"]["ports"]}
    assert published == set(listening)
    assert text.count("{") == text.count("}")
