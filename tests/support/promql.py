"""Questions to Prometheus: those of our alerts and our dashboard, and the metrics that they are about."""

import json
import operator
import re
from collections.abc import Mapping
from typing import Final

import promql_parser
from prometheus_client import Metric

from tests.support.deployment import DEPLOY, read_yaml

_MONITORING: Final = DEPLOY / "monitoring"
_OWN_OF_PROMETHEUS: Final = frozenset({"up"})


def expressions_of_alerts() -> list[str]:
    """Each rule's question."""
    return [rule["expr"] for group in read_yaml(_MONITORING / "alerts.yml")["groups"] for rule in group["rules"]]


def expressions_of_dashboard() -> list[str]:
    """The panels' questions, each once, with a window where Grafana would put one."""
    dashboard = json.loads((_MONITORING / "grafana" / "caudal.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [expression.replace("$__rate_interval", "5m") for expression in dict.fromkeys(asked)]


def firing(metrics: Mapping[str, Metric]) -> set[str]:
    """The alerts whose condition is met now, of those that compare a metric, or its sum or maximum, with a number."""
    rules = [rule for group in read_yaml(_MONITORING / "alerts.yml")["groups"] for rule in group["rules"]]
    return {rule["alert"] for rule in rules if _is_met(promql_parser.parse(rule["expr"]), metrics)}


def _is_met(expression: promql_parser.Expr, metrics: Mapping[str, Metric]) -> bool:
    if not isinstance(expression, promql_parser.BinaryExpr):
        return False
    compared, limit = expression.lhs, expression.rhs
    aggregate = ""
    if isinstance(compared, promql_parser.AggregateExpr):
        aggregate, compared = str(compared.op), compared.expr
    if not isinstance(compared, promql_parser.VectorSelector) or not isinstance(limit, promql_parser.NumberLiteral):
        return False
    if compared.name is None or compared.name not in metrics:
        return False
    wanted = {matcher.name: matcher.value for matcher in compared.matchers.matchers}
    values = [s.value for s in metrics[compared.name].samples if wanted.items() <= s.labels.items()]
    if aggregate and values:  # all brokers of a test are of one cluster
        values = [sum(values) if aggregate == "sum" else max(values)]
    return any(_COMPARISONS[str(expression.op)](value, limit.val) for value in values)


_COMPARISONS: Final = {"==": operator.eq, ">": operator.gt, "<": operator.lt}


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
