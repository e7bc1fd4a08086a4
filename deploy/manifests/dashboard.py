"""`deploy/monitoring/grafana/caudal.json`: the platform on one page, made from a short list of panels."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from deploy.manifests.monitoring import job_of
from deploy.stack import STACK

_COLUMNS: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WINDOW: Final = "[$__rate_interval]"
_TOPIC = "kafka_server_brokertopicmetrics"
_API = "kafka_network_requestmetrics"
_CONNECT = "caudal_connect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture: what it asks, and in which unit it answers."""

    title: str
    queries: tuple[tuple[str, str], ...]
    """Expression and legend of each line."""
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    alarming: bool = False
    """Anything above zero is red."""


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{_WINDOW}))"


def _mean(total: str, count: str, by: str) -> str:
    return f"{_rate(total, by)} / {_rate(count, by)}"


def _requests(prefix: str) -> tuple[Panel, ...]:
    seconds, count = f"{prefix}_http_request_seconds_total", f"{prefix}_http_requests_total"
    return (
        Panel(title="Requests by status", queries=((_rate(count, "status"), "{{status}}"),), unit="reqps"),
        Panel(title="Mean time by route", queries=((_mean(seconds, count, "route"), "{{route}}"),), unit="s"),
        Panel(
            title="Requests in work", queries=((f"sum by (instance) ({prefix}_http_requests_in_work)", "{{instance}}"),)
        ),
    )


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "Platform",
        (
            *(
                Panel(
                    title=service.title,
                    kind="stat",
                    width=3,
                    queries=((f'sum(up{{job="{job_of(service)}"}})', "up"),),
                )
                for service in STACK
            ),
            Panel(
                title="Records in",
                kind="stat",
                width=3,
                unit="cps",
                queries=((f"sum(rate({_TOPIC}_messagesin_total{_WINDOW}))", "records"),),
            ),
            Panel(
                title="Failed tasks",
                kind="stat",
                width=3,
                alarming=True,
                queries=((f'max({_CONNECT}_states{{kind="task",state="FAILED"}}) or vector(0)', "failed"),),
            ),
            Panel(
                title="Dead letters, last hour",
                kind="stat",
                width=3,
                alarming=True,
                queries=(
                    (f"sum(increase({_CONNECT}_deadletterqueue_produce_requests_total[1h])) or vector(0)", "letters"),
                ),
            ),
            Panel(
                title="Offline partitions",
                kind="stat",
                width=3,
                alarming=True,
                queries=(("sum(kafka_controller_kafkacontroller_offlinepartitionscount)", "offline"),),
            ),
        ),
    ),
    (
        "Broker",
        (
            Panel(
                title="Records in", queries=((_rate(f"{_TOPIC}_messagesin_total", "topic"), "{{topic}}"),), unit="cps"
            ),
            Panel(
                title="Bytes",
                unit="Bps",
                queries=(
                    (f"sum(rate({_TOPIC}_bytesin_total{_WINDOW}))", "in"),
                    (f"sum(rate({_TOPIC}_bytesout_total{_WINDOW}))", "out"),
                ),
            ),
            Panel(
                title="Records behind, by group",
                queries=(("sum by (consumergroup) (kafka_consumergroup_lag)", "{{consumergroup}}"),),
            ),
            Panel(title="Size of logs", queries=(("sum by (topic) (kafka_log_log_size)", "{{topic}}"),), unit="bytes"),
            Panel(
                title="Space left on disk",
                queries=(("caudal_broker_log_dir_usable_bytes", "{{instance}} {{log_dir}}"),),
                unit="bytes",
            ),
            Panel(
                title="Mean time by API",
                unit="ms",
                queries=((_mean(f"{_API}_totaltimems_sum_total", f"{_API}_requests_total", "request"), "{{request}}"),),
            ),
            Panel(
                title="Refused",
                unit="cps",
                alarming=True,
                queries=(
                    (f"sum(rate({_TOPIC}_failedproducerequests_total{_WINDOW}))", "produce"),
                    (f"sum(rate({_TOPIC}_failedfetchrequests_total{_WINDOW}))", "fetch"),
                    (f"sum(rate({_TOPIC}_invalidschemaidrecords_total{_WINDOW}))", "without a schema"),
                    (f"sum(rate(kafka_server_socket_server_metrics_connection_refused_total{_WINDOW}))", "connections"),
                ),
            ),
            Panel(
                title="Connections, groups, partitions",
                queries=(
                    ("sum(kafka_server_socket_server_metrics_connection_count)", "connections"),
                    ("sum(kafka_coordinator_group_groupmetadatamanager_numgroups)", "groups"),
                    ("sum(kafka_server_replicamanager_partitioncount)", "partitions"),
                ),
            ),
        ),
    ),
    (
        "Connect",
        (
            Panel(
                title="Records of sinks",
                queries=((_rate(f"{_CONNECT}_sink_record_send_total", "connector"), "{{connector}}"),),
                unit="cps",
            ),
            Panel(
                title="Records of sources",
                queries=((_rate(f"{_CONNECT}_source_record_write_total", "connector"), "{{connector}}"),),
                unit="cps",
            ),
            Panel(
                title="Records behind",
                queries=((f"max by (connector) ({_CONNECT}_sink_record_lag_max)", "{{connector}}"),),
            ),
            Panel(
                title="Dead letters",
                alarming=True,
                unit="cps",
                queries=((_rate(f"{_CONNECT}_deadletterqueue_produce_requests_total", "connector"), "{{connector}}"),),
            ),
            Panel(
                title="Errors and retries",
                unit="cps",
                queries=(
                    (_rate(f"{_CONNECT}_total_record_errors_total", "connector"), "{{connector}}: given up"),
                    (_rate(f"{_CONNECT}_total_retries_total", "connector"), "{{connector}}: tried again"),
                ),
            ),
            Panel(title="States", queries=((f"max by (kind, state) ({_CONNECT}_states)", "{{kind}} {{state}}"),)),
            *_requests(_CONNECT),
        ),
    ),
    (
        "Schema registry",
        (
            *_requests("caudal_registry"),
            Panel(
                title="Registered and refused",
                unit="cps",
                queries=(
                    (_rate("caudal_registry_schemas_registered_total", "type"), "{{type}}"),
                    (_rate("caudal_registry_schemas_refused_total", "code"), "refused: {{code}}"),
                ),
            ),
            Panel(
                title="Answered from memory",
                unit="reqps",
                queries=((f"sum(rate(caudal_registry_ready_answers_total{_WINDOW}))", "by id"),),
            ),
        ),
    ),
    (
        "REST proxy",
        (
            *_requests("caudal_rest_proxy"),
            Panel(
                title="Records produced",
                unit="cps",
                queries=(
                    (_rate("caudal_rest_proxy_records_produced_total", "format, outcome"), "{{format}} {{outcome}}"),
                ),
            ),
            Panel(
                title="Records consumed",
                unit="cps",
                queries=((_rate("caudal_rest_proxy_records_consumed_total", "format, how"), "{{format}} {{how}}"),),
            ),
            Panel(
                title="In flight",
                queries=(
                    ("sum(caudal_rest_proxy_records_in_flight)", "records"),
                    ("sum(caudal_rest_proxy_consumer_instances)", "consumer instances"),
                    ("sum(caudal_rest_proxy_streams)", "live streams"),
                ),
            ),
        ),
    ),
    (
        "Processes",
        (
            Panel(
                title="Memory",
                queries=(('process_resident_memory_bytes{job=~"caudal-.+"}', "{{job}} {{instance}}"),),
                unit="bytes",
            ),
            Panel(
                title="Processor",
                queries=((f'rate(process_cpu_seconds_total{{job=~"caudal-.+"}}{_WINDOW})', "{{job}} {{instance}}"),),
                unit="percentunit",
            ),
            Panel(title="Open files", queries=(('process_open_fds{job=~"caudal-.+"}', "{{job}} {{instance}}"),)),
        ),
    ),
)


def dashboard() -> str:
    """The dashboard, as Grafana reads it."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return (
        json.dumps(
            {
                "uid": "caudal",
                "title": "Caudal",
                "description": "Generated by `make docs` from deploy/manifests/dashboard.py.",
                "tags": ["caudal", "kafka"],
                "schemaVersion": 39,
                "editable": True,
                "refresh": "10s",
                "time": {"from": "now-30m", "to": "now"},
                "templating": {"list": [source]},
                "panels": list(_laid_out()),
            },
            indent=2,
        )
        + "\n"
    )


def _laid_out() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": _at(0, top, _COLUMNS, 1),
        }
        top += 1
        left = height = 0
        for panel in panels:
            if left + panel.width > _COLUMNS:
                left, top = 0, top + height
            number += 1
            height = 4 if panel.kind == "stat" else 8
            yield {"id": number, **_panel(panel), "gridPos": _at(left, top, panel.width, height)}
            left += panel.width
        top += height


def _at(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel) -> dict[str, Any]:
    steps = [{"color": "green", "value": None}, *([{"color": "red", "value": 0.001}] if panel.alarming else [])]
    targets = [
        {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for number, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {},
        "targets": targets,
    }
