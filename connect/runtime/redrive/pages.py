"""Dead letters as the REST API shows them, and selections of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class LetterError(msgspec.Struct, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """Why and where a record failed, from the headers of its dead letter; null where they are missing."""

    stage: Annotated[str | None, Meta(description="The stage at which it failed.", examples=["VALUE_CONVERTER"])] = None
    class_name: Annotated[str | None, Meta(description="The class that failed.")] = None
    exception: Annotated[str | None, Meta(description="The name of the exception.")] = None
    message: Annotated[str | None, Meta(description="Its message.")] = None
    stacktrace: Annotated[str | None, Meta(description="Its stack trace.")] = None
    topic: Annotated[str | None, Meta(description="The topic that the record was read from.")] = None
    partition: Annotated[int | None, Meta(description="Its partition there.")] = None
    offset: Annotated[int | None, Meta(description="Its offset there.")] = None
    connector: Annotated[str | None, Meta(description="The connector at which it failed.")] = None
    task: Annotated[int | None, Meta(description="The task at which it failed.")] = None


class LetterPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a dead letter in its topic."""

    partition: Annotated[int, Meta(description="The partition of the dead-letter topic.")]
    offset: Annotated[int, Meta(description="The offset in it.")]


class LetterView(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter: the failed record and the error. Bytes that are not text are in base64."""

    partition: Annotated[int, Meta(description="Its partition in the dead-letter topic.")]
    offset: Annotated[int, Meta(description="Its offset there.")]
    timestamp: Annotated[int | None, Meta(description="When it was written, in milliseconds since 1970.")]
    key: Annotated[str | None, Meta(description="The record's key.")]
    value: Annotated[str | None, Meta(description="The record's value.")]
    headers: Annotated[
        list[tuple[str, str | None]],
        Meta(description="The record's own headers.", examples=[[["trace-id", "4bf92f35"]]]),
    ]
    error: Annotated[LetterError, Meta(description="Why it failed.")]
    redriven: Annotated[bool, Meta(description="Whether it was redriven.")]
    redrive_count: Annotated[int, Meta(description="How often the record was redriven before it failed this time.")]
    encoding: Annotated[
        Literal["utf-8", "base64"], Meta(description="The encoding of key and value: base64 if they are not text.")
    ] = "utf-8"


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters of a connector."""

    topic: Annotated[str, Meta(description="The dead-letter topic.", examples=["orders-dead"])]
    records: Annotated[list[LetterView], Meta(description="The dead letters.")]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Selects dead letters: those that meet all conditions."""

    offsets: list[LetterPlace] = []
    partition: int | None = None
    stage: str | None = None
    exception: str | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    is_all: bool = False


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters that were redriven, or would be."""

    redriven: Annotated[int, Meta(description="The number of redriven dead letters.")]
    skipped: Annotated[
        int, Meta(description="The number of selected dead letters that were already redriven, or too often.")
    ]
    records: Annotated[list[LetterPlace], Meta(description="Their positions.")]
    failed: Annotated[list[str], Meta(description="Those that could not be redriven, and why.")] = []
