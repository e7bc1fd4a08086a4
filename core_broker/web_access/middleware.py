"""Lets only callers in that have logged in: the outermost layer of an HTTP service."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from fastapi import Response

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import envelope
from core_broker.web_access.callers import BearerCredentials, set_caller
from core_broker.web_access.errors import AccessError, Forbidden, Refused
from core_broker.web_access.login import Login
from core_broker.web_access.settings import BASIC, BEARER

_UNAUTHENTICATED: Final = 401
_HARMLESS: Final = ("GET", "HEAD", "OPTIONS")
_OWN_PAGES: Final = (b"same-origin", b"none")


def with_login(
    app: Application, login: Login, *, counts: RequestCounts | None = None, origins: Collection[str] = ()
) -> Application:
    """Wrap an app so that every request has a caller (`caller_of`), and no other request reaches it.

    Everything that may answer a request, such as a cache, must be inside. `counts` are those of an app whose requests
    are counted further inside: they get the refused ones. `origins` are those whose pages may change something (CORS).
    """
    if not login.is_required:
        return app

    challenges = [(b"www-authenticate", text.encode()) for text in _challenges(login)]

    async def log_in(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"] in login.skip_paths:
            await app(scope, receive, send)
            return
        try:
            caller = await login.identify(scope)
            if not isinstance(caller.credentials, BearerCredentials) and _is_of_foreign_page(scope, origins):
                raise Forbidden("Pages of other origins may not change anything here")
        except AccessError as error:
            response = _refusal(error, login)
        else:
            set_caller(scope, caller)
            await app(scope, receive, _with_challenges(send, challenges))
            return
        if counts is not None:
            counts.add(scope["method"], "other", str(response.status_code))
        if any(name == b"expect" for name, _ in scope["headers"]):
            # The server discards the body of a request that is answered already; this client will not send it.
            response.headers["connection"] = "close"
        await response(scope, receive, send)

    return log_in


def _is_of_foreign_page(scope: Scope, origins: Collection[str]) -> bool:
    """Whether a page of another origin has made a browser send a request that may change something.

    The browser adds the password or the certificate of its user, who need not know (CSRF); it never adds a token.
    """
    if scope["method"] in _HARMLESS or "*" in origins:
        return False
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin in origins:
        return False
    if (site := headers.get(b"sec-fetch-site")) is not None:
        return site not in _OWN_PAGES
    return bool(origin) and origin.partition("://")[2] != headers.get(b"host", b"").decode("latin-1")


def _refusal(error: AccessError, login: Login) -> Response:
    response = envelope(error.status, error.code, error.message, retry_after_seconds=error.retry_after_seconds)
    if isinstance(error, Refused):
        for challenge in _challenges(login, error.token_error):
            response.headers.append("www-authenticate", challenge)
    return response


def _with_challenges(send: Send, challenges: Sequence[tuple[bytes, bytes]]) -> Send:
    """Let a 401 of the app itself say how to log in, too: another server may have refused what we accepted."""

    async def sending(message: Message) -> None:
        if message.get("status") == _UNAUTHENTICATED and message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *challenges]}
        await send(message)

    return sending


def _challenges(login: Login, token_error: str | None = None) -> Iterator[str]:
    """What a caller may log in with (RFC 6750, RFC 7617). TLS asks for certificates; there is no challenge for them."""
    realm = f'realm="{login.realm}"'
    if BASIC in login.methods:
        yield f'Basic {realm}, charset="UTF-8"'
    if BEARER in login.methods:
        yield f'Bearer {realm}, error="{token_error}"' if token_error else f"Bearer {realm}"
