"""How failures are told: `{"error_code", "message"}`, as clients of Kafka's HTTP services expect it."""

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
    """What an error of a service tells: the HTTP status, the code in the body, and the words."""

    status: int
    code: int
    message: str
    retry_after_seconds: int | None
    """When the same request may succeed; such an error may also have no such attribute."""


def tell_errors(
    app: FastAPI,
    error_type: type[Exception],
    *,
    told_as: Mapping[int, int] = MappingProxyType({}),
    missing_body_status: int = 400,
) -> None:
    """Let an app tell every failure in the envelope; `told_as` gives codes that are to be seen under another number.

    `missing_body_status` answers requests that need a body, and come with none or `null`.
    """

    async def answer_service_error(_: Request, error: Exception) -> Response:
        told: ServiceError = error  # type: ignore[assignment]  # registered for error_type only, which has these three
        answer = envelope(told.status, told_as.get(told.code, told.code), told.message)
        if seconds := getattr(told, "retry_after_seconds", None):
            answer.headers["retry-after"] = str(seconds)
        return answer

    async def answer_wrong_request(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _wrong_request(error.errors(), missing_body_status)

    app.add_exception_handler(error_type, answer_service_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, answer_wrong_request)
    app.add_exception_handler(Exception, _answer_bug)


def envelope(status: int, code: int, message: str) -> Response:
    """A failure as clients of Kafka's HTTP services expect it."""
    body = msgspec.json.encode({"error_code": code, "message": message})
    return Response(body, status_code=status, media_type="application/json")


def generic(status: int) -> Response:
    """A failure that needs no words of its own, such as `HTTP 404 Not Found`."""
    return envelope(status, status, f"HTTP {status} {HTTPStatus(status).phrase}")


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_plain = error.detail == HTTPStatus(error.status_code).phrase
    answer = generic(error.status_code) if is_plain else envelope(error.status_code, error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["allow"] = _allowed(request)
    return answer


def _allowed(request: Request) -> str:
    """Every method that the path has: the framework knows but those of the first route that it finds."""
    asked = ({**request.scope, "method": method} for method in _METHODS)
    routes = request.app.routes
    return ", ".join(
        scope["method"] for scope in asked if any(route.matches(scope)[0] is Match.FULL for route in routes)
    )


def _wrong_request(problems: Sequence[dict[str, Any]], missing_body_status: int) -> Response:
    """A path that cannot be meant does not exist; anything else is told with its place, value and reason."""
    if any(problem["loc"][0] == "path" for problem in problems):
        return generic(404)
    if any(problem["loc"] == ("body",) and problem["input"] is None for problem in problems):
        return envelope(missing_body_status, missing_body_status, "The request needs a body")
    told = [_told(problem) for problem in problems[:_MAX_PROBLEMS]]
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    return envelope(400, 400, "; ".join([*told, *more]))


def _told(problem: dict[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"The body is not valid JSON: {problem.get('ctx', {}).get('error', problem['msg'])}"
    kind, *place = problem["loc"]
    where = ".".join(_shortened(part) for part in place) or "body"
    given = "" if problem["type"] == "missing" else f" {_quoted(problem.get('input'))}"
    return f"{'Parameter' if kind == 'query' else 'Body'} {where}{given}: {problem['msg']}"


def _quoted(value: object) -> str:
    """A value that is wrong, if it is short enough to be told."""
    return f"of {len(value)} entries" if isinstance(value, dict | list) and value else _shortened(repr(value))


def _shortened(part: object) -> str:
    # Half a surrogate pair, which JSON can say and UTF-8 cannot, is told as a question mark.
    text = str(part).encode(errors="replace").decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


async def _answer_bug(_: Request, __: Exception) -> Response:
    # The server logs the exception with its traceback; a client learns only that it is not to blame.
    return envelope(500, 500, "HTTP 500 Internal Server Error: a fault of this service, see its log")
