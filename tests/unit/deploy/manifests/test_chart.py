"""The chart without Helm: values fit their schema, services take their settings, templates name what is there."""

import json
import re
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from core_broker.service.properties import from_environment
from deploy.stack import BY_NAME, STACK, Service
from tests.support.deployment import DEPLOY, parse_settings, read_yaml

CHART: Final = DEPLOY / "helm" / "caudal"
VALUES: Final[dict[str, Any]] = read_yaml(CHART / "values.yaml")
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES: Final = sorted((CHART / "templates").iterdir())
HELPERS: Final = (CHART / "templates" / "_helpers.tpl").read_text()


def _problems(values: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(values)]


def _rendered(value: str) -> str:
    """What a template in a setting becomes, more or less."""
    return re.sub(r"\{\{.*?Url.*?\}\}", "http://registry:8081", value).replace("{{", "<").replace("}}", ">")


def test_values_fit_their_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert _problems(VALUES) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafka": {"bootstrapServer": "x:9092"}},
        {"services": {"brokers": {}}},
        {"services": {"broker": {"replicas": 3}}},
        {"services": {"connect": {"port": "http"}}},
        {"image": {"pullPolicy": "Sometimes"}},
    ],
    ids=json.dumps,
)
def test_a_slip_in_the_values_is_refused(wrong: dict[str, Any]) -> None:
    assert _problems(wrong) != []


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_ports_and_names_are_those_of_the_stack(service: Service) -> None:
    values = VALUES["services"][service.name]
    assert values["port"] == service.port
    assert values["healthPort"] == (service.metrics_port or service.port)
    assert values["configFile"] == service.config_file
    assert values["environmentPrefix"] == service.environment_prefix


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_takes_the_settings_of_the_values(service: Service) -> None:
    settings = {key: _rendered(value) for key, value in VALUES["services"][service.name]["settings"].items()}
    settings.pop(
        "advertised.listeners", None
    )  # holds a template where a port is checked; tests with Helm read it whole
    settings.pop("bootstrap.servers", None)
    parse_settings(service.name, settings)


def test_variables_in_templates_are_settings_of_the_service() -> None:
    named = re.findall(r"environmentPrefix \}\}([A-Z_]+)", HELPERS)
    assert sorted(named) == ["CELERY_BROKER_URL", "DATABASE_URL", "REST_ADVERTISED_HOST_NAME", "SPARK_DRIVER_HOST"]
    for variable in named:
        command = "registry" if variable.startswith("DATABASE") else "connect"
        prefix = BY_NAME[command].environment_prefix
        value = "sqlite:///x.db" if command == "registry" else "redis://x"
        parse_settings(command, from_environment({prefix + variable: value}, prefix))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_name_values_that_are_there(path: Path) -> None:
    for named in set(re.findall(r"\.Values\.([A-Za-z.]+)", path.read_text())):
        place: Any = VALUES
        for part in named.rstrip(".").split("."):
            assert part in place, f".Values.{named}"
            place = place[part]
    for named in set(re.findall(r"\$service\.([A-Za-z.]+)", path.read_text())):
        for name, place in VALUES["services"].items():
            for part in named.split("."):
                assert part in place or part == "sparkConnectPort", f"{name}: {named}"
                place = place.get(part, {})


def test_every_helper_that_is_used_is_defined() -> None:
    text = "".join(path.read_text() for path in TEMPLATES) + (CHART / "values.yaml").read_text().replace('\\"', '"')
    assert set(re.findall(r'include "([\w.]+)"', text)) <= set(re.findall(r'define "([\w.]+)"', HELPERS))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_blocks_of_a_template_are_closed(path: Path) -> None:
    actions = re.findall(r"\{\{-?\s*(if|range|with|define|end|else)\b", path.read_text())
    opened = sum(action not in ("end", "else") for action in actions)
    assert opened == actions.count("end")


def test_pods_are_nobody_s_root() -> None:
    assert VALUES["podSecurityContext"]["runAsNonRoot"] is True
    assert VALUES["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    uid = VALUES["podSecurityContext"]["runAsUser"]
    assert f"USER {uid}:{uid}" in (DEPLOY / "docker" / "Dockerfile").read_text()


def test_alerts_of_the_chart_are_those_of_prometheus() -> None:
    assert (CHART / "files" / "alerts.yml").read_text() == (DEPLOY / "monitoring" / "alerts.yml").read_text()
