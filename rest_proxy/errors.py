"""What can go wrong, by the codes that clients of Confluent's REST proxy branch on.

Every error is a ProxyError; the functions below are the table of those that the proxy raises, by code. Errors of the
cluster and of the registry become one of them at the edge: `from_cluster`, `from_registry`.
"""

from core_broker.client.errors import (
    AlreadyExists,
    ClientError,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
)
from schema_registry.client import errors as registry_errors

_UNKNOWN_PARTITION = -190
"""The client library's code for a partition that its topic does not have."""


_UNKNOWN_USER = (-169, 58)
"""Codes of users that the cluster does not know, as opposed to users that may not do something."""
_REFUSALS = {29: "Not authorized to access topics", 30: "Not authorized to access group"}
"""What Java's clients say, and with them Confluent's proxy, before the details."""


class ProxyError(Exception):
    """An answer that is no success: the code is Confluent's, its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code // 100 if self.code >= 10_000 else self.code

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code in (429, 503, 50003) or self.retry_after_seconds is not None


# --- 404 ---


def topic_not_found(topic: str) -> ProxyError:
    """The cluster has no such topic."""
    return ProxyError(40401, f"Topic {topic} not found.")


def partition_not_found(topic: str, partition: int) -> ProxyError:
    """The topic has no such partition."""
    return ProxyError(40402, f"Partition {partition} of topic {topic} not found.")


# --- limits ---


def too_large(reason: str) -> ProxyError:
    """More than is taken in one request; it must be made smaller."""
    return ProxyError(413, reason)


def too_many(reason: str, *, retry_after_seconds: int = 1) -> ProxyError:
    """More than is taken at a time; the same request may succeed later."""
    return ProxyError(429, reason, retry_after_seconds=retry_after_seconds)


def unavailable(reason: str, *, retry_after_seconds: int = 1) -> ProxyError:
    """Something that the proxy needs does not answer."""
    return ProxyError(503, reason, retry_after_seconds=retry_after_seconds)


# --- others' errors as ours ---


def from_cluster(error: ClientError, *, address: str = "") -> ProxyError:
    """What the Kafka cluster said, as an answer; `address` is where it was looked for."""
    told = str(error)
    match error:
        case Unreachable():
            is_named = not address or address in told
            return unavailable(told if is_named else f"No broker of the Kafka cluster answers at {address}: {told}")
        case NotFound(code=code) if code == _UNKNOWN_PARTITION:
            return ProxyError(40402, told)
        case NotFound():
            return ProxyError(40401, told)
        case AlreadyExists():
            return ProxyError(40002, told)
        case NotAllowed(code=code) if code in _UNKNOWN_USER:
            return ProxyError(40101, told)
        case NotAllowed(code=code):
            return ProxyError(40301, f"{_REFUSALS[code]}: {told}" if code in _REFUSALS else told)
        case Retriable():
            return ProxyError(50003, told, retry_after_seconds=1)
        case Rejected():
            return ProxyError(40002, told)
        case _:
            return ProxyError(50002, told)


def from_registry(error: registry_errors.ClientError, *, code: int = 42205) -> ProxyError:
    """What the schema registry said, as an answer; `code` is for what is wrong with the request's schema."""
    match error:
        case registry_errors.RegistryUnreachable():
            return unavailable(f"The schema registry does not answer: {error.message}")
        case registry_errors.NotAllowed():
            return ProxyError(40301, f"The schema registry refuses this proxy: {error.message}")
        case registry_errors.IncompatibleSchema():
            return ProxyError(code, f"The schema may not follow those before it: {'; '.join(error.messages)}")
        case _:
            return ProxyError(code, f"The schema registry answers: {error.message}")
