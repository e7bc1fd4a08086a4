"""Statements about connectors: they are passed to Connect, and its answers are converted to ksqlDB's shapes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import httpx2

from streams.model.sources import Source
from streams.server.entities import entity
from streams.server.errors import BadRequest, BadStatement, ServerFailed
from streams.sql.language.tree.expressions import Literal, StringLiteral
from streams.sql.language.tree.statements import ConnectorKind, CreateConnector, Property, Shown

JSON: TypeAlias = Any
_CONNECT_SECONDS: Final = 5.0
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_KINDS: Final = {Shown.SOURCE_CONNECTORS: "source", Shown.SINK_CONNECTORS: "sink"}


class Connectors:
    """Connect, as its REST API is. Threads may share it."""

    def __init__(self, url: str, *, timeout_seconds: float = 30.0) -> None:
        self._url = url.rstrip("/")
        timeout = httpx2.Timeout(timeout_seconds, connect=_CONNECT_SECONDS)
        # No proxy from the environment between us and localhost.
        self._http = httpx2.Client(timeout=timeout, trust_env=False, follow_redirects=False) if url else None

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    def create(self, statement: CreateConnector, text: str) -> JSON:
        """CREATE SOURCE or SINK CONNECTOR."""
        name = statement.name.name
        if self._find(name) is not None:
            message = f"Connector {name} already exists"
            if statement.if_not_exists:
                return entity("warning_entity", text, message=message)
            raise BadStatement(f"{message}. DROP CONNECTOR {name} first, or choose another name.")
        config = _config(statement.properties)
        info = self._ask("POST", "/connectors", body={"name": name, "config": config})
        given = str(info.get("type", "")).lower()
        wanted = "source" if statement.kind is ConnectorKind.SOURCE else "sink"
        if given in ("source", "sink") and given != wanted:
            self._ask("DELETE", _path(name))
            raise BadStatement(
                f"{config.get('connector.class')} is a {given} connector: write CREATE {given.upper()} CONNECTOR."
            )
        return entity("connector_info", text, info=info)

    def drop(self, name: str, text: str, *, if_exists: bool) -> JSON:
        """DROP CONNECTOR."""
        if self._find(name) is None:
            message = f"Connector '{name}' does not exist."
            if not if_exists:
                raise BadStatement(message)
            return entity("warning_entity", text, message=message)
        self._ask("DELETE", _path(name))
        return entity("drop_connector", text, connectorName=name)

    def list(self, what: Shown, text: str) -> JSON:
        """SHOW CONNECTORS, or one kind of them."""
        listed = self._ask("GET", "/connectors?expand=info&expand=status")
        kind = _KINDS.get(what)
        found = [_listed(name, about) for name, about in sorted(listed.items())]
        return entity("connector_list", text, connectors=[one for one in found if kind in (None, one["type"])])

    def plugins(self, text: str) -> JSON:
        """SHOW CONNECTOR PLUGINS."""
        found = [
            {"className": one["class"], "type": str(one.get("type", "")).lower(), "version": one.get("version") or ""}
            for one in self._ask("GET", "/connector-plugins")
        ]
        return entity("connector_plugins_list", text, connectorsPlugins=found)

    def describe(self, name: str, text: str, sources: Iterable[Source], shown: Mapping[str, JSON]) -> JSON:
        """DESCRIBE CONNECTOR, with the streams and tables over the topics that it uses (`shown`, by name)."""
        info = self._find(name)
        if info is None:
            raise BadStatement(f"Connector '{name}' does not exist.")
        status = self._ask("GET", f"{_path(name)}/status")
        topics = sorted(self._ask("GET", f"{_path(name)}/topics").get(name, {}).get("topics", []))
        return entity(
            "connector_description",
            text,
            connectorClass=str(info["config"].get("connector.class", "")),
            status=status,
            sources=[shown[source.name] for source in sources if source.topic in topics and source.name in shown],
            topics=topics,
        )

    def _find(self, name: str) -> JSON | None:
        return self._ask("GET", _path(name), may_be_missing=True)

    def _ask(self, method: str, path: str, *, body: JSON = None, may_be_missing: bool = False) -> JSON:
        if self._http is None:
            raise BadRequest("There is no Connect: set ksql.connect.url on this server, such as http://localhost:8083")
        try:
            answer = self._http.request(method, self._url + path, json=body, headers={"accept": "application/json"})
        except httpx2.HTTPError as error:
            raise ServerFailed(f"Connect cannot be reached: {str(error) or type(error).__name__}") from error
        if may_be_missing and answer.status_code == _NOT_FOUND:
            return None
        if not answer.is_success:
            raise _refusal(answer)
        try:
            return answer.json() if answer.content else {}
        except ValueError:
            raise ServerFailed("Connect's answer is not JSON: is ksql.connect.url the address of a worker?") from None


def _refusal(answer: httpx2.Response) -> BadStatement | ServerFailed:
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip()
    if answer.is_server_error or answer.status_code == _CONFLICT:
        return ServerFailed(f"Connect could not do it: {message}")
    return BadStatement(f"Connect refuses it: {message}")


def _config(properties: Iterable[Property]) -> dict[str, str]:
    return {item.name: _text(item.value) for item in properties}


def _text(value: Literal) -> str:
    if isinstance(value, StringLiteral):
        return value.value
    found = getattr(value, "value", None)
    return str(found).lower() if isinstance(found, bool) else str(found)


def _listed(name: str, about: Mapping[str, JSON]) -> dict[str, JSON]:
    info, status = about.get("info", {}), about.get("status", {})
    tasks = [task.get("state") for task in status.get("tasks", [])]
    running = sum(state == "RUNNING" for state in tasks)
    state = str(status.get("connector", {}).get("state", "UNKNOWN"))
    if state == "RUNNING" and tasks:
        word = "RUNNING" if running == len(tasks) else "WARNING" if running else "FAILED"
        state = f"{word} ({running}/{len(tasks)} tasks RUNNING)"
    return {
        "name": name,
        "type": str(info.get("type", "unknown")).lower(),
        "className": info.get("config", {}).get("connector.class"),
        "state": state,
    }


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"
