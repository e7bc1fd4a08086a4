"""Errors of talking to a Kafka cluster, grouped by what the caller does about them.

ClientError
├── Unreachable       no broker answered in time: check the address, try again later
├── NotFound          the topic, partition or group does not exist
├── AlreadyExists     what should be created is there
├── NotAllowed        the cluster refuses this user
├── Rejected          the request is wrong as it stands: change it
├── Retriable         the same call may succeed after a pause
└── Fatal             this client cannot go on: make a new one
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
    KafkaError._FATAL,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
"""The log does not go on where an idempotent producer left it; its records are told so by plain errors."""
_PLAINER = {
    KafkaError._PURGE_QUEUE: "the record was not sent",
    KafkaError._PURGE_INFLIGHT: "the record was given up on its way: whether it was written is not known",
    KafkaError._MSG_TIMED_OUT: "the record was not acknowledged in time: whether it was written is not known",
}
"""What the library says in words that only those understand who wrote it."""
_PASSING = frozenset(int(code) for code in ErrorCode if code.retriable)
REFUSED_TOGETHER: Final = frozenset(
    {
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)
"""Codes that a good record can get because another one of its batch was refused. The first says so (KIP-467), but the
library uses it only when the broker has named two bad records or more."""
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""What Kafka lets topics be called."""


class ClientError(Exception):
    """Root of what the client raises; `code` is Kafka's error code, negative for those of the library."""

    def __init__(self, message: str, *, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(ClientError):
    """No broker answered in time."""


class NotFound(ClientError):
    """The topic, partition or group does not exist."""


class AlreadyExists(ClientError):
    """What should be created is there."""


class NotAllowed(ClientError):
    """The cluster refuses this user."""


class Rejected(ClientError):
    """The request is wrong as it stands."""


class Retriable(ClientError):
    """The same call may succeed after a pause."""


class Fatal(ClientError):
    """This client cannot go on."""


def from_kafka(error: KafkaError) -> ClientError:
    """The library's error as ours."""
    return _kind(error)(_PLAINER.get(error.code()) or error.str(), code=error.code())


def from_queueing(error: KafkaError, topic: str) -> ClientError:
    """The library's error of a record that it did not even queue, as ours.

    Once the cluster has said that no topic may have this name, the library says only that it does not know the topic;
    and the cluster may be quicker than the very first record.
    """
    if error.code() == KafkaError._UNKNOWN_TOPIC and not _TOPIC_NAME.fullmatch(topic):
        return Rejected(f"no topic may be called {topic[:300]!r}", code=KafkaError.TOPIC_EXCEPTION)
    return from_kafka(error)


def from_code(code: int, message: str | None) -> ClientError:
    """An error that a broker has told by its number, as ours."""
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
    if error.fatal():
        return Fatal
    for codes, kind in groups:
        if code in codes:
            return kind
    # The library forgets in answers to administration what the protocol calls passing.
    return Retriable if error.retriable() or code in _PASSING else Rejected


@contextmanager
def mapped() -> Iterator[None]:
    """Turn the library's exceptions of a block into ours."""
    try:
        yield
    except KafkaException as exception:
        raise _from_exception(exception) from exception
    except (ValueError, TypeError) as exception:
        raise Rejected(str(exception)) from exception


def _from_exception(exception: KafkaException) -> ClientError:
    first: Any = exception.args[0] if exception.args else None
    return from_kafka(first) if isinstance(first, KafkaError) else Rejected(str(exception))
