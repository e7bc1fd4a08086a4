"""The OpenAPI document: the framework's, completed."""

from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from connect.rest.models import ErrorBody, errors

Document = dict[str, Any]

_LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
_FRAMEWORK_ONLY = ("HTTPValidationError", "ValidationError")
_NULL = {"type": "null"}
_WITH_BODY = (408, 413, 415, 429)
TAGS = {
    "connectors": "Connectors and their configurations.",
    "states": "The states of connectors and tasks: pause, resume, stop and restart them.",
    "offsets": "Offsets of connectors, and the topics that they have used.",
    "dead letters": "Records that failed: list them, and send them through their connector again.",
    "plugins": "The available connectors, converters and transforms, and the validation of configurations.",
    "security": "Access rules: who may do what with which connectors.",
    "loggers": "The levels of the workers' loggers.",
    "worker": "This worker.",
    "operation": "For the operators of the worker.",
}
"""The groups of operations, in display order."""


def describe(app: FastAPI) -> None:
    """Let an app serve the completed document; call it when all routes are registered."""
    written = app.openapi
    completed = cache(lambda: _complete(written()))
    app.openapi = completed  # type: ignore[method-assign]  # the framework's own advice


def _complete(document: Document) -> Document:
    used = set()
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        used.update(operation["tags"])
        # FastAPI makes titles of functions' names: `List Connector Topics`.
        operation["summary"] = operation["summary"].capitalize()
        _complete_responses(operation)
        _complete_parameters(operation)
    for name in _FRAMEWORK_ONLY:
        document.get("components", {}).get("schemas", {}).pop(name, None)
    document["info"] |= {"version": version("caudal"), "license": _LICENSE}
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    document["servers"] = [{"url": "/", "description": "This worker."}]
    return document


def _complete_responses(operation: Document) -> None:
    """Add the responses of the layers around every operation."""
    responses: Document = operation["responses"]
    responses.pop("422", None)
    if operation["tags"] != ["operation"]:
        for status, failure in errors(*(_WITH_BODY if "requestBody" in operation else ()), 503).items():
            content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
            responses.setdefault(str(status), {"description": failure["description"], "content": content})
    operation["responses"] = dict(sorted(responses.items()))


def _complete_parameters(operation: Document) -> None:
    """A missing parameter is null for a route, but a client cannot send a null in a URL."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            del schema["anyOf"]
            parameter["schema"] = {**choices[0], **schema}
