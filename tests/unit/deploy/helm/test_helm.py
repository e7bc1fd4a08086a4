"""The chart as Helm renders it, by default and with everything elsewhere (`make test-helm`)."""

import os
import subprocess
from functools import cache
from typing import Any, Final

import pytest
import yaml

from core_broker.service.properties import from_environment, parse_properties
from deploy.stack import BY_NAME, STACK
from tests.support.deployment import DEPLOY, parse_settings

CHART: Final = DEPLOY / "helm" / "caudal"
HELM: Final = os.environ.get("CAUDAL_HELM", "")
SCALED: Final = (
    "kafka.bootstrapServers=k1:9092\\,k2:9092",
    "postgresql.url=postgresql://user:password@db/schemas",
    "redis.existingSecret=redis",
    "spark.master=spark://spark:7077",
    "spark.warehouse=s3a://lake/warehouse",
    "services.registry.replicas=2",
    "services.rest-proxy.replicas=3",
    "services.connect.replicas=2",
    "services.connect.persistence.enabled=false",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "networkPolicy.enabled=true",
    "services.rest-proxy.extraSettings.producer\\.compression\\.type=zstd",
)

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not HELM, reason="Helm is not here: make test-helm")]
Objects = dict[tuple[str, str], Any]


def _helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False, timeout=60)


@cache
def _rendered(*settings: str) -> Objects:
    chosen = [word for setting in settings for word in ("--set", setting)]
    done = _helm("template", "prod", str(CHART), "--namespace", "events", "--kube-version", "1.31.0", *chosen)
    assert done.returncode == 0, done.stderr
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    found = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(found) == len(documents), "two objects of one name"
    return found


def _pods(objects: Objects) -> dict[str, Any]:
    kinds = ("Deployment", "StatefulSet")
    return {name: item["spec"]["template"] for (kind, name), item in objects.items() if kind in kinds}


@pytest.fixture(params=[(), SCALED], ids=["default", "scaled"])
def objects(request: pytest.FixtureRequest) -> Objects:
    return _rendered(*request.param)


def test_helm_lints_it() -> None:
    done = _helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_by_default_the_whole_stack_runs() -> None:
    assert set(_pods(_rendered())) == {f"prod-caudal-{service.name}" for service in STACK}
    assert ("StatefulSet", "prod-caudal-broker") in _rendered()


def test_what_is_elsewhere_is_not_started() -> None:
    names = {f"prod-caudal-{name}" for name in ("registry", "rest-proxy", "connect", "connect-worker")}
    assert set(_pods(_rendered(*SCALED))) == names


def test_services_take_the_properties_that_are_mounted(objects: Objects) -> None:
    for name, pod in _pods(objects).items():
        (container,) = pod["spec"]["containers"]
        command, _, path = container["args"][:3]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        config = objects["ConfigMap", volumes["config"]["configMap"]["name"]]
        service = BY_NAME.get(command, BY_NAME["connect"])
        variables = {variable["name"]: _value_of(variable) for variable in container.get("env", [])}
        values = parse_properties(config["data"][path.removeprefix("/etc/caudal/")])
        assert values, name
        parse_settings(command, {**values, **from_environment(variables, service.environment_prefix)})


def _value_of(variable: dict[str, Any]) -> str:
    """What a variable from elsewhere could hold."""
    return "postgresql://u:p@db/schemas" if "DATABASE" in variable["name"] else "redis://10.0.0.1"


