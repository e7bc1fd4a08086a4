"""Error responses: `{"error_code", "message"}`, as clients of Kafka's HTTP services expect them."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

_MAX_PROBLEMS = 10
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class ServiceError(Protocol):
    """What the error class of a service must have: the HTTP status, and the code and message for the body."""

    status: int
    code: int
    message: str
    retry_after_seconds: int | None
    """When the client may retry; an error class may lack this attribute."""


def add_error_handlers(
    app: FastAPI,
    error_type: type[Exception],
    *,
    code_aliases: Mapping[int, int] = MappingProxyType({}),
    missing_body_status: int = 400,
) -> None:
    """Let an app answer every failure with the envelope; `code_aliases` replaces error codes in responses.

    `missing_body_status` is for requests that need a body and come with none or `null`.
    """

    async def answer_service_error(_: Request, error: Exception) -> Response:
        failure: ServiceError = error  # type: ignore[assignment]  # registered for error_type only, which has these
        code = code_aliases.get(failure.code, failure.code)
        retry_after = getattr(failure, "retry_after_seconds", None)
        return envelope(failure.status, code, failure.message, retry_after_seconds=retry_after)

    async def answer_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code
        is_plain = error.detail == HTTPStatus(status).phrase
        answer = status_error(status) if is_plain else envelope(status, status, error.detail)
        answer.headers.update(error.headers or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            # Every method of the path: the framework knows only those of the first matching route.
            scopes = ({**request.scope, "method": method} for method in _METHODS)
            routes = request.app.routes
            answer.headers["allow"] = ", ".join(
                scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)
            )
        return answer

    async def answer_invalid_request(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid_request(error.errors(), missing_body_status)

    async def answer_bug(_: Request, __: Exception) -> Response:
        # The server logs the exception with its traceback; a client learns only that it is not to blame.
        return envelope(500, 500, "HTTP 500 Internal Server Error: a bug in this service, see its log")

    app.add_exception_handler(error_type, answer_service_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(RequestValidationError, answer_invalid_request)
    app.add_exception_handler(Exception, answer_bug)


def envelope(status: int, code: int, message: str, *, retry_after_seconds: int | None = None) -> Response:
    """An error response as clients of Kafka's HTTP services expect it."""
    body = msgspec.json.encode({"error_code": code, "message": message})
    headers = {"retry-after": str(retry_after_seconds)} if retry_after_seconds else None
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def status_error(status: int) -> Response:
    """An error response that says no more than its status, such as `HTTP 404 Not Found`."""
    return envelope(status, status, f"HTTP {status} {HTTPStatus(status).phrase}")


def _invalid_request(problems: Sequence[dict[str, Any]], missing_body_status: int) -> Response:
    """An invalid path is 404, since no such resource can exist; anything else is 400 with place, value and reason."""
    if any(problem["loc"][0] == "path" for problem in problems):
        return status_error(404)
    if any(problem["loc"] == ("body",) and problem["input"] is None for problem in problems):
        return envelope(missing_body_status, missing_body_status, "The request needs a body")
    described = [_describe(problem) for problem in problems[:_MAX_PROBLEMS]]
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    return envelope(400, 400, "; ".join([*described, *more]))


def _describe(problem: dict[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"The body is not valid JSON: {problem.get('ctx', {}).get('error', problem['msg'])}"
    kind, *path = problem["loc"]
    where = ".".join(_shorten(part) for part in path) or "body"
    value = problem.get("input")
    if problem["type"] == "missing":
        shown = ""
    elif isinstance(value, dict | list) and value:
        shown = f" of {len(value)} entries"
    else:
        shown = f" {_shorten(repr(value))}"
    return f"{'Parameter' if kind == 'query' else 'Body'} {where}{shown}: {problem['msg']}"


def _shorten(part: object) -> str:
    # JSON can contain an unpaired surrogate, which UTF-8 cannot: it becomes a question mark.
    text = str(part).encode(errors="replace").decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
