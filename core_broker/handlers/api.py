"""One API of the table: its versions, its handler, and the responses around it."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from inspect import isawaitable
from typing import Any, TypeAlias

import msgspec

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.fetch_response import Chunk
from core_broker.protocol.fields import Message
from core_broker.protocol.frames import encode_response
from core_broker.protocol.messages.api_versions import ApiVersionsRequest

Answer: TypeAlias = bytearray | list[Chunk] | None
"""A complete response: bytes, or bytes and parts of files, or nothing at all (`acks=0`)."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The response to a request whose records are in the log: it only waits until they are flushed and committed."""

    response: Coroutine[Any, Any, Answer]

    def __await__(self) -> Generator[Any, Any, Answer]:
        return self.response.__await__()


RawHandler: TypeAlias = Callable[[memoryview, int, RequestContext], Answer | Appended | Awaitable[Answer]]
"""Decodes the request from its frame and encodes the response itself: the hot path."""

MessageHandler: TypeAlias = Callable[[Any, RequestContext], Message | Awaitable[Message]]
"""Takes a decoded request and returns a response, which dispatch encodes."""


class Api(msgspec.Struct, frozen=True):
    """One API: its handler and its versions."""

    key: int
    name: str
    first_version: int
    last_version: int
    flexible_since: int
    request: type[Message]
    response: type[Message]
    handler: MessageHandler | None = None
    raw_handler: RawHandler | None = None
    is_async: bool = False
    """Whether the handler is a coroutine function."""
    is_forwarded: bool = False
    """Whether only the active controller can answer: other nodes forward the request to it (KIP-590)."""

    def has_flexible_response_header(self, version: int) -> bool:
        """Whether response headers have tagged fields; never for ApiVersions, read before any version is agreed on."""
        return version >= self.flexible_since and self.key != ApiVersionsRequest.API_KEY

    async def run(self, request: Message, context: RequestContext) -> Message:
        """Run the handler of a decoded request; an error that it raises becomes a response."""
        assert self.handler is not None, f"{self.name} is decoded by its handler"
        try:
            response = self.handler(request, context)
            return await response if isawaitable(response) else response
        except BrokerError as error:
            return error_response(request, self.response, error)

    def encode(self, response: Message, context: RequestContext) -> bytearray:
        """The response as a frame."""
        return encode_response(
            response,
            context.api_version,
            context.correlation_id,
            flexible_header=self.has_flexible_response_header(context.api_version),
        )
