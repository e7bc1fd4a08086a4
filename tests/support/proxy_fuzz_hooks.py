"""What schemathesis, which makes requests up by the document, must know of a proxy to get past its doors.

Loaded by its command (SCHEMATHESIS_HOOKS). Most requests name what exists, and none of them waits for long.
"""

import json
import os
from typing import Any, Final
from zlib import crc32

import schemathesis

_KNOWN: Final[dict[str, Any]] = {
    "topic": "orders",
    "topic_name": "orders",
    "partition": 0,
    "partition_id": 0,
    "broker_id": 1,
    "group": "billing",
    "consumer_group_id": "billing",
    **json.loads(os.environ.get("PROXY_KNOWN", "{}")),
}
_SPARED: Final = {
    ("deleteKafkaTopic", "topic_name"),
    ("listKafkaDefaultTopicConfigs", "topic_name"),
    ("deleteConsumerInstanceV2", "name"),
    ("unsubscribeV2", "name"),
}
"""What others need and these would take away, or what must not be there, by operation."""
_ACCEPTED: Final = (
    "*/*",
    "application/json",
    "application/vnd.kafka.v2+json",
    "application/vnd.kafka.json.v2+json",
    "application/vnd.kafka.avro.v2+json",
    "application/x-ndjson",
    "text/event-stream",
    "image/png",
)
"""What clients of records accept."""


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Change a request that is about to be sent."""
    operation = case.operation.definition.raw.get("operationId", "")
    for name, value in list((case.path_parameters or {}).items()):
        known = _name_in(case.path) if name == "name" else _KNOWN.get(name)
        is_replaced = _chance(name, value, case) % 5 != 0  # Four of five, and always the same ones.
        if known is not None and (operation, name) not in _SPARED and is_replaced:
            case.path_parameters[name] = known
    _hurry(case)
    if case.method == "GET" and case.path.endswith("/records"):
        case.headers["accept"] = _ACCEPTED[_chance("accept", None, case) % len(_ACCEPTED)]


def _chance(name: str, value: object, case: schemathesis.Case[Any]) -> int:
    return crc32(repr((name, value, case.query, case.body)).encode())


def _name_in(path: str) -> str:
    """What `{name}` stands for: an instance, or a config of topics or brokers."""
    if "/instances/" in path:
        return "reader-1"
    return "retention.ms" if "/topics/" in path else "log.retention.ms"


def _hurry(case: schemathesis.Case[Any]) -> None:
    """Streams end with what is there, and nothing is waited for."""
    if not case.path.endswith("/records") or case.method != "GET":
        return
    query = case.query
    if "/instances/" not in case.path:
        query["until"] = "end"
    for name in ("timeout", "timeout_ms"):
        if name in query:
            query[name] = 10
