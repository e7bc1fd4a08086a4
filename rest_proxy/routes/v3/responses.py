"""What the routes of API v3 share: their options, and responses."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.resources import ResourceCollection
from rest_proxy.routes.services import CheckCluster

BODY_ERRORS = (404, 413, 415, 422)
"""The errors of routes with a body."""


def reads(model: type[BaseModel], operation_id: str) -> dict[str, Any]:
    """Options for routes that return a model."""
    return {"response_model": model, "responses": errors(404), "operation_id": operation_id}


def writes(
    operation_id: str, *statuses: int, others: Mapping[int, dict[str, Any]] = MappingProxyType({})
) -> dict[str, Any]:
    """Options for routes that change something and return no body; `statuses` are their errors."""
    return {
        "status_code": 204,
        "response_class": Response,
        "responses": {**errors(*statuses), **others},
        "dependencies": [CheckCluster],
        "operation_id": operation_id,
    }


def json_response(model: BaseModel, *, status: int = 200) -> Response:
    """A JSON response, encoded on the calling thread: long ones would block the event loop."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")


def collection_response(collection: ResourceCollection, data: Iterable[BaseModel]) -> Response:
    """A collection that may be very long, encoded item by item, so that other threads get their turn."""
    before, after = collection.model_dump_json().split('"data":[]', 1)
    items = ",".join(item.model_dump_json() for item in data)
    return Response(f'{before}"data":[{items}]{after}', media_type="application/json")


def missing_body() -> ProxyError:
    """The error for a request that needs a body and has none."""
    return ProxyError(42206, "Payload error. Null input provided. Data is required.")
