"""How routes answer: models and lists as JSON, schema texts as they are."""

from collections.abc import Sequence

import msgspec
from fastapi import Response
from pydantic import BaseModel

from schema_registry.models import Model

JSON = "application/json"
"""`MediaTypes` replaces it with the type that the client asked for."""


def told(model: Model, *, etag: str | None = None) -> Response:
    """One thing."""
    return Response(model.to_json(), media_type=JSON, headers={"etag": f'"{etag}"'} if etag else None)


def listed(things: Sequence[Model] | Sequence[str] | Sequence[int]) -> Response:
    """Several things."""
    plain = [
        thing.model_dump(exclude_none=True, mode="json") if isinstance(thing, BaseModel) else thing for thing in things
    ]
    return Response(msgspec.json.encode(plain), media_type=JSON)


def number(value: int) -> Response:
    """A number alone."""
    return Response(str(value), media_type=JSON)


def schema_text(text: str | None) -> Response:
    """A schema without anything around it."""
    return Response(text or "", media_type=JSON)
