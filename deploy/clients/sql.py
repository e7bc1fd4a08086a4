"""A client of the service of SQL over topics, which speaks ksqlDB's REST API.

Its errors are grouped by what the user does about them:

SqlCallError
├── ServerUnreachable   no answer: start a service, or say where one is
├── LoginRefused        log in, or as another user, or ask for a right
├── NotReady            the service is starting, or waits for an earlier command: try again in a moment
└── StatementRefused    the statement is wrong, or could not be carried out
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from deploy.clients.http import open_http
from deploy.clients.http_login import HttpLogin, trust_problem

Json = dict[str, Any]

_JSON: Final = "application/vnd.ksql.v1+json"
_EXAMPLE: Final = "http://host:8088"
_CLOSE_SECONDS: Final = 2.0
_LINE_CHARACTERS_MAX: Final = 64_000_000
"""A longer row is not one of ours: the answer would fill the memory."""
_BETWEEN: Final = "[,] \t\r\n"
"""What stands between the objects of an array."""


class SqlCallError(Exception):
    """Root of what the client raises."""

    def __init__(self, message: str, *, status: int = 0, code: int = 0, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """The HTTP status, or 0 without an answer."""
        self.code = code
        """ksqlDB's code, such as 40001."""
        self.entities: list[Json] = list((body or {}).get("entities") or [])
        """What the statements before the one that failed have answered."""


class ServerUnreachable(SqlCallError):
    """The service did not answer in time."""


class LoginRefused(SqlCallError):
    """The service does not know this user, or does not let the user do this."""


class NotReady(SqlCallError):
    """The service cannot answer yet."""


class StatementRefused(SqlCallError):
    """The statement is wrong, or could not be carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What goes with a statement."""

    properties: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    sequence: int | None = None
    """The last command that the service has to know before it runs the statement."""

    def body(self, text: str) -> Json:
        """The body of a request."""
        body: Json = {
            "ksql": text,
            "streamsProperties": dict(self.properties),
            "sessionVariables": dict(self.variables),
        }
        return body if self.sequence is None else {**body, "commandSequenceNumber": self.sequence}


class SqlClient:
    """The API as methods; all raise `SqlCallError`."""

    def __init__(self, url: str, *, timeout_seconds: float, login: HttpLogin | None = None) -> None:
        """Raises ValueError for an invalid address, and errors of the cluster's client if the login cannot be used."""
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = open_http(self.url, example=_EXAMPLE, timeout_seconds=timeout_seconds, login=login)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    def info(self) -> Json:
        """Version, cluster and state of the service."""
        answer = self._ask("GET", "/info")
        found = answer.get("KsqlServerInfo") if isinstance(answer, dict) else None
        if not isinstance(found, dict):
            raise StatementRefused(f"{self.url} is no service of SQL over topics: it does not answer /info as one")
        return found

    def execute(self, text: str, session: Session) -> list[Json]:
        """Run statements, but for SELECT and PRINT; returns an object for each that has something to tell."""
        answer = self._ask("POST", "/ksql", session.body(text))
        if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
            raise StatementRefused(f"{self.url} did not answer with a list of objects")
        return answer

    def check_property(self, name: str) -> None:
        """Raise `StatementRefused` unless a session may set this property."""
        self._ask("GET", f"/is_valid_property/{quote(name, safe='')}")

    def command_status(self, command: str) -> Json:
        """How far a command has come: `status` and `message`."""
        answer: Json = self._ask("GET", f"/status/{quote(command, safe='/')}")
        return answer

    @contextmanager
    def rows(self, text: str, session: Session, *, idle_seconds: float | None = None) -> Iterator[Iterator[Json]]:
        """Run a SELECT; what comes is a header, rows and a last message, each an object of ksqlDB's.

        Without a limit on how long nothing may come, it waits for good: a push query may have no rows for days. The
        query ends with the block.
        """
        with self._stream(text, session, idle_seconds) as parts:
            closing: list[str] = []
            try:
                yield _items(parts, closing.append)
            finally:
                for query in closing:
                    self._close(query)

    @contextmanager
    def lines(self, text: str, session: Session) -> Iterator[Iterator[str]]:
        """Run a PRINT; its lines come as they are."""
        with self._stream(text, session) as parts:
            yield _lines(parts)

    @contextmanager
    def _stream(self, text: str, session: Session, idle_seconds: float | None = None) -> Iterator[Iterator[str]]:
        timeout = httpx2.Timeout(self._timeout_seconds, read=idle_seconds)
        with (
            self._reporting(),
            self._http.stream(
                "POST", f"{self.url}/query", json=session.body(text), headers={"accept": _JSON}, timeout=timeout
            ) as answer,
        ):
            if not answer.is_success:
                answer.read()
                raise _error(answer)
            yield answer.iter_text()

    def _close(self, query: str) -> None:
        """End a query by its id; one that has ended by itself is not known any more."""
        with suppress(httpx2.HTTPError):
            self._http.post(f"{self.url}/close-query", json={"queryId": query}, timeout=_CLOSE_SECONDS)

    def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        with self._reporting():
            answer = self._http.request(method, self.url + path, json=body, headers={"accept": _JSON})
        if not answer.is_success:
            raise _error(answer)
        try:
            return json.loads(answer.content)
        except ValueError:
            raise StatementRefused(f"the answer is not JSON; is {self.url} a service of SQL over topics?") from None

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Raise failures of the connection as our own."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise ServerUnreachable(f"{self.url}: no answer in time") from error
        except (httpx2.RemoteProtocolError, httpx2.ReadError) as error:
            raise StatementRefused(f"{self.url} broke off its answer: {error}. Its log says why") from error
        except httpx2.HTTPError as error:
            reason = trust_problem(error) or str(error) or type(error).__name__
            raise ServerUnreachable(f"{self.url}: {reason}") from error


