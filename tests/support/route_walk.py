"""Every route of an HTTP service, asked with one login after the other, as its OpenAPI document describes it.

The routes, their parameters and bodies come from the document, so that a route that is added later is walked, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx2

_ORDER: Final = ("get", "head", "post", "put", "patch", "delete")
"""What only reads comes first, and what deletes last: then there is something to read."""
_PLACEHOLDER: Final = re.compile(r"{([^}]+)}")
_STREAMS: Final = ("text/event-stream", "application/x-ndjson")
_DEPTH_MAX: Final = 8

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A path and a method, and the request that the document's examples make of it."""

    name: str
    """Its operation id."""
    method: str
    path: str
    """With its parameters filled in."""
    template: str
    """With their names."""
    needs_login: bool
    query: Mapping[str, str] = field(default_factory=dict)
    media_type: str = ""
    body: Any = None

    def ask(self, client: httpx2.Client) -> httpx2.Response:
        """Send the request. Of a stream only the beginning is read, which is what it says to a caller."""
        headers = {"content-type": self.media_type} if self.media_type else {}
        json = self.body if self.media_type else None
        request = client.build_request(self.method, self.path, params=self.query, json=json, headers=headers)
        answer = client.send(request, stream=True)
        try:
            if not (answer.is_success and answer.headers.get("content-type", "").startswith(_STREAMS)):
                answer.read()
        finally:
            answer.close()
        return answer


def operations_of(
    document: Document,
    known: Mapping[str, str] | None = None,
    *,
    bodies: Mapping[str, Any] | None = None,
    queries: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Operation]:
    """All operations of a document, those that only read first.

    `known` are values of parameters by their names; without one, the example of the document is used. `bodies` and
    `queries` replace those of the document, by operation id.
    """
    found = [
        _operation(document, path, method, payload, known or {}, bodies or {}, queries or {})
        for path, methods in document["paths"].items()
        for method, payload in methods.items()
        if method in _ORDER
    ]
    return sorted(found, key=lambda one: (_ORDER.index(one.method.lower()), -one.template.count("/")))


def _operation(
    document: Document,
    path: str,
    method: str,
    payload: Document,
    known: Mapping[str, str],
    bodies: Mapping[str, Any],
    queries: Mapping[str, Mapping[str, str]],
) -> Operation:
    name = payload.get("operationId") or f"{method} {path}"
    parameters = list(payload.get("parameters", ()))
    values = {
        one["name"]: known.get(one["name"]) or str(_value(document, one))
        for one in parameters
        if one["in"] == "path" or one.get("required")
    }
    filled = _PLACEHOLDER.sub(lambda match: quote(values[match[1]], safe=""), path)
    query = {one["name"]: values[one["name"]] for one in parameters if one["in"] == "query" and one["name"] in values}
    content = payload.get("requestBody", {}).get("content", {})
    media_type, media = next(iter(content.items()), ("", {}))
    return Operation(
        name=name,
        method=method.upper(),
        path=filled,
        template=path,
        needs_login=payload.get("security") != [],
        query={**query, **queries.get(name, {})},
        media_type=media_type,
        body=bodies[name] if name in bodies else _value(document, media) if media_type else None,
    )


def _value(document: Document, described: Document) -> Any:
    """An example of a parameter or a body."""
    if "example" in described:
        return described["example"]
    for example in described.get("examples", {}).values():
        return _resolved(document, example).get("value")
    return sample(document, described.get("schema", {}))


def sample(document: Document, schema: Document, depth: int = 0) -> Any:
    """A value that fits a schema: its example, or else the least that is required."""
    schema = _resolved(document, schema)
    for key in ("const", "default"):
        if key in schema and schema[key] is not None:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    if depth > _DEPTH_MAX:
        return None
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(key, ()):
            if choice.get("type") != "null":
                return sample(document, choice, depth + 1)
    return _least(document, schema, depth)


def _least(document: Document, schema: Document, depth: int) -> Any:
    match schema.get("type"):
        case "object":
            known = schema.get("properties", {})
            wanted = [name for name in known if name in schema.get("required", ())]
            return {name: sample(document, known[name], depth + 1) for name in wanted}
        case "array":
            return [sample(document, schema.get("items", {}), depth + 1)]
        case "integer" | "number":
            return max(0, schema.get("minimum", 0))
        case "boolean":
            return False
        case _:
            return "x" * max(1, schema.get("minLength", 1))


def _resolved(document: Document, schema: Document) -> Document:
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


Judge = Callable[[httpx2.Response], bool]
"""Whether an answer is what a caller with this login must get."""


def status(*expected: int) -> Judge:
    """One of these statuses."""
    return lambda answer: answer.status_code in expected


def is_allowed(answer: httpx2.Response) -> bool:
    """The caller may do that, whatever comes of it."""
    return answer.status_code not in (401, 403, 429) and answer.status_code < 500


def walked(
    operations: Iterable[Operation],
    client: httpx2.Client,
    judge: Judge,
    exceptions: Mapping[str, Judge] | None = None,
) -> Iterator[str]:
    """Ask every operation, and tell those whose answer is not right; `exceptions` are judged by their operation id.

    An exception for an operation that does not exist is told, too.
    """
    left = dict(exceptions or {})
    for one in operations:
        answer = one.ask(client)
        if not left.pop(one.name, judge)(answer):
            text = answer.text[:300] if answer.is_stream_consumed else "a stream"
            yield f"{one.name}: {one.method} {one.path} was answered with {answer.status_code} {text}"
    yield from (f"{name}: there is no such operation" for name in left)
