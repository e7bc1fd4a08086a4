"""Errors of the registry's client, grouped by what the caller does about them.

ClientError
├── RegistryUnreachable   no registry answered in time, or only with server errors: the same call may succeed later
├── SchemaNotFound        there is no such subject, version, id or guid
├── IncompatibleSchema    the schema is not compatible with the subject's earlier ones; `messages` say why
├── NotAllowed            the user is not authenticated or not authorized
└── Refused               the request is invalid and must be changed
"""

from collections.abc import Sequence


class ClientError(Exception):
    """Base of the client's errors; `code` is Confluent's error code, or the HTTP status, or -1 without a response."""

    retriable = False

    def __init__(self, message: str, *, code: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RegistryUnreachable(ClientError):
    """No registry answered in time, or only with server errors."""

    retriable = True


class SchemaNotFound(ClientError):
    """There is no such subject, version, id or guid."""


class IncompatibleSchema(ClientError):
    """The schema is not compatible with the subject's earlier ones."""

    def __init__(self, message: str, *, code: int = 409, messages: Sequence[str] = ()) -> None:
        super().__init__(message, code=code)
        self.messages = tuple(messages) or (message,)


class NotAllowed(ClientError):
    """The user is not authenticated or not authorized."""


class Refused(ClientError):
    """The request is invalid."""


def from_response(status: int, *, code: int, message: str) -> ClientError:
    """The error for a response."""
    if status in (401, 403):
        return NotAllowed(message, code=code)
    if status == 404:
        return SchemaNotFound(message, code=code)
    if status == 409:
        return IncompatibleSchema(message, code=code)
    if status in RETRIABLE_STATUSES or status >= 500:
        return RegistryUnreachable(message, code=code)
    return Refused(message, code=code)


RETRIABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed, here or at the next address."""
