"""The OpenAPI document: what the framework writes of the routes, and what it cannot know of the layers around them."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version as version_of
from threading import Lock
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rest_proxy.consume.stream_frames import NDJSON, SERVER_SENT_EVENTS
from rest_proxy.models.errors import ErrorBody, errors
from rest_proxy.models.v2.produce import BODIES
from rest_proxy.routes.media_types import EMBEDDED, JSON, V2, is_v3

Document = dict[str, Any]

_JSON = JSON.decode()
_LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
_SCHEMA = "#/components/schemas/{model}"
_NULL = {"type": "null"}
_NEEDED = "UNKNOWN"
"""The default of parameters that are needed: that they miss is told in API v3's words."""
_V2 = V2[0].decode()
_NEVER_ANSWERED = "299"
"""Makes models known that nothing but the schemas of streams refers to."""
_BY_NAME_ALONE: tuple[type[BaseModel], ...] = (ErrorBody, *BODIES.values())
"""Models that the framework does not see: nothing but a reference leads to them."""
_FRAMEWORK_ONLY = ("HTTPValidationError", "ValidationError")
_POLL = "/instances/{name}/records"
_RECORDS = tuple(media_type.decode() for media_type in EMBEDDED)
_MAX_OFFSET = 2**63 - 2
_STREAMS = {NDJSON.decode(), SERVER_SENT_EVENTS.decode()}
_EVERYWHERE = (406, 500, 503)
_WITH_BODY = (408, 413, 415)

TAGS = {
    "v2 produce": "Write records in binary, JSON, Avro, JSON Schema or Protobuf; the media type tells which.",
    "v2 consumers": "Consumer instances: members of a consumer group that the proxy keeps for its clients.",
    "v2 records": "Read records of a partition or a topic without an instance, as pages or as live streams.",
    "v2 topics": "Brokers, topics and partitions.",
    "v3 clusters": "The cluster behind this proxy; its id is part of all other paths.",
    "v3 brokers": "The brokers of the cluster.",
    "v3 topics": "Topics: listed, created, grown and deleted.",
    "v3 partitions": "Partitions, their replicas and offsets, and replicas on the move.",
    "v3 configs": "Configs of topics, of brokers and of the whole cluster.",
    "v3 records": "Write records one by one, as a stream or in batches; read them as pages or as live streams.",
    "v3 consumer groups": "Consumer groups with their members, assignments and lag.",
    "v3 acls": "Rules about who may do what, in clusters that have an authorizer.",
    "operation": "For those who run the proxy.",
}
"""What each group of operations is about, in the order in which they are shown."""


def describe(app: FastAPI) -> None:
    """Let an app serve the document as it is meant to be; to be called when all routes are there."""
    written, lock = app.openapi, Lock()
    completed = cache(lambda: _completed(written()))
    rendered = cache(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())

    def openapi() -> Document:
        with lock:
            return completed()

    def serve(_: Request) -> Response:
        return Response(rendered(), media_type=_JSON)

    app.openapi = openapi  # type: ignore[method-assign]  # the framework's own advice
    _serve_on_threads(app, serve)


def _serve_on_threads(app: FastAPI, serve: Callable[[Request], Response]) -> None:
    """Writing the document takes the better part of a second, in which the event loop has others to serve."""
    assert app.openapi_url is not None
    (on_loop,) = (route for route in app.routes if getattr(route, "path", None) == app.openapi_url)
    app.routes.remove(on_loop)
    app.add_route(app.openapi_url, serve, include_in_schema=False)


def _completed(document: Document) -> Document:
    used = set()
    for path, operation in _operations(document):
        used.update(operation["tags"])
        operation["summary"] = _sentence(operation["summary"])
        _complete_parameters(operation)
        _complete_body(path, operation)
        _complete_answers(path, operation)
    _write_bounds_whole(document)
    document["info"] |= {"version": version_of("caudal"), "license": _LICENSE}
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    document["servers"] = [{"url": "/", "description": "This proxy."}]
    schemas = document["components"]["schemas"]
    for name in _FRAMEWORK_ONLY:
        schemas.pop(name, None)
    _, known = models_json_schema([(model, "validation") for model in _BY_NAME_ALONE], ref_template=_SCHEMA)
    document["components"]["schemas"] = {**known["$defs"], **schemas}
    return document


