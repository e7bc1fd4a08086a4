"""From a request frame to its response: find the handler, decode the request, encode the response."""

import logging
from collections.abc import Awaitable

import msgspec

from core_broker.cluster.controller_channel import has_not_controller_error
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.api import Answer, Api, Appended
from core_broker.handlers.context import RequestContext, Services
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import SIZE_BYTES, encode_response, finish_response, parse_client_id
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

log = logging.getLogger(__name__)


class Client(msgspec.Struct):
    """The peer of one connection, as far as known."""

    host: str
    port: int
    listener_name: str
    local_host: str
    """Our address that it connected to."""
    software: str = "unknown"
    """Name and version from its ApiVersions request."""
    is_controller_listener: bool = False
    """Whether it connected to a controller listener, which has other APIs."""


class UnknownRequest(Exception):
    """An unsupported API key or version, for which no response can be encoded; the connection has to be closed."""


def dispatch(
    frame: memoryview, header: tuple[int, int, int], client: Client, services: Services
) -> Answer | Appended | Awaitable[Answer]:
    """Answer one request, now or later; `header` is the frame's `unpack_header`.

    Raises DecodeError or UnknownRequest when no response is possible.
    """
    key, version, correlation_id = header
    api = (CONTROLLER_BY_KEY if client.is_controller_listener else BROKER_BY_KEY).get(key)
    if api is None or not api.first_version <= version <= api.last_version:
        return _answer_unsupported(api, key, version, correlation_id, client)
    client_id, body = parse_client_id(frame, flexible=version >= api.flexible_since)
    context = RequestContext(
        services, key, version, correlation_id, client_id, client.host, client.listener_name, client.local_host
    )
    if api.raw_handler is not None:
        return api.raw_handler(frame, body, context)
    request = decode(api.request, version, frame, body)
    if key == ApiVersionsRequest.API_KEY:
        assert isinstance(request, ApiVersionsRequest)
        client.software = f"{request.client_software_name} {request.client_software_version}".strip() or "unknown"
    if api.is_forwarded and not client.is_controller_listener:
        # The frame is part of a buffer that is about to be reused.
        return _ask_controller(api, request, bytes(frame), context)
    if api.is_async:
        # A connection that is closed cancels this before it begins; a handler that was called by now would remain.
        return _answer_later(api, request, context)
    assert api.handler is not None
    try:
        response = api.handler(request, context)
    except BrokerError as error:
        response = error_response(request, api.response, error)
    assert isinstance(response, Message), f"the handler of {api.name} must be a coroutine function to wait"
    return api.encode(response, context)


async def call_handler(request: Message, services: Services) -> Message:
    """Answer a request of this node itself, without encoding it."""
    assert request.API_KEY is not None, "only requests have a handler"
    api = CONTROLLER_BY_KEY[request.API_KEY]
    context = RequestContext(services, api.key, api.last_version, 0, None, "127.0.0.1", "", "")
    return await api.run(request, context)


async def _answer_later(api: Api, request: Message, context: RequestContext) -> Answer:
    return api.encode(await api.run(request, context), context)


async def _ask_controller(api: Api, request: Message, frame: bytes, context: RequestContext) -> Answer:
    """Have the active controller answer, which may be this node, and no longer be it before the answer is ready."""
    if context.services.metadata.is_leader:
        message = await api.run(request, context)
        if not has_not_controller_error(message):
            return api.encode(message, context)
    return await _forward(api, request, frame, context)


async def _forward(api: Api, request: Message, frame: bytes, context: RequestContext) -> Answer:
    """Have the active controller answer."""
    channel = context.services.controller_channel
    try:
        response = await channel.forward(frame, principal=context.principal, client_host=context.client_host)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            raise UnknownRequest(f"{api.name} v{context.api_version}: {error.message}") from error
        return api.encode(error_response(request, api.response, error), context)
    return finish_response(bytearray(SIZE_BYTES) + response)


def _answer_unsupported(api: Api | None, key: int, version: int, correlation_id: int, client: Client) -> bytearray:
    """Only ApiVersions has a response to an unsupported version (KIP-511)."""
    if api is not None and key == ApiVersionsRequest.API_KEY:
        response = ApiVersionsResponse(
            ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(api.key, api.first_version, api.last_version)]
        )
        return encode_response(response, 0, correlation_id, flexible_header=False)
    name = "unknown API" if api is None else f"{api.name} v{api.first_version}-{api.last_version}"
    raise UnknownRequest(f"key {key} version {version} from {client.software}: {name}")


__all__ = ["UnknownRequest", "call_handler", "dispatch"]
