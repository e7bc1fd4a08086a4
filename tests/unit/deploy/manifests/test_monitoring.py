"""What Prometheus and Grafana are given: questions in their language, to the places of the stack."""

import json
import shutil
import subprocess
from typing import Any, Final

import promql_parser
import pytest

from deploy.manifests.alerts import ALERTS
from deploy.stack import STACK
from tests.support.deployment import DEPLOY, read_yaml
from tests.support.promql import expressions_of_alerts, expressions_of_dashboard

MONITORING: Final = DEPLOY / "monitoring"
DASHBOARD: Final[dict[str, Any]] = json.loads((MONITORING / "grafana" / "caudal.json").read_text())


def test_every_service_is_asked_where_it_tells_its_metrics() -> None:
    jobs = read_yaml(MONITORING / "prometheus.yml")["scrape_configs"]
    assert {
        (job["job_name"], job["dns_sd_configs"][0]["names"][0], job["dns_sd_configs"][0]["port"]) for job in jobs
    } == {(f"caudal-{service.name}", service.name, service.metrics_port or service.port) for service in STACK}


@pytest.mark.parametrize("expression", [*expressions_of_alerts(), *expressions_of_dashboard()])
def test_a_question_is_one_that_prometheus_understands(expression: str) -> None:
    promql_parser.parse(expression)


def test_prometheus_takes_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: apt-get install prometheus")
    command = [promtool, "check", "config", str(MONITORING / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_says_what_to_do(alert: Any) -> None:
    assert alert.severity in ("critical", "warning")
    assert alert.summary
    assert alert.action.endswith(".")


def test_alerts_have_names_of_their_own() -> None:
    names = [alert.name for alert in ALERTS]
    assert len(set(names)) == len(names)


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_panels_have_numbers_of_their_own_and_ask_the_chosen_prometheus() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    sources = {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"}
    assert sources == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]


def test_grafana_finds_prometheus_and_the_dashboard_where_compose_puts_them() -> None:
    services = read_yaml(DEPLOY / "compose" / "monitoring.yaml")["services"]
    source = read_yaml(MONITORING / "grafana" / "datasources.yaml")["datasources"][0]
    assert source["url"].split("//")[1].split(":")[0] in services
    folder = read_yaml(MONITORING / "grafana" / "dashboards.yaml")["providers"][0]["options"]["path"]
    assert any(mount.split(":")[1] == f"{folder}/caudal.json" for mount in services["grafana"]["volumes"])
