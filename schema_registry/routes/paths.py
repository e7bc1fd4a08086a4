"""Rewrite paths before they are routed: they stay percent-encoded, and `/contexts/<name>/` moves into the subject."""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import envelope
from core_broker.service.web.paths import RawPaths

_WITH_SUBJECT_NEXT = {"subjects", "deks"}
_SCOPED = {"config", "mode"}


class RegistryPaths:
    """Rewrites the path of every request; an invalid context name is a 400."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._paths = RawPaths(self._serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._paths(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/contexts/"):
            try:
                query = scope["query_string"].decode("latin-1")
                scope["path"], query = in_context(scope["path"], query, scope["method"])
            except ValueError as error:
                await envelope(400, 400, str(error))(scope, receive, send)
                return
            scope["query_string"] = query.encode("latin-1")
        await self._app(scope, receive, send)


def in_context(path: str, query: str, method: str = "GET") -> tuple[str, str]:
    """Path and query without `/contexts/<name>/`; the name moves into the subject.

    >>> in_context("/contexts/.staging/subjects/orders-value/versions", "")
    ('/subjects/:.staging:orders-value/versions', '')
    >>> in_context("/contexts/staging/schemas/ids/7", "")
    ('/schemas/ids/7', 'subject=%3A.staging%3A')
    """
    _, _, name, *rest = path.split("/")
    prefix = context_prefix(unquote(name))
    if not rest:
        return f"/contexts/{name}", query
    parts = _with_subjects(rest, quote(prefix, safe=":."))
    return "/" + "/".join(parts), _with_query(parts, query, prefix, method)


def context_prefix(name: str) -> str:
    """The prefix of subjects in this context: `:.staging:`, or nothing in the default context."""
    name = name.removeprefix(":").removesuffix(":")
    if ":" in name or not name:
        raise ValueError(f"Context name '{name}' is not valid: it must not be empty or contain a colon")
    dotted = name if name.startswith(".") else f".{name}"
    return "" if dotted == "." else f":{dotted}:"


def _with_subjects(parts: list[str], prefix: str) -> list[str]:
    found: list[str] = []
    subject_is_next = False
    for part in parts:
        if subject_is_next:
            found.append(part if _is_qualified(unquote(part)) else prefix + part)
            subject_is_next = False
            continue
        subject_is_next = part in _WITH_SUBJECT_NEXT or (not found and part in _SCOPED)
        found.append(part)
    if len(found) == 1 and found[0] in _SCOPED and prefix:
        found.append(prefix)
    return found


def _with_query(parts: list[str], query: str, prefix: str, method: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if parts[:2] == ["schemas", "ids"]:
        return _add_prefix(pairs, "subject", prefix)
    if parts in (["schemas"], ["subjects"]) or parts[-1] == "keks":
        return _add_prefix(pairs, "subjectPrefix", prefix)
    if parts[0].startswith("associations") and method in ("POST", "PUT", "PATCH"):
        return urlencode([*(pair for pair in pairs if pair[0] != "context"), ("context", prefix)])
    return query


def _add_prefix(pairs: list[tuple[str, str]], name: str, prefix: str) -> str:
    """The query string with the prefix before each value of one parameter, which is added if it is missing."""
    given = [value for key, value in pairs if key == name] or [""]
    qualified = [(name, value if _is_qualified(value) else prefix + value) for value in given]
    return urlencode([*(pair for pair in pairs if pair[0] != name), *qualified])


def _is_qualified(subject: str) -> bool:
    return subject.startswith((":.", ":*:"))
