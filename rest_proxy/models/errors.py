"""The body of every error, and the error responses of operations."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ErrorBody(BaseModel):
    """Why a request failed."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 40401, "message": "Topic orders not found."}]}
    )

    error_code: int = Field(description="The error code; its first three digits are the HTTP status.")
    message: str = Field(description="The error message.")


_MEANINGS = {
    400: "The request is invalid, or the cluster refuses it.",
    401: "The cluster does not know this user.",
    403: "The cluster does not allow this.",
    404: "The resource does not exist.",
    406: "The response is not available in a media type that the client accepts.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with the current state.",
    413: "The body is too large.",
    415: "The media type of the body is not supported.",
    422: "The request has invalid or missing values.",
    429: "Too much at the same time; `Retry-After` says when to try again.",
    500: "The cluster or the proxy failed; with `Retry-After`, the same request may succeed later.",
    503: "The cluster does not answer; `Retry-After` says when to try again.",
}


_RETRY_AFTER = {
    "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}}}
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation, for `responses=`; 400, 403 and 503 are possible everywhere."""
    meanings: Mapping[int, str] = {status: _MEANINGS[status] for status in sorted({400, 403, 503, *statuses})}
    return {
        status: {"model": ErrorBody, "description": meaning, **(_RETRY_AFTER if "`Retry-After`" in meaning else {})}
        for status, meaning in meanings.items()
    }
