"""Query parameters and headers of produce requests, the same in both APIs."""

from typing import Annotated, Literal

from fastapi import Query, Request
from starlette.exceptions import HTTPException

from rest_proxy.errors import ProxyError
from rest_proxy.produce.producers import STRONGEST, Guarantees

Acks = Annotated[
    Literal["all", "-1", "1", "0"],
    Query(description="Which replicas must have a record before it is acknowledged: all in sync, the leader, none."),
]
Idempotence = Annotated[
    bool | None,
    Query(description="Whether each record is written exactly once; true by default unless `acks` is less than all."),
]


def requested_guarantees(request: Request) -> Guarantees:
    """The guarantees in the query; raises ProxyError."""
    if not request.scope["query_string"]:
        return STRONGEST
    query = request.query_params
    return Guarantees.parse(query.get("acks"), query.get("idempotence"))


def check_content_encoding(headers: dict[bytes, bytes]) -> None:
    """Refuse compressed bodies."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ProxyError(415, "Content encodings are not supported: send the body uncompressed")


def body_error(error: HTTPException) -> ProxyError:
    """Why a body could not be read to its end."""
    seconds = (error.headers or {}).get("Retry-After")
    return ProxyError(error.status_code, error.detail, retry_after_seconds=int(seconds) if seconds else None)
