"""From a request frame to its response: find the handler, decode the request, encode the response."""

import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Final

from core_broker.cluster.controller_channel import has_not_controller_error
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.api import Answer, Api, Appended, Screened
from core_broker.handlers.context import RequestContext, Services
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.session import Session
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.handlers.usage import MeasuredCoroutine, RequestUsage, Stopwatch
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import (
    CORRELATION_ID_BYTES,
    SIZE_BYTES,
    encode_request,
    encode_response,
    finish_response,
    parse_client_id,
)
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

log = logging.getLogger(__name__)

_OWN_SESSION: Final = Session(host="127.0.0.1", listener_name="", local_host="")
"""That of requests of this node to itself."""


class UnknownRequest(Exception):
    """An unsupported API key or version, for which no response can be encoded; the connection has to be closed."""


def dispatch(
    frame: memoryview, header: tuple[int, int, int], session: Session, services: Services
) -> Answer | Appended | Awaitable[Answer]:
    """Answer one request, now or later; `header` is the frame's `unpack_header`.

    Raises DecodeError or UnknownRequest when no response is possible.
    """
    key, version, correlation_id = header
    api = (CONTROLLER_BY_KEY if session.is_controller_listener else BROKER_BY_KEY).get(key)
    if api is None or not api.first_version <= version <= api.last_version:
        return _answer_unsupported(api, key, version, correlation_id, session)
    client_id, body = parse_client_id(frame, flexible=version >= api.flexible_since)
    context = RequestContext(services, key, version, correlation_id, client_id, session, services.authorizer)
    if services.quotas.is_active:
        return _dispatch_measured(api, frame, body, context)
    if api.raw_handler is not None:
        return api.raw_handler(frame, body, context)
    return _dispatch_decoded(api, frame, body, context)


def _dispatch_measured(
    api: Api, frame: memoryview, body: int, context: RequestContext
) -> Answer | Appended | Awaitable[Answer]:
    """Answer a request while the cluster has client quotas: what it uses is measured."""
    stopwatch = Stopwatch(context.services.clock)
    context.usage = RequestUsage(
        context.services.quotas, context.session, context.client_id, stopwatch=stopwatch, is_exempt=api.is_exempt
    )
    handle = _dispatch_decoded if api.raw_handler is None else _dispatch_raw
    answer = handle(api, frame, body, context)
    stopwatch.pause()
    if isinstance(answer, Appended):
        return Appended(MeasuredCoroutine(answer.response, stopwatch))
    return MeasuredCoroutine(answer, stopwatch) if isinstance(answer, Coroutine) else answer


def _dispatch_raw(
    api: Api, frame: memoryview, body: int, context: RequestContext
) -> Answer | Appended | Awaitable[Answer]:
    assert api.raw_handler is not None, f"{api.name} has no handler of its own frames"
    return api.raw_handler(frame, body, context)


def _dispatch_decoded(api: Api, frame: memoryview, body: int, context: RequestContext) -> Answer | Awaitable[Answer]:
    key, version, session = context.api_key, context.api_version, context.session
    request = api.decode(frame, body, version)
    if key == ApiVersionsRequest.API_KEY:
        assert isinstance(request, ApiVersionsRequest)
        session.software = f"{request.client_software_name} {request.client_software_version}".strip() or "unknown"
    if api.is_forwarded and not session.is_controller_listener:
        # The frame is part of a buffer that is about to be reused.
        return _ask_controller(api, request, bytes(frame), context)
    if api.is_async:
        # A connection that is closed cancels this before it begins; a handler that was called by now would remain.
        return _answer_later(api, request, context)
    try:
        response = api.start(request, context)
    except BrokerError as error:
        response = error_response(request, api.response, error)
    assert isinstance(response, Message), f"the handler of {api.name} must be a coroutine function to wait"
    api.audit(request, response, context)
    return api.encode(response, context)


async def call_handler(request: Message, services: Services) -> Message:
    """Answer a request of this node itself, which may do everything, without encoding it."""
    assert request.API_KEY is not None, "only requests have a handler"
    api = CONTROLLER_BY_KEY[request.API_KEY]
    context = RequestContext(services, api.key, api.last_version, 0, None, _OWN_SESSION, authorizer=None)
    return await api.run(request, context)


async def _answer_later(api: Api, request: Message, context: RequestContext) -> Answer:
    return api.encode(await api.run(request, context), context)


async def _ask_controller(api: Api, request: Message, frame: bytes, context: RequestContext) -> Answer:
    """Have the active controller answer what this node does not refuse itself."""
    if api.refuse is not None and (refused := api.refuse(request, context)) is not None:
        api.audit(request, refused, context)
        return api.encode(refused, context)
    screened = None if api.screen is None else await api.screen(request, context)
    if screened is not None:
        return api.encode(await _ask_for_rest(api, screened, context), context)
    answer = await _controller_answer(api, request, frame, context)
    if isinstance(answer, Message):
        return api.encode(answer, context)
    if context.usage is not None:
        # The controller may throttle the client, too. The longer time counts, and only this node can enforce it.
        return api.encode(_decode_response(api, answer, context), context)
    return finish_response(bytearray(SIZE_BYTES) + answer)


async def _ask_for_rest(api: Api, screened: Screened, context: RequestContext) -> Message:
    """Refuse a part of a request, and have the active controller answer the rest."""
    response, rest = screened.refusal, screened.rest
    api.audit(screened.refused, response, context)
    if rest is not None:
        frame = encode_request(rest, context.api_version, context.correlation_id, context.client_id)
        answer = await _controller_answer(api, rest, frame, context)
        decoded: Any = answer if isinstance(answer, Message) else _decode_response(api, answer, context)
        decoded.responses.extend(response.responses)
        response = decoded
    assert isinstance(response, Message)
    return response


async def _controller_answer(api: Api, request: Message, frame: bytes, context: RequestContext) -> Message | bytes:
    """The response of the active controller, encoded if that is another node.

    It may be this node, and no longer be it before the answer is ready.
    """
    if context.services.metadata.is_leader:
        message = await api.run(request, context)
        if not has_not_controller_error(message):
            return message
    channel = context.services.controller_channel
    try:
        return await channel.forward(frame, principal=context.session.principal, client_host=context.client_host)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            raise UnknownRequest(f"{api.name} v{context.api_version}: {error.message}") from error
        return error_response(request, api.response, error)


def _decode_response(api: Api, response: bytes, context: RequestContext) -> Message:
    body = CORRELATION_ID_BYTES + api.has_flexible_response_header(context.api_version)
    return decode(api.response, context.api_version, response, body)


def _answer_unsupported(api: Api | None, key: int, version: int, correlation_id: int, session: Session) -> bytearray:
    """Only ApiVersions has a response to an unsupported version (KIP-511)."""
    if api is not None and key == ApiVersionsRequest.API_KEY:
        response = ApiVersionsResponse(
            ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(api.key, api.first_version, api.last_version)]
        )
        return encode_response(response, 0, correlation_id, flexible_header=False)
    name = "unknown API" if api is None else f"{api.name} v{api.first_version}-{api.last_version}"
    raise UnknownRequest(f"key {key} version {version} from {session.software}: {name}")


__all__ = ["UnknownRequest", "call_handler", "dispatch"]
