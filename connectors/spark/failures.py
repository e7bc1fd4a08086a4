"""Errors on their way from executors to the worker: Spark hands on a text, and in it is what a human should read."""

import base64
import re
import traceback
from typing import Final

import msgspec

from connect.api.errors import ConnectError, RetriableError, java_name_of
from core_broker.client.errors import ClientError, NotAllowed, Rejected
from core_broker.client.transactional_producer import AbortNeeded

_MARK: Final = re.compile(r"caudal-failure:([A-Za-z0-9+/=]+):")
_TRACE_MAX: Final = 32_000
_SLOW_START: Final = re.compile(
    r"Python worker failed to connect back|waiting for the Python worker to connect back"
    r"|while reading the port number from|CANNOT_OPEN_SOCKET"
)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A failure as it happened."""

    kind: str
    message: str
    trace: str
    is_passing: bool
    """Whether the same may succeed later: something that was needed did not answer."""


class MarkedFailure(Exception):
    """A failure of a task of Spark, with a mark by which `told_in` finds it in whatever Spark makes of it."""

    def __init__(self, error: Exception) -> None:
        told = Told(
            kind=java_name_of(error),
            message=str(error),
            trace=trace_of(error)[:_TRACE_MAX],
            is_passing=is_passing(error),
        )
        super().__init__(f"{error}\ncaudal-failure:{base64.b64encode(msgspec.json.encode(told)).decode()}:")


class SinkFailure(ConnectError):
    """The sink cannot go on; the trace is that of the executor."""


def trace_of(error: BaseException) -> str:
    """Where an error comes from, with its causes; the first line is what tools show."""
    return f"{java_name_of(error)}: {error}\n" + "".join(traceback.format_exception(error))


def is_passing(error: BaseException) -> bool:
    """Whether an error is about something that did not answer, and not about records or the configuration."""
    if isinstance(error, AbortNeeded):
        return not error.is_refusal
    if isinstance(error, NotAllowed | Rejected):
        return False
    return isinstance(error, RetriableError | ConnectionError | TimeoutError | ClientError)


def is_slow_start(text: str) -> bool:
    """Whether Python did not get up within the ten seconds that Spark gives it, which no setting changes: so it is on a
    machine with much else to do, and a while later it does."""
    return _SLOW_START.search(text) is not None


def told_in(text: str) -> Told | None:
    """What an executor has told, in a text of Spark's."""
    found = _MARK.search(text)
    return None if found is None else msgspec.json.decode(base64.b64decode(found[1]), type=Told)
