"""Errors of talking to a Connect worker, grouped by what the user does about them.

ConnectCallError
├── WorkerUnreachable   nobody answered in time: start a worker, or say where one is
├── ConnectorNotFound   there is no such connector, task or plugin
├── NotNow              something stands in the way: one of that name, or a change of leaders
└── RequestRefused      the request or the configuration in it is wrong, or the worker could not do it
"""


class ConnectCallError(Exception):
    """Root of what the client raises; `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class WorkerUnreachable(ConnectCallError):
    """Nobody answered in time."""


class ConnectorNotFound(ConnectCallError):
    """There is no such connector, task or plugin."""


class NotNow(ConnectCallError):
    """Something stands in the way: one of that name, or a change of leaders."""


class RequestRefused(ConnectCallError):
    """The request is wrong as it stands, or the worker could not do it."""


def from_answer(status: int, message: str) -> ConnectCallError:
    """The error that an answer tells."""
    kinds = {404: ConnectorNotFound, 409: NotNow}
    return kinds.get(status, RequestRefused)(message, status=status)
