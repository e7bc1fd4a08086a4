"""Properties that requests and SET give to statements: which there are, which may be set, and to what."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from core_broker.service.settings import Definition, SettingsError
from streams.server.errors import BadRequest
from streams.settings import StreamsSettings

_KSQL: Final = "ksql."
_STREAMS: Final = "ksql.streams."
_REQUEST: Final = "ksql.request."
_FUNCTIONS: Final = "ksql.functions."
_PREFIXES: Final = ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin.")

_IMMUTABLE: Final = frozenset(
    {
        "bootstrap.servers",
        "ksql.extension.dir",
        "ksql.headers.columns.enabled",
        "ksql.hidden.topics",
        "ksql.pull.queries.enable",
        "ksql.query.persistent.active.limit",
        "ksql.readonly.topics",
        "ksql.source.table.materialization.enabled",
    }
)
_SETTABLE: Final = frozenset(
    {
        "ksql.create.or.replace.enabled",
        "ksql.output.topic.name.prefix",
        "ksql.persistence.default.format.key",
        "ksql.persistence.default.format.value",
        "ksql.persistence.wrap.single.values",
        "ksql.query.pull.max.allowed.offset.lag",
        "ksql.query.pull.table.scan.enabled",
        "ksql.query.trigger.ms",
        "ksql.sink.partitions",
        "ksql.sink.replicas",
        "ksql.timestamp.throw.on.invalid",
        "ksql.variable.substitution.enable",
    }
)
"""Our settings that a statement can have its own values of; others are accepted, and hold for the server only."""
_OFFSET_RESET: Final = "auto.offset.reset"
_STARTS: Final = ("earliest", "latest")
_GUARANTEES: Final = ("at_least_once", "exactly_once", "exactly_once_beta", "exactly_once_v2")

_KSQL_ONLY: Final = frozenset(
    {
        "ksql.any.key.name.enabled",
        "ksql.assert.schema.default.timeout.ms",
        "ksql.assert.topic.default.timeout.ms",
        "ksql.authorization.cache.expiry.time.secs",
        "ksql.authorization.cache.max.entries",
        "ksql.client.ip_port.configuration.enabled",
        "ksql.fetch.remote.hosts.max.timeout.seconds",
        "ksql.insert.into.values.enabled",
        "ksql.json_sr.converter.deserializer.enabled",
        "ksql.lambdas.enabled",
        "ksql.metastore.backup.location",
        "ksql.persistence.ensure.topics.exist",
        "ksql.properties.overrides.denylist",
        "ksql.query.pull.consistency.token.enabled",
        "ksql.query.pull.enable.standby.reads",
        "ksql.query.pull.forwarding.timeout.ms",
        "ksql.query.pull.interpreter.enabled",
        "ksql.query.pull.limit.clause.enabled",
        "ksql.query.pull.max.concurrent.requests",
        "ksql.query.pull.max.qps",
        "ksql.query.pull.metrics.enabled",
        "ksql.query.pull.range.scan.enabled",
        "ksql.query.pull.router.thread.pool.size",
        "ksql.query.pull.stream.enabled",
        "ksql.query.pull.thread.pool.size",
        "ksql.query.status.running.threshold.seconds",
        "ksql.queryanonymizer.cluster_namespace",
        "ksql.queryanonymizer.logs_enabled",
        "ksql.streamsstore.rebalancing.timeout.ms",
        "ksql.suppress.enabled",
        "ksql.suppress.buffer.size.bytes",
        "ksql.udf.collect.metrics",
        "ksql.websocket.connection.max.timeout.ms",
        "metric.reporters",
    }
)
"""Further properties of ksqlDB: accepted, so that scripts that set them run."""

_STREAMS_TEXT: Final = """
    acceptable.recovery.lag acks allow.auto.create.topics application.id application.server
    auto.commit.interval.ms batch.size buffer.memory buffered.records.per.partition built.in.metrics.version
    cache.max.bytes.buffering check.crcs cleanup.policy client.id commit.interval.ms compression.type
    connections.max.idle.ms default.api.timeout.ms default.client.supplier
    default.deserialization.exception.handler default.dsl.store default.production.exception.handler
    default.timestamp.extractor delete.retention.ms delivery.timeout.ms deserialization.exception.handler
    dsl.store.suppliers.class enable.auto.commit enable.idempotence exclude.internal.topics fetch.max.bytes
    fetch.max.wait.ms fetch.min.bytes file.delete.delay.ms flush.messages flush.ms group.id group.instance.id
    group.protocol heartbeat.interval.ms interceptor.classes internal.leave.group.on.close isolation.level
    linger.ms log.summary.interval.ms max.block.ms max.in.flight.requests.per.connection max.message.bytes
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size max.task.idle.ms
    max.warmup.replicas message.timestamp.type metadata.max.age.ms metadata.max.idle.ms metrics.num.samples
    metrics.recording.level metrics.sample.window.ms min.cleanable.dirty.ratio min.compaction.lag.ms
    min.insync.replicas num.standby.replicas num.stream.threads partition.assignment.strategy partitioner.class
    poll.ms preallocate probing.rebalance.interval.ms processing.exception.handler processing.guarantee
    production.exception.handler receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    repartition.purge.interval.ms replication.factor request.timeout.ms retention.bytes retention.ms retries
    retry.backoff.max.ms retry.backoff.ms rocksdb.config.setter security.protocol segment.bytes
    segment.index.bytes segment.jitter.ms segment.ms send.buffer.bytes session.timeout.ms state.cleanup.delay.ms
    state.dir statestore.cache.max.bytes task.assignor.class task.timeout.ms topology.optimization
    transaction.timeout.ms transactional.id unclean.leader.election.enable upgrade.from window.size.ms
    windowed.inner.class.serde windowstore.changelog.additional.ms
