"""Topics that statements need."""

from streams.model.plan import TopicRequest
from streams.model.sources import Kind, Source
from streams.sql.analysis.facts import Facts, Options
from streams.sql.analysis.mistakes import mistake
from streams.sql.language.tree.node import Node
from streams.sql.planning.properties import Properties


def cleanup_policy(kind: Kind, *, windowed: bool) -> str:
    """Streams are kept by time, tables are compacted, and those of windows both."""
    if kind == "STREAM":
        return "delete"
    return "compact,delete" if windowed else "compact"


def declared_topic(kind: Kind, given: Properties, facts: Facts, statement: Node) -> TopicRequest:
    """The topic of CREATE STREAM or TABLE: one that exists, or is made if its partitions are given."""
    name = given.text("KAFKA_TOPIC") or ""
    partitions = given.number("PARTITIONS")
    if name in facts.partitions:
        _check_partitions(name, partitions, facts, given.node("PARTITIONS", statement))
        return TopicRequest(name=name, partitions=partitions, must_match=partitions is not None)
    if partitions is None:
        message = (
            f"Topic '{name}' does not exist. If you want to create a new topic for the {kind.lower()}, re-run the "
            f"statement providing the required 'PARTITIONS' configuration in the WITH clause (and optionally "
            f"'REPLICAS'). For example: CREATE {kind} ... WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, REPLICAS=1);"
        )
        raise mistake(given.node("KAFKA_TOPIC", statement), message)
    return TopicRequest(
        name=name,
        partitions=partitions,
        replicas=given.number("REPLICAS"),
        configs=_configs(kind, given, statement, windowed=given.window() is not None),
        must_match=True,
    )


def _check_partitions(name: str, partitions: int | None, facts: Facts, node: Node) -> None:
    has = facts.partitions[name]
    if partitions is not None and partitions != has:
        message = (
            f"A Kafka topic with the name '{name}' already exists, with different partition/replica configuration than "
            f"required. KSQL expects {partitions} partitions, got {has}. Remove PARTITIONS, or choose another topic."
        )
        raise mistake(node, message)


def _configs(
    kind: Kind, given: Properties, statement: Node, *, windowed: bool, retention_ms: int | None = None
) -> dict[str, str]:
    configs = {"cleanup.policy": cleanup_policy(kind, windowed=windowed)}
    wanted = given.retention_ms()
    if wanted is not None and kind == "TABLE" and not windowed:
        message = "RETENTION_MS is not for tables, whose topics keep the last row of each key. Remove it."
        raise mistake(given.node("RETENTION_MS", statement), message)
    if wanted == -1:
        return {**configs, "retention.ms": "-1"}
    longest = max((one for one in (wanted, retention_ms) if one is not None), default=None)
    return configs if longest is None else {**configs, "retention.ms": str(longest)}


def sink_topic(
    sink: Source,
    source: Source,
    given: Properties,
    facts: Facts,
    options: Options,
    *,
    statement: Node,
    retention_ms: int | None,
) -> TopicRequest:
    """The topic of CREATE ... AS SELECT: with as many partitions as the left-most source's."""
    partitions = given.number("PARTITIONS")
    if sink.topic in facts.partitions:
        _check_partitions(sink.topic, partitions, facts, given.node("PARTITIONS", statement))
    wanted = partitions or facts.partitions.get(source.topic) or source.partitions or options.default_partitions
    return TopicRequest(
        name=sink.topic,
        partitions=facts.partitions.get(sink.topic, wanted),
        replicas=given.number("REPLICAS"),
        configs=_configs(sink.kind, given, statement, windowed=sink.window is not None, retention_ms=retention_ms),
        must_match=partitions is not None,
    )
