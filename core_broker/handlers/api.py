"""One API of the table: its versions, its handler, and the responses around it."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from inspect import isawaitable
from typing import Any, Final, TypeAlias

import msgspec

from core_broker.cluster.controller_channel import has_not_controller_error
from core_broker.errors import BrokerError
from core_broker.handlers.access import check_request
from core_broker.handlers.context import RequestContext
from core_broker.handlers.error_responses import error_response
from core_broker.handlers.fetch_response import Chunk
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import encode_response
from core_broker.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from core_broker.protocol.messages.delete_records import DeleteRecordsRequest
from core_broker.protocol.messages.describe_quorum import DescribeQuorumRequest
from core_broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from core_broker.protocol.messages.offset_delete import OffsetDeleteRequest
from core_broker.security.audit import REFUSALS

Answer: TypeAlias = bytearray | list[Chunk] | None
"""A complete response: bytes, or bytes and parts of files, or nothing at all (`acks=0`)."""


_CHANGED_BY_BROKERS: Final = frozenset(
    {
        DeleteRecordsRequest.API_KEY,
        AlterReplicaLogDirsRequest.API_KEY,
        DeleteGroupsRequest.API_KEY,
        OffsetDeleteRequest.API_KEY,
    }
)
_READ_BY_CONTROLLER: Final = frozenset({ListPartitionReassignmentsRequest.API_KEY, DescribeQuorumRequest.API_KEY})


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The response to a request whose records are in the log: it only waits until they are flushed and committed."""

    response: Coroutine[Any, Any, Answer]

    def __await__(self) -> Generator[Any, Any, Answer]:
        return self.response.__await__()


RawHandler: TypeAlias = Callable[[memoryview, int, RequestContext], Answer | Appended | Awaitable[Answer]]
"""Decodes the request from its frame and encodes the response itself: the hot path."""

MessageHandler: TypeAlias = Callable[[Any, RequestContext], Message | Awaitable[Message]]
"""Takes a decoded request and returns a response, which dispatch encodes."""

Refusal: TypeAlias = Callable[[Any, RequestContext], Message | None]
"""The response of a broker to a request that it does not forward because of how the client is connected; else None."""


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """A request of which the broker that the client is connected to refuses a part."""

    rest: Message | None
    """What is forwarded; None if nothing is left."""
    refused: Message
    """What is not."""
    refusal: Any
    """The response to what is refused. Like that to the rest, it has one item in `responses` for each resource."""


Screen: TypeAlias = Callable[[Any, RequestContext], Awaitable[Screened | None]]
"""Looks at a request before it is forwarded; None if all of it may be."""


class Api(msgspec.Struct, frozen=True):
    """One API: its handler and its versions."""

    key: int
    name: str
    first_version: int
    last_version: int
    flexible_since: int
    request: type[Message]
    response: type[Message]
    check: Callable[[Any], None] | None = None
    """Raises DecodeError for a decoded request that Kafka does not accept as one."""
    handler: MessageHandler | None = None
    raw_handler: RawHandler | None = None
    is_async: bool = False
    """Whether the handler is a coroutine function."""
    is_forwarded: bool = False
    """Whether only the active controller can answer: other nodes forward the request to it (KIP-590)."""
    is_exempt: bool = False
    """Whether no client quota applies: the request comes from another node."""
    refuse: Refusal | None = None
    """What the broker that the client is connected to checks, because the controller cannot."""
    screen: Screen | None = None
    """The same for parts of a request."""

    @property
    def is_change(self) -> bool:
        """Whether the API changes more than records, offsets and members of groups."""
        return self.key not in _READ_BY_CONTROLLER if self.is_forwarded else self.key in _CHANGED_BY_BROKERS

    def has_flexible_response_header(self, version: int) -> bool:
        """Whether response headers have tagged fields; never for ApiVersions, read before any version is agreed on."""
        return version >= self.flexible_since and self.key != ApiVersionsRequest.API_KEY

    def decode(self, frame: memoryview | bytes, body: int, version: int) -> Message:
        """Decode a request from its frame; raises DecodeError."""
        request = decode(self.request, version, frame, body)
        if self.check is not None:
            self.check(request)
        return request

    def start(self, request: Message, context: RequestContext) -> Message | Awaitable[Message]:
        """Hand a decoded request to the handler, if the client may send it. Raises BrokerError.

        This is the only way to a handler, so that none runs unchecked; handlers that decode themselves ask themselves.
        """
        assert self.handler is not None, f"{self.name} is decoded by its handler"
        check_request(request, context)
        return self.handler(request, context)

    async def run(self, request: Message, context: RequestContext) -> Message:
        """Run the handler of a decoded request; an error that it raises becomes a response."""
        try:
            answer = self.start(request, context)
            response = await answer if isawaitable(answer) else answer
        except BrokerError as error:
            response = error_response(request, self.response, error)
        self.audit(request, response, context)
        return response

    def audit(self, request: Message, response: Message, context: RequestContext) -> None:
        """Note a change in the audit log, where it is carried out: a controller that cannot has the next one do it.

        Of other requests it has those that are refused; what the authorizer refuses, it notes itself.
        """
        audit = context.services.audit
        if audit is None:
            return
        if self.is_change:
            if not has_not_controller_error(response):
                audit.changed(context.session.principal, context.client_host, self.name, request, response)
        elif (code := getattr(response, "error_code", 0)) in REFUSALS:
            audit.refused(context.session.principal, context.client_host, self.name, request, code)

    def encode(self, response: Message, context: RequestContext) -> bytearray:
        """The response as a frame, charged to the quotas of its client."""
        if context.usage is not None:
            context.usage.respond(response)
        return encode_response(
            response,
            context.api_version,
            context.correlation_id,
            flexible_header=self.has_flexible_response_header(context.api_version),
        )
