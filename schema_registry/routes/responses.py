"""The responses of the routes: models and lists as JSON, schema texts unchanged."""

from collections.abc import Sequence

import msgspec
from fastapi import Response
from pydantic import BaseModel

from schema_registry.models import Model

JSON = "application/json"
"""`MediaTypes` replaces it with the type that the client asked for."""


def json_response(model: Model, *, etag: str | None = None) -> Response:
    """A model as a JSON object."""
    return Response(model.to_json(), media_type=JSON, headers={"etag": f'"{etag}"'} if etag else None)


def list_response(items: Sequence[Model] | Sequence[str] | Sequence[int]) -> Response:
    """Models, texts or numbers as a JSON array."""
    plain = [item.model_dump(exclude_none=True, mode="json") if isinstance(item, BaseModel) else item for item in items]
    return Response(msgspec.json.encode(plain), media_type=JSON)


def number_response(value: int) -> Response:
    """A bare number."""
    return Response(str(value), media_type=JSON)


def text_response(text: str | None) -> Response:
    """The text of a schema, without an envelope."""
    return Response(text or "", media_type=JSON)
