"""What clients and the engine say to each other over its socket: JSON behind its length, each request with a number."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

PROTOCOL: Final = 1
"""Raised when older and newer programs can no longer understand each other."""
MESSAGE_BYTES_MAX: Final = 64 << 20

JSON: TypeAlias = Any
"""Anything that JSON can say: None, booleans, numbers, texts, lists and dictionaries with texts as keys."""

JobState: TypeAlias = Literal["starting", "running", "failed", "ended"]


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine tells about itself to whoever connects."""

    protocol: int
    version: str
    pid: int
    spark_version: str
    master: str
    connect_url: str | None
    warehouse: str
    log: str
    settings: dict[str, str]
    """Digests of what it was started with: clients can see that theirs are others."""
    is_background: bool = False
    """Whether a client has started it on first need; one that is run on purpose takes its place."""


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a job fares."""

    state: JobState
    error: str | None = None
    """The trace of what it failed with."""
    error_kind: str | None = None
    """The name of that error's class."""
    counters: dict[str, float] = {}


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first request of every connection; answered with `EngineInfo`."""

    protocol: int
    version: str


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """Carry out an operation; answered with what it returns. When the connection ends, so does its Spark job."""

    operation: str
    arguments: dict[str, JSON]


class Run(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """Start a job that this connection owns, when no other of that name runs any more."""

    name: str
    job: str
    spec: JSON


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """Tell how a job of this connection fares; answered with `JobStatus`."""

    name: str


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop a job of this connection; answered when it has ended."""

    name: str
    timeout_seconds: float


class Quit(msgspec.Struct, frozen=True, kw_only=True, tag="quit"):
    """End the engine, with everything in it."""


Action: TypeAlias = Hello | Call | Run | Status | Stop | Quit


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants; its number is repeated in the answer."""

    number: int
    action: Action


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request failed."""

    kind: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a request."""

    number: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
