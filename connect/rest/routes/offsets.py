"""Offsets of connectors, and the topics that they have used."""

from fastapi import APIRouter, Response
from fastapi.routing import APIRoute

from connect.rest.answers import ConnectorName, empty, json_response
from connect.rest.models import MessageView, OffsetsBody, TopicsView, errors
from connect.runtime.errors import BadRequest
from connect.runtime.leading.supervisor import Supervisor


def router(supervisor: Supervisor, *, route_class: type[APIRoute]) -> APIRouter:
    """The routes of one worker."""
    routes = APIRouter(prefix="/connectors/{connector}", tags=["offsets"], route_class=route_class)

    @routes.get("/offsets", response_model=OffsetsBody, responses=errors(404), operation_id="getOffsets")
    def get_offsets(connector: ConnectorName) -> Response:
        """The committed offsets of a connector."""
        return json_response({"offsets": list(supervisor.offsets(connector))})

    @routes.patch("/offsets", response_model=MessageView, responses=errors(404, 409), operation_id="alterOffsets")
    def alter_offsets(connector: ConnectorName, body: OffsetsBody) -> Response:
        """Change offsets of a stopped connector; a null offset resets that partition."""
        if not body.offsets:
            raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
        message = supervisor.alter_offsets(connector, [offset.model_dump() for offset in body.offsets])
        return json_response({"message": message})

    @routes.delete("/offsets", response_model=MessageView, responses=errors(404, 409), operation_id="resetOffsets")
    def reset_offsets(connector: ConnectorName) -> Response:
        """Reset all offsets of a stopped connector."""
        return json_response({"message": supervisor.reset_offsets(connector)})

    @routes.get(
        "/topics", response_model=dict[str, TopicsView], responses=errors(403, 404), operation_id="listConnectorTopics"
    )
    def list_connector_topics(connector: ConnectorName) -> Response:
        """The topics that a connector has used since it was created, or since the last reset."""
        return json_response({connector: {"topics": list(supervisor.topics(connector))}})

    @routes.put(
        "/topics/reset",
        status_code=202,
        response_class=Response,
        responses=errors(403, 404),
        operation_id="resetConnectorTopics",
    )
    def reset_connector_topics(connector: ConnectorName) -> Response:
        """Reset the topics that a connector has used."""
        supervisor.reset_topics(connector)
        return empty(202)

    return routes
