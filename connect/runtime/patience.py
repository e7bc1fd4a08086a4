"""The cluster may be away for a while: what depends on it alone is tried again until it is back."""

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
    """What a step gives, tried again while the cluster does not answer; raises Stopped when the task shall end."""
    is_first = True
    while True:
        try:
            return step()
        except (Unreachable, Retriable, RetriableError) as error:
            if is_first:
                log.warning("the cluster does not answer: waiting for it", extra={"what": what, "error": str(error)})
            is_first = False
            stopping.wait_or_raise(_PAUSE_SECONDS)


def connect_error(message: str, error: ClientError) -> ConnectError:
    """An error of the cluster, as one of tasks: whether waiting helps is kept."""
    kind = RetriableError if isinstance(error, Unreachable | Retriable) else ConnectError
    return kind(f"{message}: {error}")
