"""Bodies of requests about dead letters, and what the answers look like in the API's description."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connect.runtime.redrive.pages import LetterPlace, Selection

_MAX_OFFSET = 2**63 - 1
_MAX_CHOSEN = 10_000


class PlaceBody(BaseModel):
    """Where a dead letter lies in its topic."""

    model_config = ConfigDict(extra="forbid")

    partition: int = Field(ge=0, le=2**31 - 1, description="The partition of the dead-letter topic.", examples=[0])
    offset: int = Field(ge=0, le=_MAX_OFFSET, description="The offset in it.", examples=[17])


class SelectionBody(BaseModel):
    """Which dead letters are meant: those that fit everything that is given."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"stage": "VALUE_CONVERTER"}, {"all": True}]}
    )

    offsets: list[PlaceBody] = Field(default=[], max_length=_MAX_CHOSEN, description="These ones.")
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Those of this partition.")
    stage: str | None = Field(default=None, description="Those that failed at this stage.", examples=["TASK_PUT"])
    exception: str | None = Field(
        default=None, description="Those that failed with this: the whole name of the exception, or its last part."
    )
    from_offset: int | None = Field(default=None, ge=0, le=_MAX_OFFSET, description="Those from this offset on.")
    to_offset: int | None = Field(default=None, ge=0, le=_MAX_OFFSET, description="Those up to this offset, with it.")
    all: bool = Field(default=False, description="All of them; must be said when nothing else is.")

    @model_validator(mode="after")
    def _chooses(self) -> Self:
        narrowed = (self.partition, self.stage, self.exception, self.from_offset, self.to_offset)
        if not (self.all or self.offsets or any(part is not None for part in narrowed)):
            raise ValueError("say which dead letters are meant, or all: true")
        return self

    def chosen(self) -> Selection:
        """The same, for the worker."""
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
    """Which dead letters to give to the sink again."""

    model_config = ConfigDict(extra="forbid")

    selection: SelectionBody = Field(description="Which ones.")
    max_records: int = Field(default=1000, ge=1, le=100_000, description="Most that are given again at once.")
    dry_run: bool = Field(default=False, description="Only tell which ones it would be.")


class LetterErrorView(BaseModel):
    """Why a record failed; null where its headers do not tell."""

    stage: str | None = Field(description="Where on its way.", examples=["VALUE_CONVERTER"])
    class_: str | None = Field(alias="class", description="The class that was at work.")
    exception: str | None = Field(description="The name of the error.")
    message: str | None = Field(description="What it says.")
    stacktrace: str | None = Field(description="Where it was raised.")
    topic: str | None = Field(description="The topic that the record was read from.")
    partition: int | None = Field(description="Its partition there.")
    offset: int | None = Field(description="Its offset there.")
    connector: str | None = Field(description="The connector that failed with it.")
    task: int | None = Field(description="The task that failed with it.")


class LetterViewBody(BaseModel):
    """A dead letter."""

    partition: int = Field(description="Its partition in the dead-letter topic.")
    offset: int = Field(description="Its offset there.")
    timestamp: int | None = Field(description="When it was written, in milliseconds since 1970.")
    key: str | None = Field(description="The record's key.")
    value: str | None = Field(description="The record's value.")
    headers: list[tuple[str, str | None]] = Field(
        description="The record's own headers.", examples=[[["trace-id", "4bf92f35"]]]
    )
    error: LetterErrorView = Field(description="Why it failed.")
    redriven: bool = Field(description="Whether it was given to the sink again.")
    redrive_count: int = Field(description="How often the record had come back before it failed this time.")
    encoding: Literal["utf-8", "base64"] = Field(description="Of key and value: base64 when they are no text.")


class LetterPageView(BaseModel):
    """Some dead letters of a connector."""

    topic: str = Field(description="The dead-letter topic.", examples=["orders-dead"])
    records: list[LetterViewBody] = Field(description="The dead letters.")


class RedrivenView(BaseModel):
    """What was given again, or would be."""

    redriven: int = Field(description="How many.")
    skipped: int = Field(description="How many were meant, but given again before, or too often.")
    records: list[PlaceBody] = Field(description="Which ones.")
    failed: list[str] = Field(description="Those that could not be given again, and why.")
