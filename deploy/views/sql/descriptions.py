"""Answers of DESCRIBE and EXPLAIN: sources, queries, functions, connectors."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from deploy.views.sql.blocks import Block, Grid, Lines, grid, named, remark
from deploy.views.sql.lists import Entity, one_line, short_class, state_counts, type_text


def source(entity: Entity) -> list[Block]:
    """DESCRIBE name, also EXTENDED."""
    found = entity.get("sourceDescription") or {}
    is_extended = bool(found.get("extended"))
    blocks: list[Block] = [named(f"{str(found.get('type') or '').capitalize()} {found.get('name')}", _facts(found))]
    blocks.append(_columns(found))
    if not is_extended:
        blocks.append(remark(f"more about it, with lag and counts:  `DESCRIBE {found.get('name')} EXTENDED;`"))
        return blocks
    if constraints := found.get("sourceConstraints"):
        blocks.append(Lines((f"Read by: {', '.join(map(str, constraints))}; drop them first to drop this one.",)))
    for title, key in (("Queries that read it", "readQueries"), ("Queries that write it", "writeQueries")):
        rows = [(query["id"], state_counts(query), query.get("queryString")) for query in found.get(key) or ()]
        blocks += [grid(("Query ID", "Status", "Statement"), rows, title=title)] if rows else []
    return [*blocks, *_statistics(found), *_groups(found.get("queryOffsetSummaries") or ())]


def sources(entity: Entity) -> list[Block]:
    """DESCRIBE STREAMS, DESCRIBE TABLES, SHOW STREAMS EXTENDED."""
    found = entity.get("sourceDescriptions") or ()
    blocks = [block for one in found for block in source({"sourceDescription": one})]
    return blocks or [remark("there are none yet")]


def query(entity: Entity) -> list[Block]:
    """EXPLAIN, of a statement or of a query that runs."""
    found = entity.get("queryDescription") or {}
    hosts = [(host, state) for host, state in (found.get("ksqlHostQueryStatus") or {}).items()]
    facts = [
        ("ID", found.get("id")),
        ("Query Type", found.get("queryType")),
        ("State", found.get("state")),
        ("Consumer group", found.get("consumerGroupId")),
        ("Sources", found.get("sources")),
        ("Sinks", found.get("sinks")),
        ("Host status", [f"{host} {state}" for host, state in hosts]),
        ("SQL", one_line(str(found.get("statementText") or ""))),
    ]
    blocks: list[Block] = [named(f"Query {found.get('id') or ''}".strip(), facts)]
    if progress := found.get("progress"):
        blocks.append(named("Progress", [(name.replace("_", " "), value) for name, value in progress.items()]))
    if found.get("fields"):
        blocks.append(_columns(found))
    for title, key in (("Execution plan", "executionPlan"), ("Processing topology", "topology")):
        if text := str(found.get(key) or "").strip():
            blocks.append(Lines((f"{title}:", *text.splitlines())))
    if overridden := found.get("overriddenProperties"):
        blocks.append(grid(("Property", "Value"), sorted(overridden.items()), title="Overridden properties"))
    if errors := found.get("queryErrors"):
        rows = [(moment(error.get("timestamp")), error.get("type"), error.get("errorMessage")) for error in errors]
        blocks.append(grid(("Time", "Type", "Error"), rows, title="Errors"))
    return blocks


def queries(entity: Entity) -> list[Block]:
    """SHOW QUERIES EXTENDED."""
    found = entity.get("queryDescriptions") or ()
    blocks = [block for one in found for block in query({"queryDescription": one})]
    return blocks or [remark("no queries run")]


def function(entity: Entity) -> list[Block]:
    """DESCRIBE FUNCTION."""
    facts = [
        ("Overview", entity.get("description")),
        ("Type", entity.get("type")),
        ("Author", entity.get("author")),
        ("Version", entity.get("version")),
        ("From", entity.get("path")),
    ]
    blocks: list[Block] = [named(f"Function {entity.get('name')}", facts)]
    rows: list[tuple[object, ...]] = []
    notes: dict[str, str] = {}
    for variation in entity.get("functions") or ():
        arguments = variation.get("arguments") or variation.get("argumentTypes") or ()
        rows.append((_call(entity, arguments), variation.get("returnType"), variation.get("description")))
        notes |= {str(item["name"]): str(item["description"]) for item in arguments if item.get("description")}
    blocks.append(grid(("Variation", "Returns", "Description"), rows))
    return [*blocks, grid(("Argument", "What it is"), notes.items())] if notes else blocks


def connector(entity: Entity) -> list[Block]:
    """DESCRIBE CONNECTOR."""
    status = entity.get("status") or {}
    facts = [
        ("Class", entity.get("connectorClass")),
        ("Type", status.get("type")),
        ("State", (status.get("connector") or {}).get("state")),
        ("Worker", (status.get("connector") or {}).get("worker_id")),
    ]
    blocks: list[Block] = [named(f"Connector {status.get('name') or entity.get('name')}", facts)]
    tasks = [(task.get("id"), task.get("state"), _first_line(task.get("trace"))) for task in status.get("tasks") or ()]
    if tasks:
        blocks.append(grid(("Task ID", "State", "Error"), tasks))
    related = [(item.get("name"), item.get("type"), item.get("topic")) for item in entity.get("sources") or ()]
    if related:
        blocks.append(grid(("Name", "Type", "Kafka Topic"), related, title="Streams and tables of its topics"))
    if topics := entity.get("topics"):
        blocks.append(grid(("Related Topics",), [(topic,) for topic in topics]))
    return blocks


def connector_info(entity: Entity) -> list[Block]:
    """CREATE CONNECTOR."""
    info = entity.get("info") or {}
    kind = short_class((info.get("config") or {}).get("connector.class"))
    return [Lines((f"Connector {info.get('name')} created ({kind})",))]


def moment(milliseconds: object) -> str:
    """A time of ksqlDB's as people write it."""
    if not isinstance(milliseconds, int) or not 0 < milliseconds < 253_402_300_800_000:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _facts(found: Entity) -> Iterator[tuple[str, object]]:
    yield "Kafka topic", _topic(found)
    if found.get("windowType"):
        yield "Window type", found["windowType"]
    yield "Key format", found.get("keyFormat")
    yield "Value format", found.get("valueFormat")
    if found.get("extended"):
        yield "Timestamp field", found.get("timestamp") or "Not set - using <ROWTIME>"
        yield "Statement", one_line(str(found.get("statement") or ""))


