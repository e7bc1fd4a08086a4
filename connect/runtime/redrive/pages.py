"""Dead letters as the REST API shows them, and which of them are to be given to the sink again."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class LetterError(msgspec.Struct, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """Why and where a record failed, from the headers of its dead letter; null where they do not tell."""

    stage: Annotated[str | None, Meta(description="Where on its way.", examples=["VALUE_CONVERTER"])] = None
    class_name: Annotated[str | None, Meta(description="The class that was at work.")] = None
    exception: Annotated[str | None, Meta(description="The name of the error.")] = None
    message: Annotated[str | None, Meta(description="What it says.")] = None
    stacktrace: Annotated[str | None, Meta(description="Where it was raised.")] = None
    topic: Annotated[str | None, Meta(description="The topic that the record was read from.")] = None
    partition: Annotated[int | None, Meta(description="Its partition there.")] = None
    offset: Annotated[int | None, Meta(description="Its offset there.")] = None
    connector: Annotated[str | None, Meta(description="The connector that failed with it.")] = None
    task: Annotated[int | None, Meta(description="The task that failed with it.")] = None


class LetterPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a dead letter lies in its topic."""

    partition: Annotated[int, Meta(description="The partition of the dead-letter topic.")]
    offset: Annotated[int, Meta(description="The offset in it.")]


class LetterView(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter: the record that failed, and why. Bytes that are no text are told in base64."""

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
    redriven: Annotated[bool, Meta(description="Whether it was given to the sink again.")]
    redrive_count: Annotated[int, Meta(description="How often the record had come back before it failed this time.")]
    encoding: Annotated[
        Literal["utf-8", "base64"], Meta(description="Of key and value: base64 when they are no text.")
    ] = "utf-8"


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters of a connector."""

    topic: Annotated[str, Meta(description="The dead-letter topic.", examples=["orders-dead"])]
    records: Annotated[list[LetterView], Meta(description="The dead letters.")]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant: all that fit everything that is set."""

    offsets: list[LetterPlace] = []
    partition: int | None = None
    stage: str | None = None
    exception: str | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    is_all: bool = False


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """What was given again, or would be."""

    redriven: Annotated[int, Meta(description="How many.")]
    skipped: Annotated[int, Meta(description="How many were meant, but given again before, or too often.")]
    records: Annotated[list[LetterPlace], Meta(description="Which ones.")]
    failed: Annotated[list[str], Meta(description="Those that could not be given again, and why.")] = []
