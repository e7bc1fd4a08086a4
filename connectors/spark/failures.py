"""Failures of executors on their way to the worker: Spark only passes text on, so the text carries them encoded."""

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


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error of a Spark task."""

    message: str
    trace: str
    is_transient: bool
    """Whether the same may succeed later, since a server did not answer."""


class MarkedFailure(Exception):
    """An error of a Spark task with a mark, by which `find_failure` finds it in the text that Spark makes of it."""

    def __init__(self, error: Exception) -> None:
        # The first line is what tools show.
        trace = f"{java_name_of(error)}: {error}\n" + "".join(traceback.format_exception(error))
        failure = TaskFailure(message=str(error), trace=trace[:_TRACE_MAX], is_transient=is_transient(error))
        super().__init__(f"{error}\ncaudal-failure:{base64.b64encode(msgspec.json.encode(failure)).decode()}:")


class SinkFailure(ConnectError):
    """The sink cannot continue; the trace is the executor's."""


def find_failure(text: str) -> TaskFailure | None:
    """The failure that is marked in a text from Spark."""
    found = _MARK.search(text)
    return None if found is None else msgspec.json.decode(base64.b64decode(found[1]), type=TaskFailure)


def is_transient(error: BaseException) -> bool:
    """Whether an error is about a server that did not answer, not about records or the configuration."""
    if isinstance(error, AbortNeeded):
        return not error.is_refusal
    if isinstance(error, NotAllowed | Rejected):
        return False
    return isinstance(error, RetriableError | ConnectionError | TimeoutError | ClientError)


def is_slow_start(text: str) -> bool:
    """Whether Python did not start within the ten seconds that Spark allows, which no setting changes. It happens on a
    busy machine, and the next attempt may succeed."""
    return _SLOW_START.search(text) is not None
