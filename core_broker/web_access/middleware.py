"""Lets only callers in that have logged in: the outermost layer of an HTTP service."""

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import envelope
from core_broker.web_access.callers import set_caller
from core_broker.web_access.errors import AccessError
from core_broker.web_access.login import Login, Refused
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
        except Refused as refused:
            response = envelope(401, 401, refused.message)
            response.raw_headers.extend((b"www-authenticate", value) for value in _challenges(login, refused))
        except AccessError as error:
            response = envelope(error.status, error.code, error.message, retry_after_seconds=error.retry_after_seconds)
        else:
            set_caller(scope, caller)
            await app(scope, receive, send)
            return
        if counts is not None:
            counts.add(scope["method"], "other", str(response.status_code))
        await response(scope, receive, send)

    return log_in


def _challenges(login: Login, refused: Refused) -> list[bytes]:
    """What a caller may log in with (RFC 9110, RFC 6750, RFC 7617); nothing for certificates, which TLS asks for."""
    realm = f'realm="{login.realm}"'
    found = []
    if BASIC in login.methods:
        found.append(f'Basic {realm}, charset="UTF-8"')
    if BEARER in login.methods:
        found.append(f'Bearer {realm}, error="{refused.error}"' if refused.error else f"Bearer {realm}")
    return [value.encode() for value in found]
