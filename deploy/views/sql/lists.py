"""Answers of SHOW: streams, tables, topics, queries, properties, functions, types, variables, connectors."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from deploy.views.sql.blocks import Block, grid, remark

Entity = Mapping[str, Any]

_STATEMENT_CHARACTERS_MAX: Final = 120
_SOURCE_COLUMNS: Final = ("Kafka Topic", "Key Format", "Value Format", "Windowed")


def sources(entity: Entity) -> list[Block]:
    """SHOW STREAMS, SHOW TABLES."""
    kind = "streams" if "streams" in entity else "tables"
    rows = [
        (item["name"], item.get("topic"), item.get("keyFormat"), item.get("valueFormat"), item.get("isWindowed", False))
        for item in entity.get(kind) or ()
    ]
    if not rows:
        how = f"CREATE {kind[:-1].upper()} name (...) WITH (...);"
        return [remark(f"no {kind} yet; declare one over a topic:  `{how}`")]
    return [grid([f"{kind[:-1].capitalize()} Name", *_SOURCE_COLUMNS], rows)]


def topics(entity: Entity) -> list[Block]:
    """SHOW TOPICS, also EXTENDED."""
    found = entity.get("topics") or ()
    is_extended = any("consumerCount" in item for item in found)
    columns = ["Kafka Topic", "Partitions#", "Partition Replicas"]
    columns += ["Consumers#", "Consumer Groups#"] if is_extended else []
    rows = []
    for item in found:
        replicas = list(item.get("replicaInfo") or ())
        row = [item["name"], len(replicas), replicas[0] if len(set(replicas)) == 1 else replicas]
        rows.append([*row, item.get("consumerCount"), item.get("consumerGroupCount")] if is_extended else row)
    return [grid(columns, rows)] if rows else [remark("no topics yet")]


def queries(entity: Entity) -> list[Block]:
    """SHOW QUERIES."""
    rows = [
        (
            item["id"],
            item.get("queryType"),
            state_counts(item),
            item.get("sinks"),
            item.get("sinkKafkaTopics"),
            one_line(item.get("queryString") or ""),
        )
        for item in entity.get("queries") or ()
    ]
    if not rows:
        return [remark("no queries run; start one:  `CREATE TABLE name AS SELECT ...;`")]
    columns = ("Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String")
    return [grid(columns, rows), remark("all about one of them:  `EXPLAIN id;`")]


def properties(entity: Entity) -> list[Block]:
    """SHOW PROPERTIES."""
    overwritten, defaults = set(entity.get("overwrittenProperties") or ()), set(entity.get("defaultProperties") or ())
    rows = []
    for item in sorted(entity.get("properties") or (), key=lambda item: str(item["name"])):
        name = item["name"]
        changed = "SESSION" if name in overwritten else "" if name in defaults else "SERVER"
        rows.append((name, item.get("scope"), changed, "NULL" if item.get("value") is None else item["value"]))
    return [grid(("Property", "Scope", "Default override", "Effective Value"), rows)]


def functions(entity: Entity) -> list[Block]:
    """SHOW FUNCTIONS: by category, with an empty row between categories."""
    found = sorted(entity.get("functions") or (), key=lambda item: (str(item.get("category") or ""), item["name"]))
    rows: list[tuple[object, ...]] = []
    for _, group in groupby(found, key=lambda item: item.get("category")):
        rows += [("", "")] if rows else []
        rows += [(item["name"], item.get("category")) for item in group]
    return [grid(("Function Name", "Category"), rows), remark("its arguments and result:  `DESCRIBE FUNCTION name;`")]


def types(entity: Entity) -> list[Block]:
    """SHOW TYPES."""
    rows = [(name, type_text(schema)) for name, schema in sorted((entity.get("types") or {}).items())]
    return [grid(("Type Name", "Schema"), rows)] if rows else [remark("no types yet:  `CREATE TYPE name AS ...;`")]


def variables(entity: Entity) -> list[Block]:
    """SHOW VARIABLES."""
    rows = [(item["name"], item["value"]) for item in entity.get("variables") or ()]
    return [grid(("Variable Name", "Value"), rows)] if rows else [remark("none yet:  `DEFINE name = 'value';`")]


def connectors(entity: Entity) -> list[Block]:
    """SHOW CONNECTORS."""
    rows = [
        (item.get("name"), item.get("type"), short_class(item.get("className")), item.get("state"))
        for item in entity.get("connectors") or ()
    ]
    return [grid(("Connector Name", "Type", "Class", "Status"), rows)] if rows else [remark("no connectors yet")]


def plugins(entity: Entity) -> list[Block]:
    """SHOW CONNECTOR PLUGINS."""
    found = entity.get("connectorsPlugins") or entity.get("connectorPlugins") or ()
    rows = [(item.get("className") or item.get("class"), item.get("type"), item.get("version")) for item in found]
    return [grid(("Class", "Type", "Version"), rows)]


def state_counts(query: Entity) -> str:
    """`RUNNING:1`, as ksqlDB reports how many servers run a query."""
    counts = query.get("statusCount") or {}
    return ", ".join(f"{state}:{count}" for state, count in counts.items()) or str(query.get("state") or "")


def one_line(statement: str) -> str:
    """The beginning of a statement in one line."""
    text = " ".join(statement.split())
    return text if len(text) <= _STATEMENT_CHARACTERS_MAX else f"{text[:_STATEMENT_CHARACTERS_MAX]}…"


def type_text(schema: Any) -> str:
    """A type of ksqlDB's JSON as SQL."""
    if not isinstance(schema, Mapping):
        return str(schema)
    name = str(schema.get("type") or "")
    parameters = schema.get("parameters") or {}
    match name:
        case "ARRAY":
            return f"ARRAY<{type_text(schema.get('memberSchema'))}>"
        case "MAP":
            return f"MAP<STRING, {type_text(schema.get('memberSchema'))}>"
        case "STRUCT":
            return f"STRUCT<{', '.join(_fields(schema.get('fields') or ()))}>"
        case "DECIMAL" if parameters:
            return f"DECIMAL({parameters.get('precision')}, {parameters.get('scale')})"
        case _:
            return name


def _fields(fields: Iterable[Entity]) -> Iterable[str]:
    return (f"{field['name']} {type_text(field.get('schema'))}" for field in fields)


def short_class(name: object) -> str:
    """The last part of a Java class."""
    return str(name or "").rpartition(".")[2]
