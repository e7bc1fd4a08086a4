"""Envelope, key 58, version 0: a request of a client, forwarded to the active controller by a broker (KIP-590).

Supported: all APIs that brokers forward. The request is handled with the principal and the address of the client, and
the response is returned as the broker will send it to the client.
The sender must be a node of the cluster, and the client must have the rights that the request needs.
Ignored: nothing.

Errors: PRINCIPAL_DESERIALIZATION_FAILURE, INVALID_REQUEST (address of the client, API that is not forwarded),
UNSUPPORTED_VERSION (the request in the envelope cannot be decoded, so the client has to negotiate again) and
NOT_CONTROLLER (the broker has to look for the new controller).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

from core_broker.cluster.controller_channel import has_not_controller_error
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.api import Api
from core_broker.handlers.context import RequestContext
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.session import Session
from core_broker.handlers.usage import RequestUsage, Stopwatch
from core_broker.protocol.fields import Message
from core_broker.protocol.frames import HEADER_BYTES_MIN, SIZE_BYTES, parse_client_id, unpack_header
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.principals import decode_host, decode_principal

log = logging.getLogger(__name__)


def handler(apis: Iterable[Api]) -> Callable[[EnvelopeRequest, RequestContext], Awaitable[EnvelopeResponse]]:
    """The handler of envelopes around requests of these APIs."""
    by_key = {api.key: api for api in apis}

    async def handle(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
        """Handle the request in the envelope."""
        try:
            api, inner_request, inner_context = _open(request, context, by_key)
        except BrokerError as error:
            log.warning("envelope refused", extra={"sender": context.client_host, "reason": str(error)})
            return EnvelopeResponse(error_code=error.code)
        if not context.services.metadata.is_leader:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        response = await _run(api, inner_request, inner_context)
        if has_not_controller_error(response):
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return EnvelopeResponse(bytes(memoryview(api.encode(response, inner_context))[SIZE_BYTES:]))

    return handle


def _open(
    envelope: EnvelopeRequest, context: RequestContext, apis: dict[int, Api]
) -> tuple[Api, Message, RequestContext]:
    """The API, the decoded request and the client in an envelope; checked in the order of Kafka."""
    try:
        principal = decode_principal(envelope.request_principal)
    except DecodeError as error:
        raise BrokerError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    try:
        client_host = decode_host(envelope.client_host_address)
    except DecodeError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error
    frame = envelope.request_data
    try:
        if len(frame) < HEADER_BYTES_MIN:
            raise DecodeError(f"a request cannot have {len(frame)} bytes")
        key, version, correlation_id = unpack_header(frame, 0)
        api = apis.get(key)
        if api is None or not api.first_version <= version <= api.last_version:
            raise DecodeError(f"key {key} version {version} is not supported")
        client_id, body = parse_client_id(frame, flexible=version >= api.flexible_since)
        if not api.is_forwarded:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{api.name} must not be forwarded")
        request = api.decode(frame, body, version)
    except DecodeError as error:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
    session = Session(
        host=client_host,
        listener_name=context.listener_name,
        local_host=context.session.local_host,
        principal=principal,
    )
    usage = _usage(context, session, client_id)
    services = context.services
    forwarded = RequestContext(
        services, key, version, correlation_id, client_id, session, services.authorizer, usage=usage
    )
    return api, request, forwarded


def _usage(context: RequestContext, session: Session, client_id: str | None) -> RequestUsage | None:
    """The use of the request in the envelope."""
    if context.usage is not None:
        return context.usage.of_forwarded(session, client_id)
    quotas = context.services.quotas
    if not quotas.is_active:
        return None
    # The broker of this node asks for its client: what it changes counts, and its time is measured where it came in.
    stopwatch = Stopwatch(context.services.clock)
    stopwatch.pause()
    return RequestUsage(quotas, session, client_id, stopwatch=stopwatch, is_exempt=False)


async def _run(api: Api, request: Message, context: RequestContext) -> Message:
    """Run the handler. If it fails, the client gets an error: without a response the broker would send it again."""
    try:
        return await api.run(request, context)
    except Exception:
        log.exception("forwarded request failed", extra={"api": api.name})
        return error_response(request, api.response, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))
