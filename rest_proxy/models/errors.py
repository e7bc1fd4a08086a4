"""What every failure looks like, and the answers that operations may give beside success."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ErrorBody(BaseModel):
    """Why a request was not carried out."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 40401, "message": "Topic orders not found."}]}
    )

    error_code: int = Field(description="What went wrong; its first three digits are the HTTP status.")
    message: str = Field(description="The same in words.")


_MEANINGS = {
    400: "The request is wrong as it stands, or the cluster refuses it.",
    401: "The cluster does not know this user.",
    403: "The cluster does not allow this.",
    404: "What the path names does not exist.",
    406: "No media type that the client accepts can be answered.",
    408: "The body did not arrive in time.",
    409: "What is there already stands in the way.",
    413: "The body is too large.",
    415: "The media type of the body is not known here.",
    422: "The request is understood, and cannot be carried out with these values.",
    429: "More than is taken at a time; `Retry-After` says when to try again.",
    500: "The cluster, or the proxy itself, failed; with `Retry-After`: the same request may succeed later.",
    503: "The cluster does not answer; `Retry-After` says when to try again.",
}


_RETRY_AFTER = {
    "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}}}
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The failures of an operation, for `responses=`; every operation may find the cluster gone, and be refused."""
    told: Mapping[int, str] = {status: _MEANINGS[status] for status in sorted({400, 403, 503, *statuses})}
    return {
        status: {"model": ErrorBody, "description": meaning, **(_RETRY_AFTER if "`Retry-After`" in meaning else {})}
        for status, meaning in told.items()
    }
