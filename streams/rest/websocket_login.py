"""Logins of websockets: they are no requests for the login of the other routes, and browsers open them anywhere."""

from typing import Final

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.web_access.callers import set_caller
from core_broker.web_access.errors import AccessError
from core_broker.web_access.login import Login

_REFUSED: Final = {"type": "websocket.close", "code": 1008, "reason": "The websocket needs a login"}
"""Before it was accepted, this is a response with status 403."""


def with_websocket_login(app: Application, login: Login) -> Application:
    """Wrap an app so that only callers who have logged in open websockets."""

    async def log_in(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if _is_of_foreign_page(scope):
                await send(_REFUSED)
                return
            if login.is_required:
                try:
                    caller = await login.identify(scope)
                except AccessError:
                    await send(_REFUSED)
                    return
                set_caller(scope, caller)
        await app(scope, receive, send)

    return log_in


def _is_of_foreign_page(scope: Scope) -> bool:
    """Whether a page of another origin has made a browser open it; the browser would add its user's password."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    return bool(origin) and origin.partition("://")[2] != headers.get(b"host", b"").decode("latin-1")
