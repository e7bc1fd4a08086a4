"""What a failed query does: try again after a while, or give up, because only a person can help."""

import re
from typing import Final

from pyspark.errors import AnalysisException

from core_broker.client.errors import ClientError, NotAllowed, Rejected
from core_broker.client.transactional_producer import AbortNeeded
from streams.errors import DataLoss, EngineError, StreamsError
from streams.spark.engine.failures import error_message
from streams.spark.queries.spec import BEGIN_ANEW

_MESSAGE_MAX: Final = 4000
_SLOW_START: Final = re.compile(
    r"Python worker failed to connect back|waiting for the Python worker to connect back"
    r"|while reading the port number from|CANNOT_OPEN_SOCKET|Python worker exited unexpectedly"
)
_LOST: Final = re.compile(r"(?:streams\.errors\.)?DataLoss: (.*)")
_FINAL: Final = re.compile(
    r"(?:streams\.[\w.]*|core_broker\.[\w.]*)?\b(DataLoss|Undecodable|EncodeError|StateLost|SchemasMissing|SchemaProblem"
    r"|TableTooLarge|WrongOption|NotAllowed): "
)
_PASSING: Final = re.compile(
    r"\b(?:core_broker\.client\.errors\.)?(Unreachable|Retriable|Fatal): |RegistryUnreachable|ConnectionRefusedError"
)
_GONE: Final = f"records were deleted before the query had read them; {BEGIN_ANEW}"


class QueryFailed(EngineError):
    """A query that cannot go on; the message is for its owner."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)


def is_final(error: BaseException, text: str) -> bool:
    """Whether the same would happen again, however often the query is started."""
    if isinstance(error, AbortNeeded):
        return error.is_refusal
    if isinstance(error, NotAllowed | Rejected | StreamsError | AnalysisException):
        return True
    return _FINAL.search(text) is not None


def may_pass(error: BaseException, text: str) -> bool:
    """Whether it is about something that did not answer, and that will be back."""
    if isinstance(error, ClientError | ConnectionError | TimeoutError):
        return True
    return _SLOW_START.search(text) is not None or _PASSING.search(text) is not None


def message_of(error: BaseException, text: str) -> str:
    """A short message about a failure."""
    if isinstance(error, DataLoss) or _LOST.search(text):
        found = _LOST.search(text)
        reason = found[1].partition(" Some data may have been lost")[0] if found else str(error)
        return reason if BEGIN_ANEW in reason else f"{reason.rstrip('. ')}: {_GONE}"
    return error_message(error)[:_MESSAGE_MAX]
