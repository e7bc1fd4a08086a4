"""What Prometheus and Grafana are given: valid questions to the places of the stack.

That services really have the metrics that are asked for is checked in tests/integration/test_deployment_files.py.
"""

import shutil
import subprocess
from typing import Final

import promql_parser
import pytest

from deploy.stack import BROKER, STACK
from tests.support.deployment import DEPLOY, observed_ports, read_yaml
from tests.support.promql import expressions_of_alerts, expressions_of_dashboard

MONITORING: Final = DEPLOY / "monitoring"


@pytest.mark.parametrize("file", ["prometheus.yml", "prometheus-secure.yml"])
def test_every_service_is_asked_where_it_tells_its_metrics(file: str) -> None:
    jobs = read_yaml(MONITORING / file)["scrape_configs"]
    asked = {
        (job["job_name"], name, found["port"])
        for job in jobs
        for found in job["dns_sd_configs"]
        for name in found["names"]
    }
    cluster = read_yaml(DEPLOY / "compose" / "cluster.yaml")["services"]
    brokers = {name for name, container in cluster.items() if container.get("command") == [BROKER.name]}
    assert asked == {(f"caudal-{item.name}", item.name, observed_ports()[item.name]) for item in STACK} | {
        (f"caudal-{BROKER.name}", name, BROKER.metrics_port) for name in brokers
    }


def test_prometheus_understands_every_question() -> None:
    for expression in [*expressions_of_alerts(), *expressions_of_dashboard()]:
        promql_parser.parse(expression)


@pytest.mark.processes
@pytest.mark.parametrize("words", [["prometheus.yml"], ["--syntax-only", "prometheus-secure.yml"]], ids=" ".join)
def test_prometheus_takes_its_configuration(words: list[str]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: apt-get install prometheus")
    command = [promtool, "check", "config", *words]
    done = subprocess.run(command, cwd=MONITORING, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_severity_and_says_what_to_do() -> None:
    (group,) = read_yaml(MONITORING / "alerts.yml")["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "action"}


def test_grafana_finds_prometheus_and_the_dashboard_where_compose_puts_them() -> None:
    services = read_yaml(DEPLOY / "compose" / "monitoring.yaml")["services"]
    source = read_yaml(MONITORING / "grafana" / "datasources.yaml")["datasources"][0]
    assert source["url"].split("//")[1].split(":")[0] in services
    folder = read_yaml(MONITORING / "grafana" / "dashboards.yaml")["providers"][0]["options"]["path"]
    assert any(mount.split(":")[1] == f"{folder}/caudal.json" for mount in services["grafana"]["volumes"])
