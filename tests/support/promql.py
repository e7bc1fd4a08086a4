"""Questions to Prometheus: those of our alerts and our dashboard, and the metrics that they are about."""

import json
import re
from typing import Final

import promql_parser

from tests.support.deployment import DEPLOY, read_yaml

_MONITORING: Final = DEPLOY / "monitoring"
_OWN_OF_PROMETHEUS: Final = frozenset({"up"})


def expressions_of_alerts() -> list[str]:
    """Each rule's question."""
    return [rule["expr"] for group in read_yaml(_MONITORING / "alerts.yml")["groups"] for rule in group["rules"]]


def expressions_of_dashboard() -> list[str]:
    """Each panel's questions, with a window where Grafana would put one."""
    dashboard = json.loads((_MONITORING / "grafana" / "caudal.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [expression.replace("$__rate_interval", "5m") for expression in asked]


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    """Every choice of a metric in a question."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> bool:
        if isinstance(node, promql_parser.VectorSelector) and node.name not in _OWN_OF_PROMETHEUS:
            found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def label_names(expression: str) -> set[str]:
    """Labels that a question groups by."""
    return {name.strip() for group in re.findall(r" by \(([^)]*)\)", expression) for name in group.split(",")}
