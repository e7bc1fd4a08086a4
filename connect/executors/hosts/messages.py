"""Messages between a worker and its host processes: one JSON object per line."""

import msgspec

from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.stores.states import Target, TaskId


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first message. The settings hold secrets, which is why they are not arguments of the process."""

    parent_pid: int
    settings: dict[str, str]


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Run a task."""

    plan: TaskPlan


class SetTarget(msgspec.Struct, frozen=True, tag="set_target"):
    """Pause or resume a task."""

    id: TaskId
    target: Target


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Ask a task to end."""

    id: TaskId


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """A task must not write anything more."""

    id: TaskId


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A task's thread has ended, on its own or on request."""

    id: TaskId


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """The counters of a task."""

    id: TaskId
    counters: TaskCounters


ToHost = Hello | Start | SetTarget | Stop | Cancel
ToWorker = Ended | Counted

_encoder = msgspec.json.Encoder()
decode_for_host = msgspec.json.Decoder[ToHost](ToHost).decode
decode_for_worker = msgspec.json.Decoder[ToWorker](ToWorker).decode


def encode(message: ToHost | ToWorker) -> bytes:
    """A message as a line."""
    return _encoder.encode(message) + b"\n"