def error_of(body: Mapping[str, Any], *, status: int = 200) -> SqlCallError:
    """The error for an object of ksqlDB's with `error_code` and `message`."""
    code = body.get("error_code")
    number = code if isinstance(code, int) else status * 100
    message = str(body.get("message") or f"HTTP {status}")
    kind: type[SqlCallError] = StatementRefused
    if number // 100 in (401, 403):
        kind = LoginRefused
    elif number // 100 == 503:
        kind = NotReady
    return kind(message, status=status, code=number, body=body)


def _error(answer: httpx2.Response) -> SqlCallError:
    try:
        body = json.loads(answer.content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"message": f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip()}
    return error_of(body, status=answer.status_code)


def _lines(parts: Iterator[str]) -> Iterator[str]:
    """The lines of a text as they come; empty ones are left out."""
    pending = ""
    for part in parts:
        *whole, pending = (pending + part).split("\n")
        yield from filter(str.strip, whole)
        if len(pending) > _LINE_CHARACTERS_MAX:
            raise StatementRefused("the service sent a row that is too long to be shown")
    if pending.strip():
        yield pending


def _items(parts: Iterator[str], found_query: Callable[[str], None]) -> Iterator[Json]:
    """The objects of a JSON array as they come: each as soon as it is complete, wherever lines end."""
    decoder, pending = json.JSONDecoder(), ""
    for part in parts:
        pending = (pending + part).lstrip(_BETWEEN)
        while pending and "}" in part:
            try:
                item, end = decoder.raw_decode(pending)
            except ValueError:
                break  # the rest of it is on its way
            pending = pending[end:].lstrip(_BETWEEN)
            yield _checked(item, found_query)
        if len(pending) > _LINE_CHARACTERS_MAX:
            raise StatementRefused("the service sent a row that is too long to be shown")
    if pending:
        raise StatementRefused("the service sent something that is not JSON, or stopped in the middle of a row")


def _checked(item: Any, found_query: Callable[[str], None]) -> Json:
    """An object of a streamed answer; raises the error that it holds."""
    if not isinstance(item, dict):
        raise StatementRefused("the service sent a row that is not an object")
    if error := item.get("errorMessage"):
        raise error_of(error if isinstance(error, dict) else {"message": str(error)})
    if query := (item.get("header") or {}).get("queryId"):
        found_query(str(query))
    return item
