"""The names that a service of SQL knows, for the prompt and for live tables; asked once, until something changes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from deploy.clients.sql import Session, SqlCallError, SqlClient

_ASKED: Final = "SHOW STREAMS; SHOW TABLES; SHOW TOPICS; SHOW QUERIES; SHOW FUNCTIONS;"
_LISTS: Final = (
    ("streams", "sources", "name"),
    ("tables", "sources", "name"),
    ("topics", "topics", "name"),
    ("queries", "queries", "id"),
    ("functions", "functions", "name"),
)
"""Under which key an answer lists what, and what each is called."""


class KnownNames:
    """Names by kind. An unanswered question leaves them empty: completion is a help, and no reason to stop."""

    def __init__(self, client: Callable[[], SqlClient]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._lists: dict[str, list[str]] | None = None
        self._sources: dict[str, Mapping[str, Any] | None] = {}

    def forget(self) -> None:
        """Ask again when a name is needed next: a statement may have changed them."""
        with self._lock:
            self._lists = None
            self._sources.clear()

    def of_kind(self, kind: str) -> Sequence[str]:
        """`sources`, `topics`, `queries` or `functions`."""
        with self._lock:
            if self._lists is None:
                self._lists = self._ask_lists()
            return self._lists.get(kind, [])

    def columns_of(self, source: str) -> Sequence[str]:
        """The columns of a stream or table."""
        found = self._description(source)
        return [] if found is None else [str(field["name"]) for field in found.get("fields") or ()]

    def keys_of(self, source: str) -> Sequence[str] | None:
        """The key columns of a table; None for a stream, and for what is not known."""
        found = self._description(source)
        if found is None or found.get("type") != "TABLE":
            return None
        fields = found.get("fields") or ()
        return [str(field["name"]) for field in fields if "KEY" in (field.get("type"), field.get("fieldType"))]

    def _description(self, source: str) -> Mapping[str, Any] | None:
        with self._lock:
            if source not in self._sources:
                self._sources[source] = self._ask_source(source)
            return self._sources[source]

    def _ask_source(self, source: str) -> Mapping[str, Any] | None:
        quoted = source.replace("`", "``")
        try:
            answers = self._client().execute(f"DESCRIBE `{quoted}`;", Session())
        except SqlCallError:
            return None
        return next((answer["sourceDescription"] for answer in answers if "sourceDescription" in answer), None)

    def _ask_lists(self) -> dict[str, list[str]]:
        try:
            answers = self._client().execute(_ASKED, Session())
        except SqlCallError:
            return {}
        names: dict[str, list[str]] = {}
        for answer in answers:
            for key, kind, field in _LISTS:
                names.setdefault(kind, []).extend(str(item[field]) for item in answer.get(key) or ())
        return names
