"""Requests of transactions to other brokers: one at a time to each broker, with all that came up meanwhile in the next.

Under load, one request carries the markers or verifications of many transactions; otherwise each is sent at once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import ErrorCode
from core_broker.peers.peers import Address, PeerError
from core_broker.protocol.fields import Message

CALL_TIMEOUT_SECONDS: Final = 10.0
"""Longer than a partition waits for its replicas; a broker that does not answer by then is probably being replaced."""

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class CallPeer(Protocol):
    """`Peers.call`."""

    async def __call__(
        self, address: Address, request: Message, *, timeout_seconds: float, purpose: str = ""
    ) -> Message:
        """Send a request and wait for its response; raises PeerError."""


class BrokerCalls:
    """Requests to brokers by their id, over the listener that brokers use among themselves."""

    def __init__(self, call_peer: CallPeer | None, *, image: Callable[[], MetadataImage], listener_name: str) -> None:
        self._call_peer = call_peer
        """None on a single node, which has no others to call."""
        self._image = image
        self._listener_name = listener_name

    async def call(self, broker_id: int, request: Message, response: type[R], *, purpose: str) -> R:
        """Send a request to a broker and wait for its response; raises PeerError."""
        broker = self._image().brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None or self._call_peer is None:
            raise PeerError(f"broker {broker_id} has no endpoint for listener {self._listener_name}")
        answer = await self._call_peer(
            Address(endpoint.host, endpoint.port), request, timeout_seconds=CALL_TIMEOUT_SECONDS, purpose=purpose
        )
        if not isinstance(answer, response):
            raise PeerError(f"broker {broker_id} answered with {type(answer).__name__}")
        return answer


class Question(Generic[T]):
    """Something that another broker is asked for, and its answer."""

    __slots__ = ("answer", "content")

    def __init__(self, content: T) -> None:
        self.content = content
        self.answer: ErrorCode | None = None


Send = Callable[[int, list[Question[T]]], Awaitable[None]]
"""Sends questions to a broker in one request and sets their answers; may raise PeerError."""


class QuestionBatches(Generic[T]):
    """Collects questions to each broker while a request to it is under way."""

    def __init__(self, send: Send[T]) -> None:
        self._send = send
        self._waiting: defaultdict[int, list[Question[T]]] = defaultdict(list)
        self._sending: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(self, broker_id: int, content: T) -> ErrorCode:
        """The broker's answer, or NETWORK_EXCEPTION if there is none."""
        question = Question(content)
        self._waiting[broker_id].append(question)
        async with self._sending[broker_id]:
            if question.answer is None:  # otherwise the request of another question has included it
                await self._send_waiting(broker_id)
        return question.answer or ErrorCode.NONE

    async def _send_waiting(self, broker_id: int) -> None:
        batch = self._waiting.pop(broker_id)
        try:
            await self._send(broker_id, batch)
        except PeerError:
            pass
        finally:
            for question in batch:
                if question.answer is None:
                    question.answer = ErrorCode.NETWORK_EXCEPTION
