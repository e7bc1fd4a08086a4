"""Every kind of answer of the service, and how it is shown."""

import json
from collections.abc import Callable, Mapping
from typing import Final

from deploy.views.sql import descriptions, lists
from deploy.views.sql.blocks import Block, Lines, remark
from deploy.views.sql.lists import Entity

UNFINISHED: Final = ("QUEUED", "PARSING", "EXECUTING")
"""States of a command that has not ended yet."""


def blocks_of(entity: Entity) -> list[Block]:
    """An answer as tables and lines; one of an unknown kind as JSON."""
    try:
        shown = _KINDS.get(str(entity.get("@type")), _unknown)(entity)
    except (AttributeError, KeyError, TypeError, ValueError):
        shown = _unknown(entity)  # another server may give a part of it another form
    warnings = [str(item.get("message")) for item in entity.get("warnings") or () if isinstance(item, Mapping)]
    return [*shown, *(Lines((f"Warning: {warning}",), is_remark=True) for warning in warnings)]


def command_of(entity: Entity) -> str | None:
    """The id of a command that still runs."""
    status = (entity.get("commandStatus") or {}).get("status")
    return str(entity["commandId"]) if status in UNFINISHED and entity.get("commandId") else None


def failure_of(entity: Entity) -> str | None:
    """Why a command has failed."""
    status = entity.get("commandStatus") or {}
    return str(status.get("message") or "the command failed") if status.get("status") == "ERROR" else None


def _status(entity: Entity) -> list[Block]:
    status = entity.get("commandStatus") or {}
    message = str(status.get("message") or status.get("status") or "done")
    query = status.get("queryId")
    shown: list[Block] = [Lines((message.partition("\n")[0],))]
    if query and str(query) not in message:
        shown.append(remark(f"query {query}; look at it:  `EXPLAIN {query};`"))
    return shown


def _warning(entity: Entity) -> list[Block]:
    return [Lines((str(entity.get("message")),), is_remark=True)]


def _terminated(entity: Entity) -> list[Block]:
    how = "terminated" if entity.get("wasTerminated", True) else "was not running"
    return [Lines((f"Query {entity.get('queryId')} {how}.",))]


def _dropped_connector(entity: Entity) -> list[Block]:
    return [Lines((f"Dropped connector {entity.get('connectorName')}",))]


def _topic_asserted(entity: Entity) -> list[Block]:
    return [Lines((f"Topic {entity.get('topicName')} {_exists(entity)}.",))]


def _schema_asserted(entity: Entity) -> list[Block]:
    named = [f"{word} {entity[key]}" for word, key in (("subject", "subject"), ("id", "id")) if entity.get(key)]
    return [Lines((f"Schema with {' and '.join(named)} {_exists(entity)}.",))]


def _exists(entity: Entity) -> str:
    return "exists" if entity.get("exists", True) else "does not exist"


def _unknown(entity: Entity) -> list[Block]:
    return [Lines(tuple(json.dumps(entity, indent=2, ensure_ascii=False).splitlines()))]


_KINDS: Final[Mapping[str, Callable[[Entity], list[Block]]]] = {
    "currentStatus": _status,
    "streams": lists.sources,
    "tables": lists.sources,
    "kafka_topics": lists.topics,
    "kafka_topics_extended": lists.topics,
    "queries": lists.queries,
    "properties": lists.properties,
    "function_names": lists.functions,
    "describe_function": descriptions.function,
    "type_list": lists.types,
    "variables": lists.variables,
    "sourceDescription": descriptions.source,
    "source_descriptions": descriptions.sources,
    "queryDescription": descriptions.query,
    "query_descriptions": descriptions.queries,
    "connector_info": descriptions.connector_info,
    "connector_list": lists.connectors,
    "connector_description": descriptions.connector,
    "connector_plugins_list": lists.plugins,
    "drop_connector": _dropped_connector,
    "terminate_query": _terminated,
    "warning_entity": _warning,
    "assert_topic": _topic_asserted,
    "assert_schema": _schema_asserted,
}
