"""Bodies of requests about dead letters."""

from typing import Self

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
