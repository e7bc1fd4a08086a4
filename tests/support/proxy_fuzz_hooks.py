"""What schemathesis, which makes requests up by the document, must know of a proxy to get past its doors.

Loaded by its command (SCHEMATHESIS_HOOKS). Most requests name what exists, and none of them waits for long.
"""

import os
from typing import Any, Final
from zlib import crc32

import schemathesis

_KNOWN: Final = {
    "cluster_id": os.environ.get("PROXY_CLUSTER_ID", ""),
    "topic": "orders",
    "topic_name": "orders",
    "partition": 0,
    "partition_id": 0,
    "broker_id": 1,
    "group": "billing",
    "consumer_group_id": "billing",
}
_SPARED: Final = {"deleteKafkaTopic": "topic_name", "updateKafkaPartitions": "topic_name"}
"""What others need and these would take away or change for good, by operation."""
_INSTANCE: Final = "reader-1"


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Change a request that is about to be sent."""
    operation = case.operation.definition.raw.get("operationId", "")
    parameters = case.path_parameters
    if parameters:
        for name, value in list(parameters.items()):
            if name in _KNOWN and _SPARED.get(operation) != name and _is_replaced(value):
                parameters[name] = _KNOWN[name]
        if "/instances/" in case.path and case.method != "DELETE" and _is_replaced(parameters.get("name")):
            parameters["name"] = _INSTANCE
    _hurry(case)


def _is_replaced(value: object) -> bool:
    """Four of five, and always the same ones."""
    return crc32(repr(value).encode()) % 5 != 0


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
