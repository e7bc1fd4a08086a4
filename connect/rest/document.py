"""The OpenAPI document: what the framework writes of the routes, made whole."""

from collections.abc import Iterator
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
    "states": "How connectors and tasks fare: paused, resumed, stopped and restarted.",
    "offsets": "How far connectors are, and which topics they have used.",
    "dead letters": "Records that failed: looked at, and given to their sinks again.",
    "plugins": "Connectors, converters and transforms to choose from, and whether a configuration is right.",
    "loggers": "How much workers tell in their logs.",
    "worker": "This worker.",
    "operation": "For those who run the worker.",
}
"""What each group of operations is about, in the order in which they are shown."""


def describe(app: FastAPI) -> None:
    """Let an app serve the document as it is meant to be; to be called when all routes are there."""
    written = app.openapi
    completed = cache(lambda: _completed(written()))
    app.openapi = completed  # type: ignore[method-assign]  # the framework's own advice


def _completed(document: Document) -> Document:
    used = set()
    for operation in _operations(document):
        used.update(operation["tags"])
        operation["summary"] = _sentence(operation["summary"])
        _complete_answers(operation)
        _complete_parameters(operation)
    for name in _FRAMEWORK_ONLY:
        document.get("components", {}).get("schemas", {}).pop(name, None)
    document["info"] |= {"version": version("caudal"), "license": _LICENSE}
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    document["servers"] = [{"url": "/", "description": "This worker."}]
    return document


def _operations(document: Document) -> Iterator[Document]:
    for methods in document["paths"].values():
        yield from methods.values()


def _complete_answers(operation: Document) -> None:
    """What the layers around an operation answer with, whatever it does."""
    answers: Document = operation["responses"]
    answers.pop("422", None)
    if operation["tags"] != ["operation"]:
        for status, failure in errors(*(_WITH_BODY if "requestBody" in operation else ()), 503).items():
            content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
            answers.setdefault(str(status), {"description": failure["description"], "content": content})
    operation["responses"] = dict(sorted(answers.items()))


def _complete_parameters(operation: Document) -> None:
    """What is left out is null for a route; a client cannot send a null in an address."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            del schema["anyOf"]
            parameter["schema"] = {**choices[0], **schema}


def _sentence(title: str) -> str:
    """The framework makes titles of functions' names: `List Connector Topics`."""
    first, *others = title.split()
    return " ".join([first, *(word.lower() for word in others)])
