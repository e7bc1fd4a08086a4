"""Retries operations on the cluster until it is reachable again."""

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from connect.api.errors import ConnectError, RetriableError
from connect.runtime.stopping import Stopping
from core_broker.client.errors import ClientError, Retriable, Unreachable

log = logging.getLogger(__name__)

T = TypeVar("T")
_PAUSE_SECONDS: Final = 0.5


def patiently(step: Callable[[], T], stopping: Stopping, *, what: str) -> T:
    """The result of a step, with retries while the cluster does not answer; Stopped when the task is asked to stop."""
    is_first = True
    while True:
        try:
            return step()
        except (Unreachable, Retriable, RetriableError) as error:
            if is_first:
                log.warning("the cluster does not answer, retrying", extra={"what": what, "error": str(error)})
            is_first = False
            stopping.wait_or_raise(_PAUSE_SECONDS)


def connect_error(message: str, error: ClientError) -> ConnectError:
    """Convert an error of the client to a ConnectError, or a RetriableError if a retry may help."""
    kind = RetriableError if isinstance(error, Unreachable | Retriable) else ConnectError
    return kind(f"{message}: {error}")
