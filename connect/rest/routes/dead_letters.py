"""`/connectors/{connector}/dlq`: list dead letters, and redrive them through their connector."""

from typing import Annotated, Self

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, model_validator

from connect.rest.answers import ConnectorName, json_response
from connect.rest.models import errors
from connect.rest.views import view
from connect.runtime.redrive.box import DeadLetterBox
from connect.runtime.redrive.pages import LetterPage, LetterPlace, Redriven, Selection

_MAX_OFFSET = 2**63 - 1
_MAX_CHOSEN = 10_000
Limit = Annotated[int, Query(ge=1, le=1000, description="The most dead letters to return.")]
Partition = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only those of this partition.")]
Offset = Annotated[int | None, Query(ge=0, le=_MAX_OFFSET, description="Only those from this offset on.")]
Stage = Annotated[str | None, Query(description="Only those that failed at this stage.", examples=["VALUE_CONVERTER"])]
Exception_ = Annotated[
    str | None,
    Query(
        alias="exception", description="Only those that failed with this exception: its full name, or the last part."
    ),
]


class PlaceBody(BaseModel):
    """The position of a dead letter in its topic."""

    model_config = ConfigDict(extra="forbid")

    partition: int = Field(ge=0, le=2**31 - 1, description="The partition of the dead-letter topic.", examples=[0])
    offset: int = Field(ge=0, le=_MAX_OFFSET, description="The offset in it.", examples=[17])


class SelectionBody(BaseModel):
    """Selects dead letters: those that meet all conditions."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"stage": "VALUE_CONVERTER"}, {"all": True}]}
    )

    offsets: list[PlaceBody] = Field(
        default=[], max_length=_MAX_CHOSEN, description="The dead letters at these positions."
    )
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Those of this partition.")
    stage: str | None = Field(default=None, description="Those that failed at this stage.", examples=["TASK_PUT"])
    exception: str | None = Field(
        default=None, description="Those that failed with this exception: its full name, or the last part."
    )
    from_offset: int | None = Field(default=None, ge=0, le=_MAX_OFFSET, description="Those from this offset on.")
    to_offset: int | None = Field(
        default=None, ge=0, le=_MAX_OFFSET, description="Those up to and including this offset."
    )
    all: bool = Field(default=False, description="All of them; required when there is no other condition.")

    @model_validator(mode="after")
    def _require_condition(self) -> Self:
        narrowed = (self.partition, self.stage, self.exception, self.from_offset, self.to_offset)
        if not (self.all or self.offsets or any(part is not None for part in narrowed)):
            raise ValueError("select dead letters, or set all to true")
        return self

    def to_selection(self) -> Selection:
        """The selection for the worker."""
        return Selection(
            offsets=[LetterPlace(partition=place.partition, offset=place.offset) for place in self.offsets],
            partition=self.partition,
            stage=self.stage,
            exception=self.exception,
            from_offset=self.from_offset,
            to_offset=self.to_offset,
            is_all=self.all,
        )


class RedriveBody(BaseModel):
    """The dead letters to redrive."""

    model_config = ConfigDict(extra="forbid")

    selection: SelectionBody = Field(description="The dead letters to redrive.")
    max_records: int = Field(default=1000, ge=1, le=100_000, description="The most dead letters to redrive at once.")
    dry_run: bool = Field(default=False, description="Only return which dead letters would be redriven.")


def router(dead_letters: DeadLetterBox, *, route_class: type[APIRoute]) -> APIRouter:
    """The routes of one worker."""
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
        """The records that failed, and why."""
        page = dead_letters.page(
            connector, limit=limit, partition=partition, offset=offset, stage=stage, exception=exception
        )
        return json_response(page)

    @routes.post("/redrive", response_model=view(Redriven), responses=errors(404, 409), operation_id="redrive")
    def redrive(connector: ConnectorName, body: RedriveBody) -> Response:
        """Send dead letters through their connector again, once the cause of the failure is fixed."""
        redriven = dead_letters.redrive(
            connector, body.selection.to_selection(), max_records=body.max_records, dry_run=body.dry_run
        )
        return json_response(redriven)

    return routes