def test_a_pod_mounts_only_what_it_has(objects: Objects) -> None:
    for kind_and_name, item in objects.items():
        if kind_and_name[0] not in ("Deployment", "StatefulSet"):
            continue
        spec = item["spec"]["template"]["spec"]
        claims = [claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates", [])]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for mount in spec["containers"][0]["volumeMounts"]:
            assert mount["name"] in {*volumes, *claims}
        claim = volumes.get("data", {}).get("persistentVolumeClaim")
        assert claim is None or ("PersistentVolumeClaim", claim["claimName"]) in objects


def test_services_select_pods_and_reach_ports_that_they_have(objects: Objects) -> None:
    for (kind, _), item in objects.items():
        if kind == "Service":
            chosen = [
                pod
                for pod in _pods(objects).values()
                if item["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            ]
            assert len(chosen) == 1
            ports = {port["name"] for port in chosen[0]["spec"]["containers"][0]["ports"]}
            assert {port["targetPort"] for port in item["spec"]["ports"]} <= ports


def test_selectors_of_workloads_choose_their_own_pods(objects: Objects) -> None:
    for (kind, _), item in objects.items():
        if kind in ("Deployment", "StatefulSet"):
            wanted = item["spec"]["selector"]["matchLabels"].items()
            assert wanted <= item["spec"]["template"]["metadata"]["labels"].items()


def test_pods_are_asked_for_their_health_and_run_without_privileges(objects: Objects) -> None:
    for name, pod in _pods(objects).items():
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["spec"]["enableServiceLinks"] is False
        if not name.endswith("-worker"):
            service = BY_NAME[container["args"][0]]
            assert container["readinessProbe"]["httpGet"] == {
                "path": "/health",
                "port": service.metrics_port or service.port,
            }


def test_a_broker_is_addressed_by_its_name_in_the_cluster() -> None:
    config = _rendered()["ConfigMap", "prod-caudal-broker"]["data"]["server.properties"]
    assert parse_properties(config)["advertised.listeners"] == "PLAINTEXT://prod-caudal-broker.events.svc:9092"
    assert ("Service", "prod-caudal-broker") in _rendered()


def test_services_find_what_is_elsewhere() -> None:
    data = _rendered(*SCALED)["ConfigMap", "prod-caudal-connect"]["data"]["connect-distributed.properties"]
    settings = parse_properties(data)
    assert settings["bootstrap.servers"] == "k1:9092,k2:9092"
    assert (settings["executor"], settings["spark.master"]) == ("celery", "spark://spark:7077")
    assert settings["spark.caudal.warehouse.dir"] == "s3a://lake/warehouse"
    proxy = _rendered(*SCALED)["ConfigMap", "prod-caudal-rest-proxy"]["data"]["kafka-rest.properties"]
    assert parse_properties(proxy)["producer.compression.type"] == "zstd"


def test_passwords_stand_in_secrets_only() -> None:
    for (kind, _), item in _rendered(*SCALED).items():
        assert kind == "Secret" or "user:password" not in yaml.safe_dump(item)


def test_several_pods_have_a_disruption_budget_and_one_has_none() -> None:
    budgets = {name for kind, name in _rendered(*SCALED) if kind == "PodDisruptionBudget"}
    assert budgets == {"prod-caudal-registry", "prod-caudal-rest-proxy", "prod-caudal-connect"}
    assert not [name for kind, name in _rendered() if kind == "PodDisruptionBudget"]


def test_monitors_ask_every_service_under_the_name_that_alerts_know() -> None:
    monitors = {name: item for (kind, name), item in _rendered(*SCALED).items() if kind == "ServiceMonitor"}
    assert len(monitors) == 3
    for name, item in monitors.items():
        (endpoint,) = item["spec"]["endpoints"]
        assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": name.replace("prod-caudal", "caudal")}]
    assert _rendered(*SCALED)["PrometheusRule", "prod-caudal"]["spec"]["groups"]


@pytest.mark.parametrize(
    "setting,reason",
    [
        ("services.registry.replicas=2", "set postgresql.url"),
        ("services.connect.replicas=2", "a disk belongs to one pod"),
        ("services.broker.replicas=2", "/services/broker/replicas"),
        ("services.broker.enabled=false", "say with kafka.bootstrapServers where Kafka is"),
        ("kafka.bootstrapserver=x", "additional properties 'bootstrapserver' not allowed"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(setting: str, reason: str) -> None:
    done = _helm("template", "prod", str(CHART), "--kube-version", "1.31.0", "--set", setting)
    assert done.returncode != 0
    assert reason in done.stderr
