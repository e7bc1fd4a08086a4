"""The messages between clients and the engine: length-prefixed JSON, each request with a number."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

PROTOCOL: Final = 1
"""Increased when older and newer programs can no longer understand each other."""
MESSAGE_BYTES_MAX: Final = 64 << 20

JSON: TypeAlias = Any
"""Any JSON value: None, booleans, numbers, strings, lists, and dictionaries with strings as keys."""

JobState: TypeAlias = Literal["starting", "running", "failed", "ended"]


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's description, sent to each client that connects."""

    protocol: int
    version: str
    pid: int
    spark_version: str
    master: str
    connect_url: str | None
    warehouse: str
    log: str
    settings: dict[str, str]
    """Digests of its settings: clients can see whether theirs differ."""
    is_background: bool = False
    """Whether a client started it on first use; one that is started explicitly replaces it."""


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a job."""

    state: JobState
    error: str | None = None
    """The traceback of its failure."""
    error_kind: str | None = None
    """The name of that error's class."""
    counters: dict[str, float] = {}


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first request of every connection; answered with `EngineInfo`."""

    protocol: int
    version: str


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """Carry out an operation; answered with its result. Its Spark job ends with the connection."""

    operation: str
    arguments: dict[str, JSON]


class Run(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """Start a job that this connection owns, once no other of that name runs."""

    name: str
    job: str
    spec: JSON


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """Ask for the status of a job of this connection; answered with `JobStatus`."""

    name: str


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop a job of this connection; answered when it has ended."""

    name: str
    timeout_seconds: float


class Quit(msgspec.Struct, frozen=True, kw_only=True, tag="quit"):
    """End the engine, with everything in it."""


Action: TypeAlias = Hello | Call | Run | Status | Stop | Quit


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request; its number is repeated in the answer."""

    number: int
    action: Action


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request failed."""

    kind: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request."""

    number: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