def _write_bounds_whole(part: object) -> None:
    """The framework writes 100 as 100.0, and the greatest offset as more than that."""
    if isinstance(part, dict):
        for bound in ("minimum", "maximum"):
            if isinstance(part.get(bound), float):
                part[bound] = min(int(part[bound]), _MAX_OFFSET)
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inner:
        _write_bounds_whole(one)


def _operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            yield path, operation


def _sentence(title: str) -> str:
    """The framework makes titles of functions' names: `List Acls Of Topic`."""
    first, *others = title.split()
    return " ".join([first, *(word.lower() for word in others)]).replace("acl", "ACL")


def _complete_parameters(operation: Document) -> None:
    """What is left out is null for a route; a client cannot send a null in an address."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            del schema["anyOf"]
            schema = parameter["schema"] = {**choices[0], **schema}
        if schema.get("default") == _NEEDED:
            del schema["default"]
            parameter["required"] = True


def _complete_body(path: str, operation: Document) -> None:
    """Bodies that routes miss by themselves, to tell it in API v3's words, are needed all the same."""
    if "requestBody" not in operation:
        return
    body: Document = operation["requestBody"]
    for media in body["content"].values():
        choices = media["schema"].get("anyOf", [])
        if _NULL in choices:
            media["schema"] = next(choice for choice in choices if choice != _NULL)
            body["required"] = is_v3(path.encode())
    if not is_v3(path.encode()):
        _rename(body["content"])


def _complete_answers(path: str, operation: Document) -> None:
    answers: Document = operation["responses"]
    answers.pop(_NEVER_ANSWERED, None)
    if _is_of_framework(answers.get("422", {})):
        del answers["422"]
    if operation["tags"] == ["operation"]:
        return
    for status, failure in errors(*_from_around(path, operation)).items():
        answers.setdefault(str(status), _referring(failure))
    for status, answer in answers.items():
        content = answer.get("content", {})
        _complete_media(content)
        if path.endswith(_POLL) and status >= "400":
            answer["content"] = dict.fromkeys((_JSON, _V2, *_RECORDS), next(iter(content.values())))
        elif not is_v3(path.encode()) and not path.endswith("/records"):
            _rename(content)
    operation["responses"] = dict(sorted(answers.items()))


def _complete_media(content: Document) -> None:
    """The framework gives the schema to one media type, and adds that one though it has none."""
    if len(content) > 1 and content.get(_JSON) == {"schema": {}}:
        del content[_JSON]
    known: Document = next((media["schema"] for media in content.values() if media.get("schema")), {})
    for media in content.values():
        media.setdefault("schema", known)
    for stream in sorted(_STREAMS & set(content)):  # Clients that are made from the document read the first one.
        content[stream] = content.pop(stream)


def _from_around(path: str, operation: Document) -> tuple[int, ...]:
    """The failures that layers around an operation answer with, whatever it does."""
    of_path = (404,) if "{" in path else ()
    return (*_EVERYWHERE, *of_path, *(_WITH_BODY if "requestBody" in operation else ()))


def _referring(failure: Document) -> Document:
    """What routes are told of a failure, as the document has it."""
    reference = {"$ref": _SCHEMA.format(model=ErrorBody.__name__)}
    told = {key: value for key, value in failure.items() if key != "model"}
    return {**told, "content": {_JSON: {"schema": reference}}}


def _is_of_framework(answer: Document) -> bool:
    schemas = [media.get("schema", {}) for media in answer.get("content", {}).values()]
    return any(schema.get("$ref", "").endswith(f"/{_FRAMEWORK_ONLY[0]}") for schema in schemas)


def _rename(content: Document) -> None:
    """Bodies of API v2 have a name of their own, which the framework does not know of."""
    if _JSON in content:
        content[_V2] = content.pop(_JSON)
