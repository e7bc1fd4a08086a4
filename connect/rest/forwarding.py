"""Forwards requests to the leader, and limits the time of every request.

Where callers log in, the forwarding worker signs who the caller is; the credentials stay where they were sent.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final

import httpx2
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from typing_extensions import override

from connect.api.errors import ConfigError, ConnectError
from connect.rest.guard import Guard
from connect.runtime.errors import BadRequest, Conflict, Failed, NotLeader, Timeout
from connect.runtime.signatures import HEADER, Signatures, digest
from connect.settings import ConnectSettings
from core_broker.client.errors import ClientError
from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import envelope
from core_broker.service.web.limits import BoundedRoute
from core_broker.web_access.callers import caller_of, set_caller
from core_broker.web_access.errors import AccessError, Forbidden

log = logging.getLogger(__name__)

_SENT: Final = ("content-type", "accept", "authorization")
_SIGNED_BODY: Final = "caudal.connect.signed_body"
_RETURNED: Final = ("content-type", "location", "retry-after")
_NEXT_HOP: Final = {None: "true", "true": "false"}
"""The next value of the query parameter `forward`: two hops at most, since the leader may change meanwhile."""


class Leader:
    """The leader, as seen from another worker."""

    def __init__(self, settings: ConnectSettings, signatures: Signatures | None = None) -> None:
        """Without `signatures` the leader lets everyone in."""
        self._settings = settings
        self._signatures = signatures

    def send(self, request: Request, body: bytes, *, error: NotLeader) -> Response:
        """Forward a request to the leader, and return its response."""
        hop = request.query_params.get("forward")
        if error.url is None:
            raise error
        if hop not in _NEXT_HOP:
            raise Conflict(error.message)
        query = [(key, value) for key, value in request.query_params.multi_items() if key != "forward"]
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        try:
            # A new client each time: forwarded requests are rare, and the leader changes.
            with httpx2.Client(
                verify=_tls(self._settings) if error.url.startswith("https:") else False,
                timeout=self._settings.rest_request_timeout_ms / 1000,
                trust_env=False,
            ) as client:
                forwarded = client.build_request(
                    request.method,
                    f"{error.url.rstrip('/')}{request.scope['path']}",
                    params=[*query, ("forward", _NEXT_HOP[hop])],
                    content=body or None,
                    headers=headers,
                )
                self._sign(forwarded, request, body)
                response = client.send(forwarded)
        except httpx2.HTTPError as failure:
            log.warning("request could not be forwarded", extra={"leader": error.url, "reason": str(failure)})
            raise Failed(f"IO Error trying to forward REST request: {failure}") from failure
        returned = {name: response.headers[name] for name in _RETURNED if name in response.headers}
        return Response(response.content, status_code=response.status_code, headers=returned)

    def _sign(self, forwarded: httpx2.Request, request: Request, body: bytes) -> None:
        """Replace the credentials of the caller by a signature; they are sent only while there is no key."""
        if self._signatures is None:
            return
        target = forwarded.url.raw_path.decode("ascii")
        signature = self._signatures.sign(caller_of(request), method=request.method, target=target, body=body)
        if signature is not None:
            forwarded.headers.pop("authorization", None)
            forwarded.headers[HEADER] = signature


def with_forwarded(app: Application, *, others: Application, signatures: Signatures) -> Application:
    """Take requests that other workers have signed to `app`, with the caller that they name, and `others` to theirs."""

    async def let_in(scope: Scope, receive: Receive, send: Send) -> None:
        header = _header(scope) if scope["type"] == "http" else None
        if header is None:
            await others(scope, receive, send)
            return
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        try:
            statement = signatures.check(header, method=scope["method"], target=target.decode("latin-1"))
        except AccessError as error:
            # The signature may have been made with a key that was replaced a moment ago.
            log.warning("a forwarded request is refused", extra={"reason": error.message})
            response = envelope(
                error.status, error.status, error.message, retry_after_seconds=error.retry_after_seconds
            )
            await response(scope, receive, send)
            return
        set_caller(scope, statement.caller)
        scope[_SIGNED_BODY] = statement.body
        await app(scope, receive, send)

    return let_in


def _header(scope: Scope) -> str | None:
    found = [value for name, value in scope["headers"] if name == HEADER.encode()]
    return found[0].decode("latin-1") if len(found) == 1 else None


def led_route(leader: Leader, *, timeout_seconds: float, guard: Guard) -> type[APIRoute]:
    """Guarded routes with a time limit, which forward to the leader on NotLeader, and map errors to responses."""

    class LedRoute(BoundedRoute):
        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            path = self.path

            async def handle_led(request: Request) -> Response:
                api = f"{request.scope['method']} {path}"
                guard.admit(request, api)
                body = await request.body()
                if request.scope.get(_SIGNED_BODY) not in (None, digest(body)):
                    raise Forbidden("The signature of a forwarded request is that of another body")
                content_type = request.headers.get("content-type", "json").partition(";")[0]
                if body and self.body_field is not None and not content_type.strip().lower().endswith("json"):
                    raise HTTPException(415)  # as Kafka Connect answers to a form, which curl sends by default
                replayed = Request(request.scope, _replay(body, request.receive))
                try:
                    response = await in_time(handle(replayed), timeout_seconds)
                except NotLeader as error:
                    return await asyncio.to_thread(leader.send, request, body, error=error)
                except ConfigError as error:
                    raise BadRequest(str(error)) from error
                except (ConnectError, ClientError) as error:
                    raise Failed(str(error)) from error
                guard.note(request, api)
                return response

            return handle_led

    return LedRoute


async def in_time(work: Coroutine[Any, Any, Response], seconds: float) -> Response:
    """The response, or Timeout. A blocked thread cannot be stopped: it continues, and its result is discarded."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.add_done_callback(_forget)
        raise Timeout
    return task.result()


def _forget(task: asyncio.Future[Response]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.warning("a request failed after it had timed out", extra={"reason": str(error)})


def _replay(body: bytes, receive: Receive) -> Receive:
    """Make a body that was read readable again."""
    unread = [body]

    async def again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return again


def _tls(settings: ConnectSettings) -> ssl.SSLContext:
    """The certificates of the listeners: the workers of a cluster share their settings."""
    context = ssl.create_default_context(cafile=settings.ssl_ca_location)
    if settings.ssl_ca_location and settings.ssl_certificate_location:
        context.load_cert_chain(settings.ssl_certificate_location, settings.ssl_key_location, settings.ssl_key_password)
    return context
