"""Dead letters: looked at, and given to their sinks again."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute

from connect.rest.answers import ConnectorName, json_response
from connect.rest.dead_letter_models import RedriveBody
from connect.rest.models import errors
from connect.rest.views import view
from connect.runtime.redrive.box import DeadLetterBox
from connect.runtime.redrive.pages import LetterPage, Redriven

Limit = Annotated[int, Query(ge=1, le=1000, description="Most dead letters in the answer.")]
Partition = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only those of this partition.")]
Offset = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Only those from this offset on.")]
Stage = Annotated[str | None, Query(description="Only those that failed at this stage.", examples=["VALUE_CONVERTER"])]
Exception_ = Annotated[
    str | None,
    Query(alias="exception", description="Only those that failed with this: its whole name, or the last part."),
]


def router(dead_letters: DeadLetterBox, *, route_class: type[APIRoute]) -> APIRouter:
    """The routes, answering for one worker."""
    routes = APIRouter(prefix="/connectors/{connector}/dlq", tags=["dead letters"], route_class=route_class)

    @routes.get("", response_model=view(LetterPage), responses=errors(404), operation_id="listDeadLetters")
    def list_dead_letters(
        connector: ConnectorName,
        *,
        limit: Limit = 100,
        partition: Partition = None,
        offset: Offset = None,
        stage: Stage = None,
        exception: Exception_ = None,
    ) -> Response:
        """The records that a sink could not write, and why."""
        page = dead_letters.page(
            connector, limit=limit, partition=partition, offset=offset, stage=stage, exception=exception
        )
        return json_response(page)

    @routes.post("/redrive", response_model=view(Redriven), responses=errors(404, 409), operation_id="redrive")
    def redrive(connector: ConnectorName, body: RedriveBody) -> Response:
        """Give dead letters to their sink again, once what made them fail is repaired."""
        redriven = dead_letters.redrive(
            connector, body.selection.chosen(), max_records=body.max_records, dry_run=body.dry_run
        )
        return json_response(redriven)

    return routes