"""
_STREAMS_NAMES: Final = frozenset(_STREAMS_TEXT.split())
"""Names of Kafka Streams, of its clients and of topics: accepted, though Spark has no use for most of them."""
_NUMBER: Final = re.compile(r".*\.(ms|bytes|size|records|threads|replicas|factor|samples|messages)")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_HONOURED: Final = frozenset({_OFFSET_RESET})


def resolve(name: str, value: object, settings: StreamsSettings) -> tuple[str, str]:
    """The name and the value of a property as statements are planned with them. Raises BadRequest."""
    known = check_name(name, settings)
    text = _text(value)
    if known.startswith(_KSQL):
        return known, _checked(known, text, settings.DEFINITIONS.get(known))
    return known, _of_streams(known, text)


def resolve_all(properties: Mapping[str, object], settings: StreamsSettings) -> dict[str, str]:
    """The properties of a request; those that are only about the request itself are left out. Raises BadRequest."""
    given = {name: value for name, value in properties.items() if not name.startswith(_REQUEST)}
    return dict(resolve(name, value, settings) for name, value in given.items() if value is not None)


def check_name(name: str, settings: StreamsSettings) -> str:
    """The name of a property without `ksql.streams.`; BadRequest if there is none, or it cannot be set."""
    known = _canonical(name, settings)
    if known is None:
        raise BadRequest(f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'")
    denied = {"ksql.service.id", *settings.ksql_properties_overrides_denylist}
    if denied & {name, known}:
        raise BadRequest(
            "One or more properties overrides set locally are prohibited by the KSQL server "
            f"(use UNSET to reset their default value): [{name}]"
        )
    if known in _IMMUTABLE or known.startswith("ssl."):
        raise BadRequest(f"Cannot override property '{name}'")
    return known


def ignored(properties: Iterable[str]) -> list[str]:
    """Which of the properties, by their resolved names, have no effect here."""
    return sorted(
        name
        for name in properties
        if name not in _SETTABLE and name not in _HONOURED and not name.startswith(_FUNCTIONS)
    )


def listing(settings: StreamsSettings, overrides: Mapping[str, str]) -> dict[str, Any]:
    """What SHOW PROPERTIES lists: the properties, those that the request sets, and those that are as always."""
    server = {**_server_values(settings), **{f"{_STREAMS}{k}": v for k, v in settings.ksql_streams_properties}}
    of_request = {_listed(name): value for name, value in overrides.items()}
    shown = {**server, **of_request}
    given = {*settings.set} | {f"{_STREAMS}{name}" for name, _ in settings.ksql_streams_properties}
    return {
        "properties": [
            {
                "name": name,
                "scope": "KSQL",
                "value": shown[name],
                "editable": _is_editable(name, settings),
                "level": "SERVER",
            }
            for name in sorted(shown)
        ],
        "overwrittenProperties": sorted(of_request),
        "defaultProperties": sorted(name for name in server if name not in given and name not in of_request),
    }


def _canonical(name: str, settings: StreamsSettings) -> str | None:
    if name.startswith(_STREAMS):
        own = name.removeprefix(_STREAMS)
        return own if _is_of_streams(own) else None
    if name.startswith(_KSQL):
        definition = settings.DEFINITIONS.get(name)
        is_known = name in _KSQL_ONLY or name.startswith(_FUNCTIONS) or bool(settings.ignored([name]))
        return name if is_known or (definition is not None and not definition.prefix) else None
    return name if _is_of_streams(name) or name in _IMMUTABLE or name.startswith("ssl.") else None


def _is_of_streams(name: str) -> bool:
    if name.startswith("topic."):
        return True
    own = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
    return own in _STREAMS_NAMES or own == _OFFSET_RESET or own.startswith(("sasl.", "metrics."))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise BadRequest(f"A property must be text, a number or a boolean, not {type(value).__name__}")


def _checked(name: str, text: str, definition: Definition | None) -> str:
    if definition is None or definition.prefix:
        return text
    try:
        return definition.text(definition.parse(text)) or ""
    except SettingsError as error:
        raise BadRequest(f"Invalid value {text} for property {name}: {error.problems[0].reason}") from error


def _of_streams(name: str, text: str) -> str:
    own = name.removeprefix("consumer.")
    if own == _OFFSET_RESET:
        if text.lower() not in _STARTS:
            raise BadRequest(f"Invalid value {text} for property {_OFFSET_RESET}: must be one of {', '.join(_STARTS)}")
        return text.lower()
    if name == "processing.guarantee" and text not in _GUARANTEES:
        raise BadRequest(f"Invalid value {text} for property {name}: must be one of {', '.join(_GUARANTEES)}")
    if _NUMBER.fullmatch(name) and not name.startswith("topic.") and not _INTEGER.fullmatch(text):
        raise BadRequest(f"Invalid value {text} for property {name}: must be a whole number")
    return text


def _server_values(settings: StreamsSettings) -> dict[str, str | None]:
    return {
        key: None if definition.is_sensitive else settings.text_of(key)
        for key, definition in settings.DEFINITIONS.items()
        if not definition.prefix and (key.startswith(_KSQL) or key == "bootstrap.servers")
    }


def _listed(name: str) -> str:
    return name if name.startswith(_KSQL) else f"{_STREAMS}{name}"


def _is_editable(name: str, settings: StreamsSettings) -> bool:
    own = name.removeprefix(_STREAMS)
    if name.startswith(_STREAMS):
        return own != "state.dir" and own not in settings.ksql_properties_overrides_denylist
    return name in _SETTABLE and name not in settings.ksql_properties_overrides_denylist
