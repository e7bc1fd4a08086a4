"""The chart without Helm: values fit their schema and the stack, templates name values that are there."""

import json
import re
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from core_broker.service.properties import from_environment
from deploy.stack import BROKER, BY_NAME, SPARK_CONNECT_PORT, STACK, Service
from tests.support.deployment import DEPLOY, DOCKERFILE, observed_ports, parse_settings, read_yaml, stack_settings

CHART: Final = DEPLOY / "helm" / "caudal"
VALUES: Final[dict[str, Any]] = read_yaml(CHART / "values.yaml")
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES: Final = sorted((CHART / "templates").iterdir())
HELPERS: Final = "".join(path.read_text() for path in TEMPLATES if path.suffix == ".tpl")


def _problems(values: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(values)]


def test_values_fit_their_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert _problems(VALUES) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafka": {"bootstrapServer": "x:9092"}},
        {"services": {"brokers": {}}},
        {"services": {"broker": {"replicas": -1}}},
        {"services": {"registry": {"controllerPort": 9093}}},
        {"services": {"connect": {"port": "http"}}},
        {"image": {"pullPolicy": "Sometimes"}},
        {"security": {"enable": True}},
        {"security": {"users": {"shop": "a password"}}},
        {"services": {"registry": {"tls": {"crt": "a certificate"}}}},
    ],
    ids=json.dumps,
)
def test_a_slip_in_the_values_is_refused(wrong: dict[str, Any]) -> None:
    assert _problems(wrong) != []


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_ports_names_and_settings_are_those_of_the_stack(service: Service) -> None:
    values = VALUES["services"][service.name]
    assert values["port"] == service.port
    assert values["healthPort"] == observed_ports()[service.name]
    assert values["configFile"] == service.config_file
    assert values["environmentPrefix"] == service.environment_prefix
    assert values.get("sparkConnectPort", SPARK_CONNECT_PORT) == SPARK_CONNECT_PORT
    wanted = stack_settings(service.name, data="/var/lib/caudal", host="named by a template")
    if service is BROKER:  # which is ready for others at any time
        wanted["listeners"] += f",CONTROLLER://:{values['controllerPort']}"
    # A pod advertises its own address, through a variable of the template.
    wanted.pop("rest.advertised.host.name", None)
    settings = values["settings"]
    assert {key: value for key, value in wanted.items() if "template" not in value}.items() <= settings.items()
    assert wanted.keys() <= settings.keys()
    plain = {key: value for key, value in settings.items() if "{{" not in value}
    parse_settings(service.name, plain)
    assert settings.keys() - plain.keys() <= {
        "bootstrap.servers",
        "confluent.schema.registry.url",
        "default.replication.factor",
        "ksql.connect.url",
        "ksql.schema.registry.url",
        "schema.registry.url",
    }


def test_variables_in_templates_are_settings_of_the_service() -> None:
    named = re.findall(r"environmentPrefix \}\}([A-Z_]+)", HELPERS)
    assert named
    values = {
        "DATABASE_URL": ("registry", "sqlite:///x.db"),
        "ADVERTISED_LISTENERS": ("broker", "PLAINTEXT://x:9092"),
        "BROKER_RACK": ("broker", "zone-a"),
    }
    for variable in named:
        command, value = values.get(variable, ("connect", "redis://x"))
        prefix = BY_NAME[command].environment_prefix
        parse_settings(command, from_environment({prefix + variable: value}, prefix))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_names_values_and_helpers_that_are_there_and_repeats_no_port(path: Path) -> None:
    text = path.read_text()
    for named in set(re.findall(r"\.Values\.([A-Za-z.]+)", text)):
        place: Any = VALUES
        for part in named.rstrip(".").split("."):
            assert part in place, f".Values.{named}"
            place = place[part]
    for named in set(re.findall(r"\$service\.([A-Za-z.]+)", text)):
        for name, place in VALUES["services"].items():
            for part in named.split("."):
                assert part in place or part in _SOME_HAVE, f"{name}: {named}"
                place = place.get(part, {})
    assert set(re.findall(r'include "([\w.]+)"', text)) <= set(re.findall(r'define "([\w.]+)"', HELPERS))
    ports = {str(port) for service in STACK for port in (service.port, service.metrics_port) if port}
    ports |= {str(VALUES["services"]["broker"][name]) for name in ("controllerPort", "brokersPort")}
    assert not ports & set(re.findall(r"\d+", text))


_SOME_HAVE: Final = frozenset({"sparkConnectPort", "brokersPort", "controllerPort", "rackLabel"})


def test_pods_run_without_root_as_the_user_of_the_image() -> None:
    assert VALUES["podSecurityContext"]["runAsNonRoot"] is True
    assert VALUES["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    uid = VALUES["podSecurityContext"]["runAsUser"]
    assert f"USER {uid}:{uid}" in DOCKERFILE.read_text()


def test_alerts_of_the_chart_are_those_of_prometheus() -> None:
    assert (CHART / "files" / "alerts.yml").read_text() == (DEPLOY / "monitoring" / "alerts.yml").read_text()


def test_services_of_the_chart_get_the_same_rights_as_elsewhere() -> None:
    assert (CHART / "files" / "give-access.sh").read_text() == (DEPLOY / "setup" / "give-access.sh").read_text()
