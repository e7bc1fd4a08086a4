"""The OpenAPI document: what the framework derives from the routes, plus what the layers around them add."""

import json
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
_REQUIRED = "UNKNOWN"
"""The default of required parameters: the routes report a missing one themselves, with API v3's error."""
_V2 = V2[0].decode()
_PLACEHOLDER_STATUS = "299"
"""Declares models that only the schemas of streams refer to; removed from the document."""
_REFERENCED_ONLY: tuple[type[BaseModel], ...] = (ErrorBody, *BODIES.values())
"""Models that the framework does not see, because the document only refers to them by name."""
_FRAMEWORK_ONLY = ("HTTPValidationError", "ValidationError")
_POLL = "/instances/{name}/records"
_RECORDS = tuple(media_type.decode() for media_type in EMBEDDED)
_MAX_OFFSET = 2**63 - 2
_STREAMS = {NDJSON.decode(), SERVER_SENT_EVENTS.decode()}
_EVERYWHERE = (406, 500, 503)
_WITH_BODY = (408, 413, 415)

TAGS = {
    "v2 produce": "Write records in binary, JSON, Avro, JSON Schema or Protobuf, according to the media type.",
    "v2 consumers": "Consumer instances: members of a consumer group that the proxy runs for its clients.",
    "v2 records": "Read records of a partition or a topic without an instance, as pages or as live streams.",
    "v2 topics": "Brokers, topics and partitions.",
    "v3 clusters": "The cluster behind this proxy; its id is part of all other paths.",
    "v3 brokers": "The brokers of the cluster.",
    "v3 topics": "Topics: list, create, extend and delete them.",
    "v3 partitions": "Partitions, their replicas, offsets and reassignments.",
    "v3 configs": "Configs of topics, of brokers and of the whole cluster.",
    "v3 records": "Write records one by one, as a stream or in batches; read them as pages or as live streams.",
    "v3 consumer groups": "Consumer groups with their members, assignments and lag.",
    "v3 acls": "Access control lists, in clusters that have an authorizer.",
    "operation": "For operators of the proxy.",
}
"""Descriptions of the groups of operations, in the order of the document."""


def describe(app: FastAPI) -> None:
    """Let an app serve the completed document; call it when all routes have been added."""
    generate, lock = app.openapi, Lock()
    completed = cache(lambda: _complete(generate()))
    rendered = cache(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())

    def openapi() -> Document:
        with lock:
            return completed()

    def serve(_: Request) -> Response:
        return Response(rendered(), media_type=_JSON)

    app.openapi = openapi  # type: ignore[method-assign]  # the framework's own advice
    # Generating the document takes most of a second: replace the framework's async route, which would block the event
    # loop meanwhile, with one that runs on a thread.
    assert app.openapi_url is not None
    (on_loop,) = (route for route in app.routes if getattr(route, "path", None) == app.openapi_url)
    app.routes.remove(on_loop)
    app.add_route(app.openapi_url, serve, include_in_schema=False)


def _complete(document: Document) -> Document:
    used = set()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            used.update(operation["tags"])
            operation["summary"] = _sentence(operation["summary"])
            _complete_parameters(operation)
            _complete_body(path, operation)
            _complete_responses(path, operation)
    _round_bounds(document)
    document["info"] |= {"version": version_of("caudal"), "license": _LICENSE}
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    document["servers"] = [{"url": "/", "description": "This proxy."}]
    schemas = document["components"]["schemas"]
    for name in _FRAMEWORK_ONLY:
        schemas.pop(name, None)
    _, known = models_json_schema([(model, "validation") for model in _REFERENCED_ONLY], ref_template=_SCHEMA)
    document["components"]["schemas"] = {**known["$defs"], **schemas}
    return document


def _round_bounds(part: object) -> None:
    """Make bounds integers again: the framework writes 100 as 100.0, and rounds the greatest offset up."""
    if isinstance(part, dict):
        for bound in ("minimum", "maximum"):
            if isinstance(part.get(bound), float):
                part[bound] = min(int(part[bound]), _MAX_OFFSET)
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inner:
        _round_bounds(one)


def _sentence(title: str) -> str:
    """Undo the title case that the framework gives to function names: `List Acls Of Topic`."""
    first, *others = title.split()
    return " ".join([first, *(word.lower() for word in others)]).replace("acl", "ACL")


def _complete_parameters(operation: Document) -> None:
    """Remove null, which stands for a missing parameter in routes: a client cannot send it in a URL."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            del schema["anyOf"]
            schema = parameter["schema"] = {**choices[0], **schema}
        if schema.get("default") == _REQUIRED:
            del schema["default"]
            parameter["required"] = True


def _complete_body(path: str, operation: Document) -> None:
    """Mark bodies as required for which routes check themselves that they are there, to answer with API v3's error."""
    if "requestBody" not in operation:
        return
    body: Document = operation["requestBody"]
    for media in body["content"].values():
        choices = media["schema"].get("anyOf", [])
        if _NULL in choices:
            media["schema"] = next(choice for choice in choices if choice != _NULL)
            body["required"] = is_v3(path.encode())
    if not is_v3(path.encode()):
        _use_v2_media_type(body["content"])


def _complete_responses(path: str, operation: Document) -> None:
    responses: Document = operation["responses"]
    responses.pop(_PLACEHOLDER_STATUS, None)
    # The framework's own 422 is never sent: invalid requests are answered with 400.
    declared = responses.get("422", {}).get("content", {}).values()
    if any(media.get("schema", {}).get("$ref", "").endswith(f"/{_FRAMEWORK_ONLY[0]}") for media in declared):
        del responses["422"]
    if operation["tags"] == ["operation"]:
        return
    # Errors that the layers around an operation answer with, whatever it does.
    of_path = (404,) if "{" in path else ()
    of_body = _WITH_BODY if "requestBody" in operation else ()
    reference = {"$ref": _SCHEMA.format(model=ErrorBody.__name__)}
    for status, failure in errors(*_EVERYWHERE, *of_path, *of_body).items():
        described = {key: value for key, value in failure.items() if key != "model"}
        responses.setdefault(str(status), {**described, "content": {_JSON: {"schema": reference}}})
    for status, response in responses.items():
        content = response.get("content", {})
        _complete_media(content)
        if path.endswith(_POLL) and status >= "400":
            response["content"] = dict.fromkeys((_JSON, _V2, *_RECORDS), next(iter(content.values())))
        elif not is_v3(path.encode()) and not path.endswith("/records"):
            _use_v2_media_type(content)
    operation["responses"] = dict(sorted(responses.items()))


def _complete_media(content: Document) -> None:
    """Give all media types the schema: the framework gives it to one, and adds JSON even if the route has none."""
    if len(content) > 1 and content.get(_JSON) == {"schema": {}}:
        del content[_JSON]
    known: Document = next((media["schema"] for media in content.values() if media.get("schema")), {})
    for media in content.values():
        media.setdefault("schema", known)
    for stream in sorted(_STREAMS & set(content)):  # Last, since generated clients use the first one.
        content[stream] = content.pop(stream)


def _use_v2_media_type(content: Document) -> None:
    """Replace JSON, which is all the framework knows, with the media type of API v2."""
    if _JSON in content:
        content[_V2] = content.pop(_JSON)
