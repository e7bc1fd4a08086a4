"""Dead letters as the REST API shows them, and which of them are to be given to the sink again."""

import msgspec


class LetterError(msgspec.Struct, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """Why and where a record failed, from the headers of its dead letter; null where they do not tell."""

    stage: str | None = None
    class_name: str | None = None
    exception: str | None = None
    message: str | None = None
    stacktrace: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    connector: str | None = None
    task: int | None = None


class LetterPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a dead letter lies in its topic."""

    partition: int
    offset: int


class LetterView(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter: the record that failed, and why. Bytes that are no text are told in base64."""

    partition: int
    offset: int
    timestamp: int | None
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]
    error: LetterError
    redriven: bool
    redrive_count: int
    encoding: str = "utf-8"
    """Of key and value: utf-8, or base64 when they are no text."""


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters of a connector."""

    topic: str
    records: list[LetterView]


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

    redriven: int
    skipped: int
    """Letters that were meant, but given again before, or too often."""
    records: list[LetterPlace]
    failed: list[str] = []
    """Letters that could not be given again, and why."""
