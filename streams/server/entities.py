"""What the API answers to statements: JSON objects with a tag, as ksqlDB's own clients read them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from streams.model.plan import Query
from streams.model.sources import Column, Source
from streams.model.types import json_schema

JSON: TypeAlias = Any


def entity(kind: str, text: str, warnings: Iterable[str] = (), **fields: JSON) -> dict[str, JSON]:
    """An answer to a statement."""
    noted = [{"message": message} for message in warnings]
    return {"@type": kind, "statementText": text, **fields, "warnings": noted}


def command(
    text: str,
    *,
    command_id: str,
    message: str,
    sequence: int,
    query_id: str | None = None,
    warnings: Iterable[str] = (),
) -> dict[str, JSON]:
    """The answer to a statement that has changed something."""
    return entity(
        "currentStatus",
        text,
        warnings,
        commandId=command_id,
        commandStatus={"status": "SUCCESS", "message": message, "queryId": query_id},
        commandSequenceNumber=sequence,
    )


def listed_source(source: Source) -> dict[str, JSON]:
    """A stream or table in a list."""
    return {
        "type": source.kind,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "isWindowed": source.window is not None,
    }


def fields(source: Source) -> list[JSON]:
    """The columns of a stream or table: those of the key and the headers are marked."""
    headers = [
        _field(
            Column(item.name, "BYTES" if item.key is not None else "ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>"),
            "HEADER",
            item.key,
        )
        for item in source.headers
    ]
    key = [_field(column, "KEY") for column in source.key]
    return [*key, *[_field(column) for column in source.value], *headers]


def fields_of(columns: Iterable[Column], *, key_columns: int = 0) -> list[JSON]:
    """The columns of a result."""
    return [_field(column, "KEY" if number < key_columns else None) for number, column in enumerate(columns)]


def _field(column: Column, kind: str | None = None, header: str | None = None) -> dict[str, JSON]:
    found: dict[str, JSON] = {"name": column.name, "schema": json_schema(column.sql_type)}
    if kind is not None:
        found["type"] = kind
    if header is not None:
        found["headerKey"] = header
    return found


def running_query(query: Query, state: str, sink: Source | None) -> dict[str, JSON]:
    """A persistent query in a list."""
    return {
        "queryString": query.statement,
        "sinks": [query.writes],
        "sinkKafkaTopics": [sink.topic] if sink is not None else [],
        "id": query.id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def client_query(query_id: str, text: str) -> dict[str, JSON]:
    """A push query of a client in a list."""
    return {
        "queryString": text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
    }


def offset_summaries(
    groups: Sequence[tuple[str, Mapping[str, Mapping[int, int]]]],
    ends: Mapping[str, Mapping[int, tuple[int, int]]],
) -> list[JSON]:
    """How far consumer groups have read, against the ends of the partitions."""
    return [
        {
            "groupId": group,
            "topicSummaries": [
                {
                    "kafkaTopic": topic,
                    "offsets": [
                        {
                            "partition": number,
                            "logStartOffset": start,
                            "logEndOffset": end,
                            "consumerOffset": committed.get(topic, {}).get(number, 0),
                        }
                        for number, (start, end) in sorted(partitions.items())
                    ],
                }
                for topic, partitions in sorted(ends.items())
                if topic in committed
            ],
        }
        for group, committed in groups
    ]
