"""Errors of talking to a schema registry, grouped by what the caller does about them.

ClientError
├── RegistryUnreachable   nobody answered in time, or only with server errors: the same call may succeed later
├── SchemaNotFound        there is no such subject, version, id or guid
├── IncompatibleSchema    the subject's earlier schemas do not allow this one; `messages` tell why
├── NotAllowed            the registry refuses this user
└── Refused               the request is wrong as it stands: change it
"""

from collections.abc import Sequence


class ClientError(Exception):
    """Root of what the client raises; `code` is Confluent's error code, or the HTTP status, or -1 without an answer."""

    retriable = False

    def __init__(self, message: str, *, code: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RegistryUnreachable(ClientError):
    """Nobody answered in time, or only with server errors."""

    retriable = True


class SchemaNotFound(ClientError):
    """There is no such subject, version, id or guid."""


class IncompatibleSchema(ClientError):
    """The subject's earlier schemas do not allow this one."""

    def __init__(self, message: str, *, code: int = 409, messages: Sequence[str] = ()) -> None:
        super().__init__(message, code=code)
        self.messages = tuple(messages) or (message,)


class NotAllowed(ClientError):
    """The registry refuses this user."""


class Refused(ClientError):
    """The request is wrong as it stands."""


def from_answer(status: int, *, code: int, message: str) -> ClientError:
    """The error that an answer tells."""
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
"""The answers after which the same request may succeed, here or at the next address."""
