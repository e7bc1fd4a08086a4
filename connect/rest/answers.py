"""Responses, encoded quickly, since a request may ask for hundreds of connectors."""

from typing import Annotated, Final

import msgspec
from fastapi import Path, Response

from core_broker.service.web.paths import Segment

_encoder: Final = msgspec.json.Encoder()

ConnectorName = Annotated[Segment, Path(description="The connector's name.", examples=["orders-to-file"])]
TaskNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="The task's number, from 0.", examples=[0])]


def json_response(body: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(_encoder.encode(body), status_code=status, media_type="application/json", headers=headers)


def empty(status: int) -> Response:
    """A response without a body."""
    return Response(status_code=status)
