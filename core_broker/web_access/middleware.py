"""Lets only callers in that have logged in: the outermost layer of an HTTP service."""

from collections.abc import Iterator

from fastapi import Response

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import envelope
from core_broker.web_access.callers import set_caller
from core_broker.web_access.errors import AccessError, Refused
from core_broker.web_access.login import Login
from core_broker.web_access.settings import BASIC, BEARER


def with_login(app: Application, login: Login, *, counts: RequestCounts | None = None) -> Application:
    """Wrap an app so that every request has a caller (`caller_of`), and no other request reaches it.

    Everything that may answer a request, such as a cache, must be inside. `counts` are those of an app whose requests
    are counted further inside: they get the refused ones.
    """
    if not login.is_required:
        return app

    async def log_in(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"] in login.skip_paths:
            await app(scope, receive, send)
            return
        try:
            caller = await login.identify(scope)
        except AccessError as error:
            response = _refusal(error, login)
        else:
            set_caller(scope, caller)
            await app(scope, receive, send)
            return
        if counts is not None:
            counts.add(scope["method"], "other", str(response.status_code))
        if any(name == b"expect" for name, _ in scope["headers"]):
            # The server discards the body of a request that is answered already; this client will not send it.
            response.headers["connection"] = "close"
        await response(scope, receive, send)

    return log_in


def _refusal(error: AccessError, login: Login) -> Response:
    response = envelope(error.status, error.code, error.message, retry_after_seconds=error.retry_after_seconds)
    if isinstance(error, Refused):
        for challenge in _challenges(login, error):
            response.headers.append("www-authenticate", challenge)
    return response


def _challenges(login: Login, refused: Refused) -> Iterator[str]:
    """What a caller may log in with (RFC 6750, RFC 7617). TLS asks for certificates; there is no challenge for them."""
    realm = f'realm="{login.realm}"'
    if BASIC in login.methods:
        yield f'Basic {realm}, charset="UTF-8"'
    if BEARER in login.methods:
        yield f'Bearer {realm}, error="{refused.token_error}"' if refused.token_error else f"Bearer {realm}"
