"""What a request to a worker may end with, in the words and numbers of Kafka Connect's REST API.

WorkerError           what the REST API answers when a request did not succeed
├── BadRequest   400  the request makes no sense, or the configuration in it is wrong
├── Forbidden    403  the worker was told not to do this
├── NotFound     404  there is no such connector, task or plugin
├── Conflict     409  not now: something else is going on, or there is one of that name already
│   └── NotLeader     another worker decides; the request is handed on to it
├── Failed       500  it was tried, and did not work
└── Timeout      500  it takes too long
"""

from typing import ClassVar, Final

NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
CONFLICT: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
STALE: Final = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
)


class WorkerError(Exception):
    """An answer that is no success; a `ServiceError` of core_broker.service.web."""

    status: ClassVar[int] = 500
    retry_after_seconds: int | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def code(self) -> int:
        """The `error_code` of the answer: the HTTP status, as Kafka Connect has it."""
        return self.status


class BadRequest(WorkerError):
    """The request makes no sense, or the configuration in it is wrong."""

    status = 400


class Forbidden(WorkerError):
    """The worker's settings do not allow it."""

    status = 403


class NotFound(WorkerError):
    """There is no such connector, task or plugin."""

    status = 404


class Conflict(WorkerError):
    """Not now: something else is going on, or there is a connector of that name already."""

    status = 409


class NotLeader(Conflict):
    """Another worker decides; `url` is where it answers, None while nobody knows."""

    def __init__(self, url: str | None) -> None:
        super().__init__(CONFLICT if url else NO_LEADER)
        self.url = url


class Failed(WorkerError):
    """It was tried, and did not work."""


class Timeout(WorkerError):
    """It takes longer than `rest.request.timeout.ms`."""

    def __init__(self, message: str = "Request timed out") -> None:
        super().__init__(message)


# --- the words that users' scripts look for ---


def connector_not_found(name: str) -> NotFound:
    """There is no such connector; told by what reads or changes its configuration or offsets."""
    return NotFound(f"Connector {name} not found")


def unknown_connector(name: str) -> NotFound:
    """There is no such connector; told by pause, resume and stop."""
    return NotFound(f"Unknown connector {name}")


def unknown_connector_to_restart(name: str) -> NotFound:
    """There is no such connector; told by restart."""
    return NotFound(f"Unknown connector: {name}")


def unknown_task(name: str, task: int) -> NotFound:
    """There is no such task; told by restart."""
    return NotFound(f"Unknown task: {name}-{task}")


def no_connector_status(name: str) -> NotFound:
    """Nothing is known of how this connector fares."""
    return NotFound(f"No status found for connector {name}")


def no_task_status(name: str, task: int) -> NotFound:
    """Nothing is known of how this task fares."""
    return NotFound(f"No status found for task {name}-{task}")


def connector_exists(name: str) -> Conflict:
    """The name is taken."""
    return Conflict(f"Connector {name} already exists")
