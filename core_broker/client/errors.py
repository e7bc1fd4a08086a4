"""Errors of talking to a Kafka cluster, grouped by what the caller does about them.

ClientError
├── Unreachable       no broker responded in time: check the address, try again later
│   └── Untrusted     client and broker do not agree on TLS: check security.protocol and certificates
├── NotFound          the topic, partition or group does not exist
├── AlreadyExists     what should be created exists already
├── NotAllowed        the cluster refuses this user
├── Rejected          the request is invalid: change it
├── Retriable         the same call may succeed after a pause
└── Fatal             this client cannot go on: make a new one
    └── Fenced        another client has taken its place in the group
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from core_broker.errors import ErrorCode

_UNREACHABLE = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
)
_NOT_FOUND = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.RESOURCE_NOT_FOUND,
)
_NOT_ALLOWED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
)
_FATAL = (
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
"""The log and an idempotent producer disagree on the sequence; the library reports this as ordinary record errors."""
_PLAINER = {
    KafkaError._PURGE_QUEUE: "the record was given up; if it was sent before, it may have been written",
    KafkaError._PURGE_INFLIGHT: "the record was given up while in flight: it may or may not have been written",
    KafkaError._MSG_TIMED_OUT: "the record was not acknowledged in time: it may or may not have been written",
}
"""Replacements for messages of the library that only its authors understand."""
_FENCED: Final = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
_PASSING = frozenset(int(code) for code in ErrorCode if code.retriable)
REFUSED_TOGETHER: Final = frozenset(
    {
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)
"""Codes that a good record can get because another record of its batch was rejected. The first one says so (KIP-467),
but the library uses it only if the broker named at least two bad records."""
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Topic names that Kafka allows."""


class ClientError(Exception):
    """Base of all errors of the client; `code` is Kafka's error code, negative for the library's own."""

    def __init__(self, message: str, *, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(ClientError):
    """No broker responded in time."""


class Untrusted(Unreachable):
    """Client and broker do not agree on TLS, or on who is at the other end."""


class NotFound(ClientError):
    """The topic, partition or group does not exist."""


class AlreadyExists(ClientError):
    """What should be created exists already."""


class NotAllowed(ClientError):
    """The cluster refuses this user."""


class Rejected(ClientError):
    """The request is invalid."""


class Retriable(ClientError):
    """The same call may succeed after a pause."""


class Fatal(ClientError):
    """This client cannot go on."""


class Fenced(Fatal):
    """Another client has taken its place in the group."""


def from_kafka(error: KafkaError) -> ClientError:
    """The library's error as ours."""
    return _kind(error)(_PLAINER.get(error.code()) or error.str(), code=error.code())


def is_passing(error: KafkaError) -> bool:
    """Whether a consumer recovers from an error by itself, such as a leader or coordinator that has moved."""
    return issubclass(_kind(error), Retriable | Unreachable)


def from_queueing(error: KafkaError, topic: str) -> ClientError:
    """The library's error for a record that it refused to queue, as ours.

    Once the cluster has rejected a topic name as invalid, the library reports the topic as unknown; that may happen
    even for the first record.
    """
    if error.code() == KafkaError._UNKNOWN_TOPIC and not _TOPIC_NAME.fullmatch(topic):
        return Rejected(f"{topic[:300]!r} is not a valid topic name", code=KafkaError.TOPIC_EXCEPTION)
    return from_kafka(error)


def from_code(code: int, message: str | None) -> ClientError:
    """An error code from a response as ours."""
    error = KafkaError(code)
    return _kind(error)(message or error.str(), code=code)


def _kind(error: KafkaError) -> type[ClientError]:
    code = error.code()
    groups: list[tuple[tuple[int, ...], type[ClientError]]] = [
        (_UNREACHABLE, Unreachable),
        (_NOT_FOUND, NotFound),
        ((KafkaError.TOPIC_ALREADY_EXISTS,), AlreadyExists),
        (_NOT_ALLOWED, NotAllowed),
        (_FATAL, Fatal),
    ]
    if error.fatal() or code == KafkaError._FATAL:
        # The library gives the reason of a fatal error only as text.
        return Fenced if _FENCED in error.str() else Fatal
    for codes, kind in groups:
        if code in codes:
            return kind
    # For administrative responses the library does not say which errors the protocol calls retriable.
    return Retriable if error.retriable() or code in _PASSING else Rejected


@contextmanager
def map_errors() -> Iterator[None]:
    """Turn the library's exceptions inside a block into ours."""
    try:
        yield
    except KafkaException as exception:
        first: Any = exception.args[0] if exception.args else None
        error = from_kafka(first) if isinstance(first, KafkaError) else Rejected(str(exception))
        raise error from exception
    except (ValueError, TypeError) as exception:
        raise Rejected(str(exception)) from exception
