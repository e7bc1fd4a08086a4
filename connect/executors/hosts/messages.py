"""What a worker and its host processes say to each other: one JSON object per line."""

from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.stores.states import Target, TaskId

_LINE_BYTES: Final = 64 << 20


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first message: who the worker is, and how tasks are made. Secrets travel here, never in arguments."""

    parent_pid: int
    settings: dict[str, str]
    task_type: str
    world: str


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Run a task."""

    plan: TaskPlan


class SetTarget(msgspec.Struct, frozen=True, tag="set_target"):
    """Pause a task, or let it go on."""

    id: TaskId
    target: Target


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Ask a task to end."""

    id: TaskId


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """A task must write nothing more."""

    id: TaskId


class SetLevel(msgspec.Struct, frozen=True, tag="set_level"):
    """Log more or less."""

    logger: str
    level: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A task's thread has ended, by itself or because it was asked to."""

    id: TaskId


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """What a task has done so far."""

    id: TaskId
    counters: TaskCounters


ToHost = Hello | Start | SetTarget | Stop | Cancel | SetLevel
ToWorker = Ended | Counted

_encoder = msgspec.json.Encoder()
_to_host: msgspec.json.Decoder[ToHost] = msgspec.json.Decoder(ToHost)
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)


def line_of(message: ToHost | ToWorker) -> bytes:
    """A message as it is sent."""
    return _encoder.encode(message) + b"\n"


def from_worker(stream: BinaryIO) -> Iterator[ToHost]:
    """What the worker says, until it closes the connection or dies."""
    for line in _lines(stream):
        yield _to_host.decode(line)


def from_host(stream: BinaryIO) -> Iterator[ToWorker]:
    """What a host says, until it dies."""
    for line in _lines(stream):
        yield _to_worker.decode(line)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while (line := stream.readline(_LINE_BYTES)).endswith(b"\n"):
        yield line