def _topic(found: Entity) -> str:
    counts = [f"partitions: {found['partitions']}"] if found.get("partitions") else []
    counts += [f"replication: {found['replication']}"] if found.get("replication") else []
    return f"{found.get('topic')}" + (f" ({', '.join(counts)})" if counts else "")


def _columns(found: Entity) -> Grid:
    is_table, window = found.get("type") == "TABLE", found.get("windowType")
    rows = [(field["name"], _column_type(field, is_table=is_table, window=window)) for field in found["fields"]]
    return grid(("Field", "Type"), rows)


def _column_type(field: Entity, *, is_table: bool, window: object) -> str:
    text = type_text(field.get("schema")).ljust(16)
    match str(field.get("type") or field.get("fieldType") or ""):
        case "KEY":
            suffix = "(primary key)" if is_table else "(key)"
            suffix += f" (Window type: {window})" if window else ""
        case "SYSTEM":
            suffix = "(system)"
        case "HEADER":
            key = field.get("headerKey")
            suffix = f"(header('{key}'))" if key else "(headers)"
        case _:
            suffix = ""
    return f"{text} {suffix}".rstrip()


def _statistics(found: Entity) -> Iterator[Block]:
    by_host = [*(found.get("clusterStatistics") or ()), *(found.get("clusterErrorStats") or ())]
    if by_host:
        rows = [
            (
                _host(item.get("host")),
                item.get("name"),
                item.get("value"),
                moment(item.get("timestamp")),
            )
            for item in by_host
        ]
        yield grid(("Host", "Metric", "Value#", "Last Message"), rows, title="Runtime statistics by host")
    lines = [str(found.get(key) or "").strip() for key in ("statistics", "errorStats")]
    if text := tuple(line for line in lines if line):
        yield Lines(("Local runtime statistics:", *text))


def _host(host: object) -> str:
    """A server as text, or in its parts."""
    return f"{host.get('hostname')}:{host.get('port')}" if isinstance(host, Mapping) else str(host or "")


def _groups(summaries: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    for summary in summaries:
        for topic in summary.get("topicSummaries") or ():
            rows, lags = [], [0]
            for offset in topic.get("offsets") or ():
                lag = max(0, int(offset.get("logEndOffset") or 0) - int(offset.get("consumerOffset") or 0))
                lags.append(lag)
                ends = (offset.get("logStartOffset"), offset.get("logEndOffset"), offset.get("consumerOffset"))
                rows.append((offset.get("partition"), *ends, lag))
            title = f"Consumer group {summary.get('groupId')}, topic {topic.get('kafkaTopic')}, max lag {max(lags)}"
            yield grid(("Partition#", "Start Offset#", "End Offset#", "Offset#", "Lag#"), rows, title=title)


def _call(entity: Entity, arguments: Iterable[Any]) -> str:
    return f"{entity.get('name')}({', '.join(map(_argument, arguments))})"


def _argument(argument: Any) -> str:
    if not isinstance(argument, Mapping):
        return str(argument)
    dots = "[]" if argument.get("isVariadic") else ""
    return f"{argument.get('name') or ''} {argument.get('type')}{dots}".strip()


def _first_line(text: object) -> str:
    return str(text or "").partition("\n")[0]
