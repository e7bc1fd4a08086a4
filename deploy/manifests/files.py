"""Every generated file and what it should hold."""

from pathlib import Path
from typing import Final

from deploy.manifests.alerts import alerts
from deploy.manifests.chart import chart, schema, values
from deploy.manifests.dashboard import dashboard
from deploy.manifests.monitoring import dashboards, datasources, overlay, prometheus
from deploy.manifests.samples import samples
from deploy.manifests.scale_out import gateway_configuration, scale_out
from deploy.manifests.single_node import single_node
from deploy.manifests.systemd import units

DEPLOY: Final = Path(__file__).parents[1]


def documents() -> dict[Path, str]:
    """Text by path."""
    compose, chart_, monitoring = DEPLOY / "compose", DEPLOY / "helm" / "caudal", DEPLOY / "monitoring"
    return {
        compose / "compose.yaml": single_node(),
        compose / "scale-out.yaml": scale_out(),
        compose / "gateway.conf": gateway_configuration(),
        compose / "monitoring.yaml": overlay(),
        monitoring / "prometheus.yml": prometheus(),
        monitoring / "alerts.yml": alerts(),
        monitoring / "grafana" / "datasources.yaml": datasources(),
        monitoring / "grafana" / "dashboards.yaml": dashboards(),
        monitoring / "grafana" / "caudal.json": dashboard(),
        chart_ / "Chart.yaml": chart(),
        chart_ / "values.yaml": values(),
        chart_ / "values.schema.json": schema(),
        # A chart can only read what is in its own folder.
        chart_ / "files" / "alerts.yml": alerts(),
        **{DEPLOY / "config" / name: text for name, text in samples().items()},
        **{DEPLOY / "systemd" / name: text for name, text in units().items()},
    }
