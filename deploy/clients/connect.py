"""A client of Kafka Connect's REST API, with what the tools need of it.

Its errors are grouped by what the user does about them:

ConnectCallError
├── WorkerUnreachable   no answer in time: start a worker, or say where one is
├── LoginRefused        log in, or as another user, or ask for a right
├── ConnectorNotFound   there is no such connector, task or plugin
├── Conflict            a connector of that name exists, or the workers are just changing leaders
└── RequestRefused      the request or the configuration in it is wrong, or the worker could not carry it out
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from deploy.clients.http import open_http
from deploy.clients.http_login import HttpLogin, trust_problem

Query = Mapping[str, str | int | bool | list[str]]
Json = dict[str, Any]


class ConnectCallError(Exception):
    """Root of what the client raises; `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class WorkerUnreachable(ConnectCallError):
    """The worker did not answer in time."""


class LoginRefused(ConnectCallError):
    """The worker does not know this user, or does not let the user do this."""


class ConnectorNotFound(ConnectCallError):
    """There is no such connector, task or plugin."""


class Conflict(ConnectCallError):
    """A connector of that name exists, or the workers are just changing leaders."""


class RequestRefused(ConnectCallError):
    """The request is wrong, or the worker could not carry it out."""


_BY_STATUS: Final = {401: LoginRefused, 403: LoginRefused, 404: ConnectorNotFound, 409: Conflict}


class ConnectClient:
    """The API as methods; all raise `ConnectCallError`."""

    def __init__(self, url: str, *, timeout_seconds: float, login: HttpLogin | None = None) -> None:
        """Raises ValueError for an invalid address, and errors of the cluster's client if the login cannot be used."""
        self._url = url.rstrip("/")
        self._http = open_http(self._url, example="http://host:8083", timeout_seconds=timeout_seconds, login=login)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    # --- connectors ---

    def connectors(self) -> dict[str, Json]:
        """Every connector by name, with its `info` and its `status`."""
        listed: dict[str, Json] = self._ask("GET", "/connectors", query={"expand": ["info", "status"]})
        return listed

    def info(self, name: str) -> Json:
        """A connector as it was configured."""
        return self._object("GET", _path(name))

    def create(self, body: Json) -> Json:
        """Create a connector: name, config, initial_state, initial_offsets."""
        return self._object("POST", "/connectors", body=body)

    def put_config(self, name: str, config: Mapping[str, object]) -> Json:
        """Create a connector, or give it a whole new configuration."""
        return self._object("PUT", f"{_path(name)}/config", body=config)

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self._ask("DELETE", _path(name))

    # --- states ---

    def status(self, name: str) -> Json:
        """The states of a connector and its tasks."""
        return self._object("GET", f"{_path(name)}/status")

    def set_target(self, name: str, word: str) -> None:
        """`pause`, `resume` or `stop` a connector."""
        self._ask("PUT", f"{_path(name)}/{word}")

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Json | None:
        """Restart a connector; returns its status when its tasks are included."""
        query: Query = {"includeTasks": include_tasks, "onlyFailed": only_failed}
        answer: Json | None = self._ask("POST", f"{_path(name)}/restart", query=query)
        return answer

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._ask("POST", f"{_path(name)}/tasks/{task}/restart")

    # --- offsets and topics ---

    def offsets(self, name: str) -> list[Json]:
        """The offsets of a connector."""
        return list(self._object("GET", f"{_path(name)}/offsets")["offsets"])

    def alter_offsets(self, name: str, offsets: list[Json]) -> str:
        """Change the offsets of a connector; returns the worker's message."""
        return str(self._object("PATCH", f"{_path(name)}/offsets", body={"offsets": offsets})["message"])

    def reset_offsets(self, name: str) -> str:
        """Forget the offsets of a connector; returns the worker's message."""
        return str(self._object("DELETE", f"{_path(name)}/offsets")["message"])

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        return list(self._object("GET", f"{_path(name)}/topics")[name]["topics"])

    def reset_topics(self, name: str) -> None:
        """Forget which topics a connector has used."""
        self._ask("PUT", f"{_path(name)}/topics/reset")

    # --- plugins ---

    def plugins(self, *, connectors_only: bool) -> list[Json]:
        """The plugins that configurations may name."""
        return list(self._ask("GET", "/connector-plugins", query={"connectorsOnly": connectors_only}))

    def plugin_keys(self, plugin: str) -> list[Json]:
        """The keys that a plugin understands."""
        return list(self._ask("GET", f"/connector-plugins/{_segment(plugin)}/config"))

    def validate(self, plugin: str, config: Mapping[str, object]) -> Json:
        """The worker's check of a configuration."""
        return self._object("PUT", f"/connector-plugins/{_segment(plugin)}/config/validate", body=config)

    # --- dead letters ---

    def dead_letters(self, name: str, query: Query) -> Json:
        """Some dead letters of a connector: `topic` and `records`."""
        return self._object("GET", f"{_path(name)}/dlq", query=query)

    def redrive(self, name: str, body: Json) -> Json:
        """Send dead letters through their connector again."""
        return self._object("POST", f"{_path(name)}/dlq/redrive", body=body)

    # --- access rules ---

    def access_rules(self) -> list[Json]:
        """The access rules of Connect, as its API has them."""
        return list(self._ask("GET", "/security/acls"))

    def add_access_rules(self, rules: Sequence[Json]) -> None:
        """Add access rules; those that exist stay."""
        self._ask("POST", "/security/acls", body=rules)

    def remove_access_rules(self, rules: Sequence[Json]) -> None:
        """Remove access rules; those that do not exist are ignored."""
        self._ask("DELETE", "/security/acls", body=rules)

    # --- requests ---

    def _object(self, method: str, path: str, *, body: object = None, query: Query | None = None) -> Json:
        answer = self._ask(method, path, body=body, query=query)
        if not isinstance(answer, dict):
            raise RequestRefused(
                f"{method} {path}: the answer is not an object; is {self._url} a Connect worker?", status=502
            )
        return answer

    def _ask(self, method: str, path: str, *, body: object = None, query: Query | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"accept": "application/json", **({} if content is None else {"content-type": "application/json"})}
        params = {key: str(value).lower() if isinstance(value, bool) else value for key, value in (query or {}).items()}
        try:
            answer = self._http.request(method, self._url + path, content=content, headers=headers, params=params)
        except httpx2.TimeoutException as error:
            raise WorkerUnreachable(f"{self._url}: no answer in time") from error
        except httpx2.HTTPError as error:
            reason = trust_problem(error) or str(error) or type(error).__name__
            raise WorkerUnreachable(f"{self._url}: {reason}") from error
        if not answer.is_success:
            raise _BY_STATUS.get(answer.status_code, RequestRefused)(_message(answer), status=answer.status_code)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise RequestRefused(f"the answer is not JSON; is {self._url} a Connect worker?", status=502) from None


def _message(answer: httpx2.Response) -> str:
    """The message of Kafka Connect's error body, or the status where there is no such body."""
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip()


def _path(name: str) -> str:
    return f"/connectors/{_segment(name)}"


def _segment(text: str) -> str:
    return quote(text, safe="")
