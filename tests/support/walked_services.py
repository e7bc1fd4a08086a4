"""What the routes of each service are asked about, so that every one of them can succeed: things that are there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from tests.support import registry_access_cases as cases
from tests.support.connect_access import right
from tests.support.furnished_proxy import FurnishedProxy
from tests.support.patience import eventually
from tests.support.route_walk import Judge, Operation, is_allowed, operations_of, status

_KEYS: Final = "POST /dek-registry/v1/keks"
_ACL: Final = {
    "resource_type": "TOPIC",
    "resource_name": "walked",
    "pattern_type": "LITERAL",
    "principal": "User:stranger",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The routes of a service, each with a request, and what else than a refusal or a success is right."""

    operations: list[Operation]
    to_a_stranger: Mapping[str, Judge]
    """Answers to a user without any rights that are neither 403 nor 404: they show nothing that is anyone's."""
    to_an_administrator: Mapping[str, Judge]
    """Answers to a user with all rights that are no success."""


def _registry(client: httpx2.Client, _folder: Path) -> Walk:
    for method, path, body in cases.PREPARED:
        # The registry has no secret of its own for keys.
        has_key = isinstance(body, dict) and "kmsType" in body
        client.request(method, path, json=body | {"kmsProps": {"secret": "of keys"}} if has_key else body)
    found = client.get("/subjects/orders/versions/latest").json()
    known = {**cases.PATHS, "schema_id": str(found["id"]), "guid": found["guid"]}
    document = client.get("/openapi.json").json()
    prepared = {route.name: cases.CASES.get(f"{route.method} {route.template}") for route in operations_of(document)}
    bodies = {name: case.body for name, case in prepared.items() if case is not None}
    operations = operations_of(document, known, bodies=bodies)
    names = {f"{route.method} {route.template}": route.name for route in operations}
    about_itself = ("GET /", "POST /", "GET /health", "GET /metrics", "GET /schemas/types")
    metadata = ("id", "version", "deployment")
    lists = ("GET /schemas", "GET /subjects", "GET /contexts")
    of_resources = ("GET /associations/resources/{namespace}/{name}", "GET /associations/resources/{resource_id}")
    return Walk(
        operations=operations,
        to_a_stranger={
            **{names[route]: status(200) for route in about_itself},
            **{names[f"GET /v1/metadata/{part}"]: status(200) for part in metadata},
            **{names[route]: _is_empty for route in (*lists, *of_resources)},
            names["POST /associations:batchGet"]: lambda answer: answer.is_success and "orders" not in answer.text,
        },
        to_an_administrator={
            # What is there already is not made again, and there is no such context.
            **{
                names[route]: status(409)
                for route in (_KEYS, f"{_KEYS}/{{name}}/deks", f"{_KEYS}/{{name}}/deks/{{subject}}")
            },
            names["DELETE /contexts/{context}"]: status(404),
        },
    )


def _rest_proxy(client: httpx2.Client, _folder: Path) -> Walk:
    furnished = FurnishedProxy(client)
    furnished.furnish()
    operations = operations_of(
        furnished.document(),
        furnished.known(),
        bodies={"createConsumerInstanceV2": {"name": "another"}},
        queries={"readRecordsV2": {"offset": "0"}, "deleteKafkaAcls": _ACL},
    )
    return Walk(
        operations=operations,
        to_a_stranger={
            **dict.fromkeys(_PROXY_OPEN, status(200)),
            **dict.fromkeys(_PROXY_LISTS, _is_empty),
            **dict.fromkeys(("produceRecord", "produceRecordBatch"), has_denied_records),
        },
        to_an_administrator={
            # Nothing is being moved, nothing was set, and the topic exists.
            **dict.fromkeys(_PROXY_ABSENT, is_allowed),
            "assignPartitionsV2": status(409),  # it has subscribed
        },
    )


_PROXY_OPEN: Final = (
    *("getHealth", "getMetrics", "getRootV2", "postRootV2"),
    # Kafka tells every user where its brokers are; a consumer may be made, and has to ask the cluster for everything.
    *("listBrokersV2", "listKafkaClusters", "getKafkaCluster", "listKafkaBrokers", "getKafkaBroker"),
    "createConsumerInstanceV2",
)
_PROXY_LISTS: Final = (
    *("listTopicsV2", "listKafkaTopics", "listKafkaConfigsOfTopics", "listKafkaConsumerGroups"),
    "listKafkaReplicasOfBroker",
)
_PROXY_ABSENT: Final = (
    *("getKafkaReassignment", "getKafkaClusterConfig", "listKafkaDefaultTopicConfigs", "createKafkaTopic"),
)


def _connect(client: httpx2.Client, folder: Path) -> Walk:
    dead = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "orders-dead"}
    config = {"connector.class": "FileStreamSink", "topics": "orders", "file": str(folder / "orders.txt"), **dead}
    created = client.post("/connectors", json={"name": "orders", "config": config})
    assert created.is_success, created.text
    eventually(lambda: client.get("/connectors/orders/status").json().get("tasks"))
    rules = [right("READ", who="User:stranger")]
    operations = operations_of(
        client.get("/openapi.json").json(),
        {"connector": "orders", "task": "0", "plugin": "FileStreamSink", "logger": "root"},
        bodies={
            "createConnector": {"name": "orders-new", "config": config},
            "putConnectorConfig": config,
            "validateConfig": {**config, "name": "orders"},
            "dryRun": {"config": {**config, "name": "orders"}, "records": [{"value": "x"}]},
            "redrive": {"selection": {"all": True}, "dry_run": True},
            "createAcls": rules,
            "deleteAcls": rules,
        },
    )
    return Walk(
        operations=operations,
        to_a_stranger={
            **dict.fromkeys(("getServer", "getHealth", "listPlugins", "getPluginConfig"), status(200)),
            "listConnectors": _is_empty,
        },
        to_an_administrator={"alterOffsets": status(400)},  # without any offsets
    )


def _is_empty(answer: httpx2.Response) -> bool:
    found = answer.json()
    return answer.status_code == 200 and not (found["data"] if isinstance(found, dict) else found)


def has_denied_records(answer: httpx2.Response) -> bool:
    """Whether the REST proxy says of each record that it was not allowed."""
    found = answer.json()
    outcomes = found.get("failures", [found])
    return answer.is_success and {outcome["error_code"] for outcome in outcomes} == {40301}


FURNISH: Final[Mapping[str, Callable[[httpx2.Client, Path], Walk]]] = {
    "registry": _registry,
    "rest-proxy": _rest_proxy,
    "connect": _connect,
}
"""Make what the routes of a service are asked about, as its administrator."""
