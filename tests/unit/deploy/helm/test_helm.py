"""The chart as Helm renders it, by default and with everything elsewhere (`make test-helm`)."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from core_broker.cluster.registration import SHUTDOWN_SECONDS
from core_broker.service.properties import from_environment, parse_properties, read_file
from deploy.stack import BROKER, BY_NAME, STACK, Service
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

CLUSTER: Final = (
    "services.broker.replicas=3",
    "services.broker.rackLabel=topology.kubernetes.io/zone",
    "serviceMonitor.enabled=true",
    "networkPolicy.enabled=true",
)
SECURED: Final = (
    "security.enabled=true",
    "security.users.existingSecret=users",
    "services.broker.replicas=3",
    "services.registry.tls.existingSecret=schemas-certificate",
    "postgresql.existingSecret=schemas",
    "redis.existingSecret=redis",
    "serviceMonitor.enabled=true",
    "networkPolicy.enabled=true",
)
NODES: Final = "prod-caudal-broker-nodes.events.svc"

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


@pytest.fixture(params=[(), CLUSTER, SCALED, SECURED], ids=["default", "cluster", "scaled", "secured"])
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
        assert set(re.findall(r"\$\((\w+)\)", str(variables))) <= variables.keys()
        values = parse_properties(config["data"][path.removeprefix("/etc/caudal/")])
        assert values, name
        parse_settings(command, {**values, **from_environment(variables, service.environment_prefix)})


def _settings(objects: Objects, service: Service) -> dict[str, str]:
    """The properties file of a service."""
    return parse_properties(objects["ConfigMap", f"prod-caudal-{service.name}"]["data"][service.config_file])


def _value_of(variable: dict[str, Any]) -> str:
    """What a variable holds, or could hold if it is from elsewhere."""
    if "value" in variable:
        return str(variable["value"])
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
            if service is BROKER and "httpGet" not in container["readinessProbe"]:
                python, *module, command = container["readinessProbe"]["exec"]["command"][:4]
                assert ([python, *module], command) == (["python", "-m", "deploy.health_check"], service.name)
                assert container["readinessProbe"]["exec"]["command"][4:] == container["args"][1:]
                continue
            asked = container["readinessProbe"]["httpGet"]
            settings = _settings(objects, service)
            listener = settings["metrics.listener"] if service.metrics_port else settings["listeners"]
            assert asked.get("scheme", "HTTP").lower() == listener.partition(":")[0]
            assert (asked["path"], asked["port"]) == ("/health", service.metrics_port or service.port)


@pytest.mark.parametrize("settings", [(), CLUSTER], ids=["one", "three"])
def test_each_broker_is_addressed_by_its_name_and_any_of_them_by_that_of_all(settings: tuple[str, ...]) -> None:
    objects = _rendered(*settings)
    (container,) = _pods(objects)["prod-caudal-broker"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    own = f"$(POD_NAME).{NODES}"
    assert variables["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{own}:9092,CONTROLLER://{own}:9093"
    names = [variable["name"] for variable in container["env"]]
    assert names.index("POD_NAME") < names.index("KAFKA_ADVERTISED_LISTENERS"), "or it would not be replaced"
    nodes = objects["Service", NODES.split(".")[0]]["spec"]
    assert (nodes["clusterIP"], nodes["publishNotReadyAddresses"]) == ("None", True)
    proxy = objects["ConfigMap", "prod-caudal-rest-proxy"]["data"]["kafka-rest.properties"]
    assert parse_properties(proxy)["bootstrap.servers"] == "prod-caudal-broker.events.svc:9092"


def test_listeners_that_are_given_are_advertised_instead() -> None:
    given = "services.broker.extraSettings.advertised\\.listeners=PLAINTEXT://kafka.example.org:9092"
    (container,) = _pods(_rendered(given))["prod-caudal-broker"]["spec"]["containers"]
    assert "KAFKA_ADVERTISED_LISTENERS" not in {variable["name"] for variable in container["env"]}


def test_growing_changes_nothing_that_kubernetes_would_refuse_and_keeps_the_first_disk() -> None:
    before, after = (_rendered(*settings)["StatefulSet", "prod-caudal-broker"]["spec"] for settings in ((), CLUSTER))
    changeable = {"replicas", "template", "minReadySeconds"}
    assert {key for key in before if key not in changeable} == {key for key in after if key not in changeable}
    assert all(before[key] == after[key] for key in before if key not in changeable)
    assert (before["replicas"], after["replicas"]) == (1, 3)
    assert after["podManagementPolicy"] == "Parallel", "or a cluster that is down would wait for its first broker alone"


@pytest.mark.parametrize("count,copies", [(1, "1"), (2, "2"), (3, "3"), (5, "3")])
def test_topics_have_as_many_copies_as_there_are_brokers_and_three_at_most(count: int, copies: str) -> None:
    objects = _rendered(f"services.broker.replicas={count}")
    settings = parse_properties(objects["ConfigMap", "prod-caudal-broker"]["data"]["server.properties"])
    assert (settings["default.replication.factor"], settings["min.insync.replicas"]) == (copies, "2")


def test_brokers_keep_apart_and_have_time_to_hand_over_their_leaders() -> None:
    spec = _pods(_rendered(*CLUSTER))["prod-caudal-broker"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > 2 * SHUTDOWN_SECONDS
    terms = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    chosen = {term["podAffinityTerm"]["topologyKey"]: term["weight"] for term in terms}
    assert chosen == {"kubernetes.io/hostname": 100, "topology.kubernetes.io/zone": 50}
    labels = _pods(_rendered(*CLUSTER))["prod-caudal-broker"]["metadata"]["labels"]
    assert all(t["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels.items() for t in terms)


def test_a_pod_starts_its_broker_with_the_script_that_is_mounted() -> None:
    objects = _rendered(*CLUSTER)
    (container,) = _pods(objects)["prod-caudal-broker"]["spec"]["containers"]
    assert container["command"] == ["tini", "--", "sh", "/etc/caudal/start-broker.sh"]
    mounted = objects["ConfigMap", "prod-caudal-broker"]["data"]["start-broker.sh"]
    script = (CHART / "files" / "start-broker.sh").read_text()
    assert mounted.strip() == script.strip()
    given = {variable["name"] for variable in container["env"]}
    assert set(re.findall(r"\$\{?([A-Z]\w+)", script)) <= given
    rack = next(variable for variable in container["env"] if variable["name"] == "KAFKA_BROKER_RACK")
    assert rack["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['topology.kubernetes.io/zone']"
    (alone,) = _pods(_rendered())["prod-caudal-broker"]["spec"]["containers"]
    assert "KAFKA_BROKER_RACK" not in {variable["name"] for variable in alone["env"]}


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


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_secured_service_is_protected_as_on_a_machine(service: Service) -> None:
    sample = _protection(read_file(DEPLOY / "config" / "secure" / service.config_file))
    found = _protection(_settings(_rendered(*SECURED), service))
    assert found["listeners"] == sample["listeners"]
    # The Secret has the key in a file of its own.
    assert {key: value for key, value in found.items() if not key.endswith("key.location") or key in sample} == sample
    assert {value for key, value in found.items() if key.endswith("key.location")} == {"own"}


def _protection(settings: dict[str, str]) -> dict[str, str]:
    """What protects a service, without the addresses and folders of its place."""
    words = ("ssl", "sasl", "security", "authent", "authoriz", "super", "provider", "inter.broker", "listener")
    places = (
        (r"/etc/caudal/tls/certificates/[\w-]+\.pem|/run/secrets/caudal/tls\.(crt|key)", "own"),
        (r"/etc/caudal/tls|/run/secrets/caudal", "tls"),
        (r"/etc/caudal/connectors|/run/secrets/connectors", "connectors"),
    )
    found = {}
    for key, value in settings.items():
        if any(word in key for word in words) and not key.endswith(("servers", "url")):
            for pattern, place in places:
                value = re.sub(pattern, place, value)
            found[key] = value
    return found


def test_secured_brokers_and_services_find_each_other() -> None:
    objects = _rendered(*SECURED)
    (container,) = _pods(objects)["prod-caudal-broker"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    own = f"$(POD_NAME).{NODES}"
    assert (
        variables["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENTS://{own}:9092,BROKERS://{own}:9094,CONTROLLER://{own}:9093"
    )
    host = "prod-caudal-broker.events.svc"
    for name in ("rest-proxy", "connect"):
        settings = _settings(objects, BY_NAME[name])
        assert settings["bootstrap.servers"] == f"{host}:9094"
        assert settings["authentication.kafka.bootstrap.servers"] == f"{host}:9092"
    assert _settings(objects, BROKER)["confluent.schema.registry.url"] == "https://prod-caudal-registry.events.svc:8081"
    for service in ("prod-caudal-broker", NODES.split(".")[0]):
        assert 9094 in {port["port"] for port in objects["Service", service]["spec"]["ports"]}


def test_secured_pods_mount_their_own_certificate_for_their_group_only() -> None:
    objects = _rendered(*SECURED)
    jobs = {name: item["spec"]["template"] for (kind, name), item in objects.items() if kind == "Job"}
    mounted = {}
    for name, pod in (_pods(objects) | jobs).items():
        volumes = {volume["name"]: volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume}
        assert {secret["defaultMode"] for secret in volumes.values()} == {0o440}
        mounts = {mount["name"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        assert all(mounts[volume]["readOnly"] for volume in volumes)
        mounted[name] = {secret["secretName"] for secret in volumes.values()}
    assert mounted == {
        "prod-caudal-broker": {"prod-caudal-broker-tls"},
        "prod-caudal-registry": {"schemas-certificate"},
        "prod-caudal-rest-proxy": {"prod-caudal-rest-proxy-tls"},
        "prod-caudal-connect": {"prod-caudal-connect-tls"},
        "prod-caudal-connect-worker": {"prod-caudal-connect-tls"},
        "prod-caudal-access-1": {"prod-caudal-admin-tls", "users"},
    }


def test_a_secured_platform_has_no_secret_but_in_secrets_of_its_owner() -> None:
    objects = _rendered(*SECURED)
    assert not [name for kind, name in objects if kind == "Secret"]
    for item in objects.values():
        text = yaml.safe_dump(item)
        assert "PRIVATE KEY" not in text
        assert not re.search(r"password=(?!\s*$)|://[^/\s]*:[^/\s]*@", text)
    pods = [*_pods(objects).values(), objects["Job", "prod-caudal-access-1"]["spec"]["template"]]
    for pod in pods:
        for variable in pod["spec"]["containers"][0].get("env", []):
            if re.search("PASSWORD|SECRET|URL", variable["name"]):
                assert "secretKeyRef" in variable["valueFrom"]


def test_rights_and_users_are_given_by_the_script_that_is_mounted() -> None:
    objects = _rendered(*SECURED)
    (container,) = objects["Job", "prod-caudal-access-1"]["spec"]["template"]["spec"]["containers"]
    script = Path(container["command"][-1])
    data = objects["ConfigMap", "prod-caudal-access"]["data"]
    assert data[script.name].strip() == (CHART / "files" / script.name).read_text().strip()
    client = parse_properties(data["admin.properties"])
    assert client["ssl.key.location"] == "/run/secrets/caudal/tls.key"
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert set(re.findall(r"\bCAUDAL_\w+", data[script.name])) <= variables.keys()


@pytest.mark.parametrize("password", [False, True], ids=["certificate", "password"])
def test_prometheus_logs_in_at_secured_services(password: bool) -> None:
    more = ("serviceMonitor.basicAuth.existingSecret=scraper",) if password else ()
    objects = _rendered(*SECURED, *more)
    for service in STACK:
        (endpoint,) = objects["ServiceMonitor", f"prod-caudal-{service.name}"]["spec"]["endpoints"]
        assert endpoint["scheme"] == "https"
        assert endpoint["tlsConfig"]["serverName"] == f"prod-caudal-{service.name}.events.svc"
        logs_in = password and service is not BROKER
        assert ("cert" in endpoint["tlsConfig"]) != logs_in
        assert ("basicAuth" in endpoint) == logs_in


def test_several_pods_have_a_disruption_budget_and_one_has_none() -> None:
    budgets = {name for kind, name in _rendered(*SCALED) if kind == "PodDisruptionBudget"}
    assert budgets == {"prod-caudal-registry", "prod-caudal-rest-proxy", "prod-caudal-connect"}
    assert not [name for kind, name in _rendered() if kind == "PodDisruptionBudget"]
    brokers = _rendered(*CLUSTER)["PodDisruptionBudget", "prod-caudal-broker"]["spec"]
    assert brokers["maxUnavailable"] == 1


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
        ("services.broker.replicas=-1", "/services/broker/replicas"),
        ("services.broker.replicas=3,services.broker.persistence.enabled=false", "several brokers need disks"),
        (
            "security.enabled=true,services.connect.replicas=2,services.connect.persistence.enabled=false",
            "workers find each other by addresses",
        ),
        ("services.broker.enabled=false", "say with kafka.bootstrapServers where Kafka is"),
        ("kafka.bootstrapserver=x", "additional properties 'bootstrapserver' not allowed"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(setting: str, reason: str) -> None:
    done = _helm("template", "prod", str(CHART), "--kube-version", "1.31.0", "--set", setting)
    assert done.returncode != 0
    assert reason in done.stderr
