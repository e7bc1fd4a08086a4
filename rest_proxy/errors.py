"""Errors of the proxy, with the codes that clients of Confluent's REST proxy branch on.

Every error is a ProxyError; the functions below create those that are raised in several places. Errors of the cluster
and of the registry are mapped at the edge: `from_cluster`, `from_registry`.
"""

from core_broker.client.errors import AlreadyExists, ClientError, NotAllowed, NotFound, Rejected, Retriable, Unreachable
from schema_registry.client import errors as registry_errors

_UNKNOWN_PARTITION = -190
"""The client library's code for a partition that its topic does not have."""
_UNKNOWN_USER = (-169, 58)
"""Codes for users that the cluster does not know, as opposed to users that lack a permission."""
_NOT_AUTHORIZED = {29: "Not authorized to access topics", 30: "Not authorized to access group"}
"""How Java's clients, and with them Confluent's proxy, begin these messages."""


class ProxyError(Exception):
    """An error response: the code is Confluent's, its first three digits are the HTTP status."""

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
    """The request is too large; the client must send less at once."""
    return ProxyError(413, reason)


def too_many(reason: str, *, retry_after_seconds: int = 1) -> ProxyError:
    """A limit on what happens at the same time is reached; the same request may succeed later."""
    return ProxyError(429, reason, retry_after_seconds=retry_after_seconds)


def unavailable(reason: str, *, retry_after_seconds: int = 1) -> ProxyError:
    """A service that the proxy needs does not answer, or the proxy is shutting down."""
    return ProxyError(503, reason, retry_after_seconds=retry_after_seconds)


# --- errors of the cluster and of the registry ---


def from_cluster(error: ClientError, *, address: str = "") -> ProxyError:
    """Map an error of the Kafka client; `address` is the bootstrap address, for messages that lack it."""
    reason = str(error)
    match error:
        case Unreachable():
            is_named = not address or address in reason
            return unavailable(reason if is_named else f"No broker of the Kafka cluster answers at {address}: {reason}")
        case NotFound(code=code) if code == _UNKNOWN_PARTITION:
            return ProxyError(40402, reason)
        case NotFound():
            return ProxyError(40401, reason)
        case AlreadyExists():
            return ProxyError(40002, reason)
        case NotAllowed(code=code) if code in _UNKNOWN_USER:
            return ProxyError(40101, reason)
        case NotAllowed(code=code):
            return ProxyError(40301, f"{_NOT_AUTHORIZED[code]}: {reason}" if code in _NOT_AUTHORIZED else reason)
        case Retriable():
            return ProxyError(50003, reason, retry_after_seconds=1)
        case Rejected():
            return ProxyError(40002, reason)
        case _:
            return ProxyError(50002, reason)


def from_registry(error: registry_errors.ClientError, *, code: int = 42205) -> ProxyError:
    """Map an error of the registry's client; `code` is for a schema that the registry refuses."""
    match error:
        case registry_errors.RegistryUnreachable():
            return unavailable(f"The schema registry does not answer: {error.message}")
        case registry_errors.NotAllowed():
            return ProxyError(40301, f"The schema registry denies access to this proxy: {error.message}")
        case registry_errors.IncompatibleSchema():
            return ProxyError(code, f"The schema is incompatible with an earlier one: {'; '.join(error.messages)}")
        case _:
            return ProxyError(code, f"The schema registry answers: {error.message}")
