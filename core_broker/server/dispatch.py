"""From a request frame to its response: find the handler, decode the request, encode the response."""

import logging
from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext, Services
from core_broker.handlers.table import BY_KEY, Answer, Api
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import encode_response, parse_client_id
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


class UnknownRequest(Exception):
    """An unsupported API key or version, for which no response can be encoded; the connection has to be closed."""


def dispatch(
    frame: memoryview, header: tuple[int, int, int], client: Client, services: Services
) -> Answer | Awaitable[Answer]:
    """Answer one request, now or later; `header` is the frame's `unpack_header`.

    Raises DecodeError or UnknownRequest when no response is possible.
    """
    key, version, correlation_id = header
    api = BY_KEY.get(key)
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
    assert api.handler is not None
    try:
        response = api.handler(request, context)
    except BrokerError as error:
        response = _error_response(api, error)
    if isawaitable(response):
        return _encode_later(api, response, context)
    return _encode(api, response, context)


async def _encode_later(api: Api, response: Awaitable[Message], context: RequestContext) -> Answer:
    try:
        message = await response
    except BrokerError as error:
        message = _error_response(api, error)
    return _encode(api, message, context)


def _encode(api: Api, response: Message, context: RequestContext) -> bytearray:
    return encode_response(
        response,
        context.api_version,
        context.correlation_id,
        flexible_header=api.has_flexible_response_header(context.api_version),
    )


def _error_response(api: Api, error: BrokerError) -> Message:
    """A response with nothing but the error, for APIs whose response has a top-level error code."""
    fields: dict[str, Any] = {"error_code": int(error.code)}
    if "error_message" in api.response.__struct_fields__:
        fields["error_message"] = error.message
    if "error_code" not in api.response.__struct_fields__:
        raise error
    return api.response(**fields)


def _answer_unsupported(api: Api | None, key: int, version: int, correlation_id: int, client: Client) -> bytearray:
    """Only ApiVersions has a response to an unsupported version (KIP-511)."""
    if api is not None and key == ApiVersionsRequest.API_KEY:
        response = ApiVersionsResponse(
            ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(api.key, api.first_version, api.last_version)]
        )
        return encode_response(response, 0, correlation_id, flexible_header=False)
    name = "unknown API" if api is None else f"{api.name} v{api.first_version}-{api.last_version}"
    raise UnknownRequest(f"key {key} version {version} from {client.software}: {name}")


__all__ = ["UnknownRequest", "dispatch"]
