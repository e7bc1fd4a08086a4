"""Errors that the REST API answers with; `code` is ksqlDB's, and a hundredth of it the HTTP status.

ServiceError
├── BadRequest          40000: the request or one of its properties cannot be used
├── BadStatement        40001: a statement has to be changed; the text says where
├── WrongEndpoint       40002: SELECT and PRINT have their own endpoints
├── TooManyQueries      40003: no more queries of clients may run
├── NotAllowed          40301: the cluster does not let the service do this
├── NotKnown            40400: there is no such command or query
├── AssertionFailed     41700: an ASSERT did not come true in time
├── SchemasMissing      42801: a format needs a schema registry, and none is configured
├── ServerFailed        50000: something failed that is not the caller's fault
└── NotReady            50301-50304: ask again later
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""Any JSON value."""


class ServiceError(Exception):
    """An error with all that its body says."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 50000,
        statement_text: str | None = None,
        entities: Sequence[JSON] = (),
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.statement_text = statement_text
        self.entities = tuple(entities)
        self.retry_after_seconds = retry_after_seconds

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code // 100

    def of_statement(self, text: str, entities: Sequence[JSON]) -> "ServiceError":
        """The same error, with the statement that failed and the entities of those before it."""
        self.statement_text = text if self.statement_text is None else self.statement_text
        self.entities = tuple(entities)
        return self

    def body(self) -> dict[str, JSON]:
        """The body of the response."""
        if self.statement_text is None:
            return {"@type": "generic_error", "error_code": self.code, "message": self.message}
        return {
            "@type": "statement_error",
            "error_code": self.code,
            "message": self.message,
            "statementText": self.statement_text,
            "entities": list(self.entities),
        }


class BadRequest(ServiceError):
    """The request, or one of its properties, cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=40000)


class BadStatement(ServiceError):
    """A statement has to be changed."""

    def __init__(self, message: str, statement_text: str | None = None) -> None:
        super().__init__(message, code=40001, statement_text=statement_text)


class WrongEndpoint(ServiceError):
    """SELECT and PRINT have their own endpoints."""

    def __init__(self, message: str, statement_text: str) -> None:
        super().__init__(message, code=40002, statement_text=statement_text)


class TooManyQueries(ServiceError):
    """No more queries of clients may run at the same time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=40003)


class NotAllowed(ServiceError):
    """The cluster does not let the service do this."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=40301)


class NotKnown(ServiceError):
    """There is no such command or query."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=40400)


class AssertionFailed(ServiceError):
    """An ASSERT did not come true in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=41700)


class SchemasMissing(ServiceError):
    """A format needs a schema registry, and none is configured."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=42801)


class ServerFailed(ServiceError):
    """Something failed that is not the caller's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=50000)


class NotReady(ServiceError):
    """The service cannot answer now; ask again later."""

    def __init__(self, message: str, *, code: int = 50302, retry_after_seconds: int = 10) -> None:
        super().__init__(message, code=code, retry_after_seconds=retry_after_seconds)
