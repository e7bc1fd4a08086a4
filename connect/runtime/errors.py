"""Errors of requests to a worker, with the messages and status codes of Kafka Connect's REST API.

WorkerError           an error response of the REST API
├── BadRequest   400  the request, or the configuration in it, is invalid
├── Forbidden    403  the worker's settings do not allow this
├── NotFound     404  there is no such connector, task or plugin
├── Conflict     409  a conflict with another operation, or with an existing connector
│   └── NotLeader     another worker leads; the request is forwarded to it
├── Failed       500  the operation failed
└── Timeout      500  the operation takes too long
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
    """An error response; a `ServiceError` of core_broker.service.web."""

    status: ClassVar[int] = 500
    retry_after_seconds: int | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def code(self) -> int:
        """The `error_code` of the response: the HTTP status, as in Kafka Connect."""
        return self.status


class BadRequest(WorkerError):
    """The request, or the configuration in it, is invalid."""

    status = 400


class Forbidden(WorkerError):
    """The worker's settings do not allow it."""

    status = 403


class NotFound(WorkerError):
    """There is no such connector, task or plugin."""

    status = 404


class Conflict(WorkerError):
    """A conflict with another operation, or with an existing connector of that name."""

    status = 409


class NotLeader(Conflict):
    """Another worker leads; `url` is that of its REST API, None while it is unknown."""

    def __init__(self, url: str | None) -> None:
        super().__init__(CONFLICT if url else NO_LEADER)
        self.url = url


class Failed(WorkerError):
    """The operation failed."""


class Timeout(WorkerError):
    """It takes longer than `rest.request.timeout.ms`."""

    def __init__(self, message: str = "Request timed out") -> None:
        super().__init__(message)


# --- messages that users' scripts look for ---


def connector_not_found(name: str) -> NotFound:
    """The connector does not exist: for its configuration and offsets."""
    return NotFound(f"Connector {name} not found")


def unknown_connector(name: str) -> NotFound:
    """The connector does not exist: for pause, resume and stop."""
    return NotFound(f"Unknown connector {name}")


def unknown_connector_to_restart(name: str) -> NotFound:
    """The connector does not exist: for restart."""
    return NotFound(f"Unknown connector: {name}")


def unknown_task(name: str, task: int) -> NotFound:
    """The task does not exist: for restart."""
    return NotFound(f"Unknown task: {name}-{task}")


def no_connector_status(name: str) -> NotFound:
    """The connector has no status."""
    return NotFound(f"No status found for connector {name}")


def no_task_status(name: str, task: int) -> NotFound:
    """The task has no status."""
    return NotFound(f"No status found for task {name}-{task}")


def connector_exists(name: str) -> Conflict:
    """The name is taken."""
    return Conflict(f"Connector {name} already exists")
