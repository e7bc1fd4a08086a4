"""A client of Kafka Connect's REST API, as small as the tools need it."""

import json
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from deploy.connect_errors import WorkerUnreachable, from_answer

Query = Mapping[str, str | int | bool | list[str]]
Json = dict[str, Any]

_CONNECT_SECONDS: Final = 5.0


class ConnectClient:
    """The API as methods; all raise `deploy.connect_errors.ConnectCallError`."""

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        """ValueError for an address that is none."""
        timeout = httpx2.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS))
        self._url = url.rstrip("/")
        try:
            parsed = httpx2.URL(self._url)
        except httpx2.InvalidURL as error:
            raise ValueError(f"{url!r} is no address: {error}") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError(f"{url!r} must look like http://host:8083")
        # What the options do not say does not happen: no proxy of the environment between us and localhost.
        self._http = httpx2.Client(timeout=timeout, trust_env=False, follow_redirects=False)

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
        """How a connector and its tasks fare."""
        return self._object("GET", f"{_path(name)}/status")

    def set_target(self, name: str, word: str) -> None:
        """`pause`, `resume` or `stop` a connector."""
        self._ask("PUT", f"{_path(name)}/{word}")

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Json | None:
        """Start a connector again; gives its status when tasks are meant, too."""
        query: Query = {"includeTasks": include_tasks, "onlyFailed": only_failed}
        answer: Json | None = self._ask("POST", f"{_path(name)}/restart", query=query)
        return answer

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""
        self._ask("POST", f"{_path(name)}/tasks/{task}/restart")

    # --- offsets and topics ---

    def offsets(self, name: str) -> list[Json]:
        """How far a connector is."""
        return list(self._object("GET", f"{_path(name)}/offsets")["offsets"])

    def alter_offsets(self, name: str, offsets: list[Json]) -> str:
        """Change how far a connector is; gives what the worker says."""
        return str(self._object("PATCH", f"{_path(name)}/offsets", body={"offsets": offsets})["message"])

    def reset_offsets(self, name: str) -> str:
        """Let a connector begin anew; gives what the worker says."""
        return str(self._object("DELETE", f"{_path(name)}/offsets")["message"])

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        return list(self._object("GET", f"{_path(name)}/topics")[name]["topics"])

    def reset_topics(self, name: str) -> None:
        """Forget which topics a connector has used."""
        self._ask("PUT", f"{_path(name)}/topics/reset")

    # --- plugins ---

    def plugins(self, *, connectors_only: bool) -> list[Json]:
        """What configurations may name."""
        return list(self._ask("GET", "/connector-plugins", query={"connectorsOnly": connectors_only}))

    def plugin_keys(self, plugin: str) -> list[Json]:
        """The keys that a plugin understands."""
        return list(self._ask("GET", f"/connector-plugins/{_segment(plugin)}/config"))

    def validate(self, plugin: str, config: Mapping[str, object]) -> Json:
        """A configuration, checked."""
        return self._object("PUT", f"/connector-plugins/{_segment(plugin)}/config/validate", body=config)

    # --- dead letters ---

    def dead_letters(self, name: str, query: Query) -> Json:
        """Some dead letters of a connector: `topic` and `records`."""
        return self._object("GET", f"{_path(name)}/dlq", query=query)

    def redrive(self, name: str, body: Json) -> Json:
        """Give dead letters to their connector again."""
        return self._object("POST", f"{_path(name)}/dlq/redrive", body=body)

    # --- requests ---

    def _object(self, method: str, path: str, *, body: object = None, query: Query | None = None) -> Json:
        answer = self._ask(method, path, body=body, query=query)
        if not isinstance(answer, dict):
            raise from_answer(502, f"{method} {path}: the answer is no object; is {self._url} a Connect worker?")
        return answer

    def _ask(self, method: str, path: str, *, body: object = None, query: Query | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"accept": "application/json", **({} if content is None else {"content-type": "application/json"})}
        try:
            answer = self._http.request(
                method, self._url + path, content=content, headers=headers, params=_texts(query or {})
            )
        except httpx2.HTTPError as error:
            raise WorkerUnreachable(f"{self._url}: {_reason(error)}") from error
        if not answer.is_success:
            raise from_answer(answer.status_code, _message(answer))
        return _decoded(answer, self._url) if answer.content else None


def _decoded(answer: httpx2.Response, url: str) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise from_answer(502, f"the answer is no JSON; is {url} a Connect worker?") from None


def _message(answer: httpx2.Response) -> str:
    """What the envelope says, or the status where there is no envelope."""
    try:
        told = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip()
    return str(told)


def _reason(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "no answer in time"
    return str(error) or type(error).__name__


def _texts(query: Query) -> dict[str, str | list[str]]:
    return {key: value if isinstance(value, list) else _text(value) for key, value in query.items()}


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(name: str) -> str:
    return f"/connectors/{_segment(name)}"


def _segment(text: str) -> str:
    return quote(text, safe="")
