"""`deploy/monitoring/alerts.yml`: what somebody should get up for, and what can wait until the morning."""

from dataclasses import dataclass
from typing import Final

from deploy.manifests.containers import HEADING
from deploy.manifests.yaml_text import Value, yaml_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule: when it is true for so long, and what to do then."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    action: str


ALERTS: Final = (
    Alert(
        name="CaudalServiceDown",
        expression='up{job=~"caudal-.+"} == 0',
        lasting="1m",
        severity="critical",
        summary="{{ $labels.job }} at {{ $labels.instance }} does not answer",
        action="See its log; `caudal doctor` tells what is wrong with the machine.",
    ),
    Alert(
        name="CaudalPartitionsOffline",
        expression="kafka_controller_kafkacontroller_offlinepartitionscount > 0",
        lasting="1m",
        severity="critical",
        summary="{{ $value }} partitions have no leader: nobody can write to them or read them",
        action="See the broker's log: a folder of log.dirs may have failed.",
    ),
    Alert(
        name="CaudalPartitionsUnderReplicated",
        expression="kafka_server_replicamanager_underreplicatedpartitions > 0",
        lasting="5m",
        severity="warning",
        summary="{{ $value }} partitions have replicas that lag behind",
        action="Look for a broker that is down or slow: `caudal cluster info`.",
    ),
    Alert(
        name="CaudalProduceRefused",
        expression="sum by (topic) (rate(kafka_server_brokertopicmetrics_failedproducerequests_total[5m])) > 0",
        lasting="5m",
        severity="warning",
        summary="Producers of {{ $labels.topic }} are refused",
        action="Too large, not allowed, or without a registered schema: the broker's log says why.",
    ),
    Alert(
        name="CaudalSchemaGuardBlind",
        expression="rate(caudal_schema_guard_registry_failures_total[5m]) > 0",
        lasting="2m",
        severity="critical",
        summary="Guarded topics take nothing: no registry answers the broker",
        action="See to the schema registry; producers send again until then.",
    ),
    Alert(
        name="CaudalDiskFills",
        expression="predict_linear(caudal_broker_log_dir_usable_bytes[6h], 86400) < 0"
        " or caudal_broker_log_dir_usable_bytes / caudal_broker_log_dir_total_bytes < 0.05",
        lasting="30m",
        severity="critical",
        summary="The disk of {{ $labels.log_dir }} at {{ $labels.instance }} is full within a day, or nearly so now",
        action="Shorten retention (retention.ms, retention.bytes) of large topics, or give it a larger disk.",
    ),
    Alert(
        name="CaudalGroupLags",
        expression="sum by (consumergroup, topic) (kafka_consumergroup_lag) > 10000"
        " and sum by (consumergroup, topic) (deriv(kafka_consumergroup_lag[10m])) > 0",
        lasting="10m",
        severity="warning",
        summary="{{ $labels.consumergroup }} falls behind in {{ $labels.topic }}: {{ $value | humanize }} records",
        action="`caudal group describe {{ $labels.consumergroup }}` tells who reads what; add members.",
    ),
    Alert(
        name="CaudalFileDescriptorsShort",
        expression='process_open_fds{job=~"caudal-.+"} / process_max_fds{job=~"caudal-.+"} > 0.8',
        lasting="5m",
        severity="warning",
        summary="{{ $labels.job }} at {{ $labels.instance }} has used {{ $value | humanizePercentage }} of its files",
        action="Raise the limit of open files (LimitNOFILE), or find who opens so many connections.",
    ),
    Alert(
        name="CaudalConnectionsRefused",
        expression="rate(kafka_server_socket_server_metrics_connection_refused_total[5m]) > 0",
        lasting="5m",
        severity="warning",
        summary="The broker at {{ $labels.instance }} refuses connections",
        action="A limit is reached: max.connections or max.connections.per.ip.",
    ),
    Alert(
        name="CaudalConnectorFailed",
        expression='max by (kind) (caudal_connect_states{state="FAILED"}) > 0',
        lasting="2m",
        severity="critical",
        summary="{{ $value }} of Connect's {{ $labels.kind }}s have failed",
        action="`caudal connector list`, then `caudal connector status NAME` for the reason.",
    ),
    Alert(
        name="CaudalDeadLetters",
        expression="sum by (connector) (increase(caudal_connect_deadletterqueue_produce_requests_total[15m])) > 0",
        lasting="1m",
        severity="warning",
        summary="{{ $labels.connector }} has put {{ $value | humanize }} records aside in 15 minutes",
        action="`caudal dlq list {{ $labels.connector }}` tells why; once repaired, `caudal dlq redrive`.",
    ),
    Alert(
        name="CaudalRecordsSkipped",
        expression="sum by (connector) (increase(caudal_connect_total_records_skipped_total[15m]))"
        " > sum by (connector) (increase(caudal_connect_deadletterqueue_produce_requests_total[15m]))",
        lasting="1m",
        severity="warning",
        summary="{{ $labels.connector }} skips records that no dead-letter topic keeps",
        action="Set errors.deadletterqueue.topic.name, or these records are gone.",
    ),
    Alert(
        name="CaudalSinkLags",
        expression="max by (connector) (caudal_connect_sink_record_lag_max) > 10000"
        " and max by (connector) (deriv(caudal_connect_sink_record_lag_max[10m])) > 0",
        lasting="10m",
        severity="warning",
        summary="{{ $labels.connector }} is {{ $value | humanize }} records behind, and falls further back",
        action="More tasks (tasks.max), more workers, or a faster other side.",
    ),
    Alert(
        name="CaudalOffsetCommitsFail",
        expression="sum by (connector) (increase(caudal_connect_offset_commit_failures_total[15m])) > 3",
        lasting="5m",
        severity="warning",
        summary="{{ $labels.connector }} cannot commit how far it is: a restart would do work again",
        action="See the worker's log; the cluster or the other side may be slow.",
    ),
    *(
        Alert(
            name=f"Caudal{title}Errors",
            expression=f'sum(rate({prefix}_http_requests_total{{status=~"5.."}}[5m]))'
            f" / sum(rate({prefix}_http_requests_total[5m])) > 0.05",
            lasting="5m",
            severity="warning",
            summary=f"The {words} answers {{{{ $value | humanizePercentage }}}} of its requests with 5xx",
            action="See its log, and whether what it needs is there.",
        )
        for title, prefix, words in (
            ("Registry", "caudal_registry", "schema registry"),
            ("RestProxy", "caudal_rest_proxy", "REST proxy"),
            ("Connect", "caudal_connect", "Connect API"),
        )
    ),
)


def alerts() -> str:
    """The rules, as Prometheus reads them."""
    group: dict[str, Value] = {"name": "caudal", "rules": [_rule(alert) for alert in ALERTS]}
    return yaml_text({"groups": [group]}, heading=HEADING)


def _rule(alert: Alert) -> dict[str, Value]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "action": alert.action},
    }
