"""`deploy/monitoring`: what Prometheus asks, what Grafana finds, and the compose file that starts both beside ours."""

from typing import Final

from deploy.manifests.containers import HEADING, here
from deploy.manifests.yaml_text import Comment, Value, yaml_text
from deploy.stack import STACK, Service

_PROMETHEUS_PORT: Final = 9090
_GRAFANA_PORT: Final = 3000
_DASHBOARDS: Final = "/var/lib/grafana/dashboards"


def job_of(service: Service) -> str:
    """The name under which Prometheus knows a service, wherever it runs."""
    return f"caudal-{service.name}"


def observed_port(service: Service) -> int:
    """Where a service tells its metrics and its health."""
    return service.metrics_port or service.port


def prometheus() -> str:
    """The scrape configuration: every container of that name, however many there are."""
    return yaml_text(
        {
            "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [_job(service) for service in STACK],
        },
        heading=f"For the containers of deploy/compose; elsewhere, name your hosts in `static_configs`.\n\n{HEADING}",
    )


def overlay() -> str:
    """The compose file that adds Prometheus and Grafana to either of the others."""
    services: dict[str, Value] = {
        "prometheus": {
            "image": "${PROMETHEUS_IMAGE:-prom/prometheus:v3.5.0}",
            "ports": [here(_PROMETHEUS_PORT)],
            "volumes": [
                "../monitoring/prometheus.yml:/etc/prometheus/prometheus.yml:ro",
                "../monitoring/alerts.yml:/etc/prometheus/alerts.yml:ro",
                "prometheus-data:/prometheus",
            ],
            "restart": "unless-stopped",
        },
        "grafana": {
            Comment("admin, admin; asked to change it at the first login. The dashboard is there."): None,
            "image": "${GRAFANA_IMAGE:-grafana/grafana:12.1.1}",
            "ports": [here(_GRAFANA_PORT)],
            "volumes": [
                "../monitoring/grafana/datasources.yaml:/etc/grafana/provisioning/datasources/caudal.yaml:ro",
                "../monitoring/grafana/dashboards.yaml:/etc/grafana/provisioning/dashboards/caudal.yaml:ro",
                f"../monitoring/grafana/caudal.json:{_DASHBOARDS}/caudal.json:ro",
                "grafana-data:/var/lib/grafana",
            ],
            "depends_on": ["prometheus"],
            "restart": "unless-stopped",
        },
    }
    return yaml_text(
        {"services": services, "volumes": {"prometheus-data": {}, "grafana-data": {}}}, heading=f"{_OVERLAY}\n{HEADING}"
    )


_OVERLAY: Final = f"""Prometheus at http://localhost:{_PROMETHEUS_PORT}, Grafana at http://localhost:{_GRAFANA_PORT}.

  docker compose -f deploy/compose/compose.yaml -f deploy/compose/monitoring.yaml up --wait
  docker compose -f deploy/compose/scale-out.yaml -f deploy/compose/monitoring.yaml up --wait
"""


def datasources() -> str:
    """Grafana's way to Prometheus."""
    source: dict[str, Value] = {
        "name": "Prometheus",
        "uid": "prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": f"http://prometheus:{_PROMETHEUS_PORT}",
        "isDefault": True,
    }
    return yaml_text({"apiVersion": 1, "datasources": [source]}, heading=HEADING)


def dashboards() -> str:
    """Where Grafana finds our dashboard."""
    provider: dict[str, Value] = {"name": "caudal", "type": "file", "options": {"path": _DASHBOARDS}}
    return yaml_text({"apiVersion": 1, "providers": [provider]}, heading=HEADING)


def _job(service: Service) -> dict[str, Value]:
    where: dict[str, Value] = {"names": [service.name], "type": "A", "port": observed_port(service)}
    return {"job_name": job_of(service), "dns_sd_configs": [where]}
