"""Creates topics on behalf of clients: those of the coordinators, and those that a client asks for by name.

Any broker gets such requests, but only the controller creates topics. So they are sent to it, and the client's answer
waits a moment until this broker has learnt of the new topic from the metadata log.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from core_broker.cluster.controller.topics import NewTopic, internal_topic
from core_broker.cluster.controller_channel import Requester
from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import create_topics as wire
from core_broker.settings import BrokerSettings

R = TypeVar("R", bound=Message)
_CALL_TIMEOUT_SECONDS: Final = 10.0
IMAGE_WAIT_SECONDS: Final = 2.0
"""How long a client's request waits until this broker has learnt of a topic that the controller has created."""


class ControllerCalls(Protocol):
    """`ControllerChannel`."""

    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        """Send a request to the active controller; raises BrokerError."""

    async def call_for(
        self, client: Requester, request: Message, response: type[R], *, timeout_seconds: float = 30.0
    ) -> R:
        """Send a request in the name of a client; raises BrokerError."""


class MetadataSource(Protocol):
    """`MetadataQuorum`."""

    @property
    def image(self) -> MetadataImage:
        """The committed metadata that this broker has applied."""

    def subscribe(self, listener: Callable[[MetadataImage, Sequence[Message]], None]) -> None:
        """Call `listener` after each committed batch."""


class TopicCreation:
    """Has topics created by the controller; concurrent requests for the same topic share one request."""

    def __init__(
        self,
        channel: ControllerCalls,
        metadata: MetadataSource,
        *,
        settings: Callable[[], BrokerSettings],
        image_wait_seconds: float = IMAGE_WAIT_SECONDS,
    ) -> None:
        self._channel = channel
        self._metadata = metadata
        self._settings = settings
        self._image_wait_seconds = image_wait_seconds
        self._in_progress: dict[tuple[str, Requester | None], asyncio.Future[BrokerError | None]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        metadata.subscribe(self._on_metadata)

    async def ensure_internal_topic(self, name: str) -> None:
        """Create the topic of a coordinator if it is missing; on return this broker knows it. Raises BrokerError."""
        errors = await self.auto_create([name])
        if name in errors:
            raise errors[name]
        if name not in self._metadata.image.topics:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"topic {name} was created only just now")

    async def auto_create(self, names: Iterable[str], requester: Requester | None = None) -> dict[str, BrokerError]:
        """Create those topics that do not exist; returns the errors of those that could not be created.

        The controller asks whether the client may do that; without a client, whether this broker may.
        A topic without an error may still be missing in this broker's metadata, if the controller is far ahead.
        """
        missing = [name for name in dict.fromkeys(names) if name not in self._metadata.image.topics]
        # Shared with requests of the same client only: what it may not do, another one may.
        whose = {name: (name, requester) for name in missing}
        others = {name: self._in_progress[whose[name]] for name in missing if whose[name] in self._in_progress}
        new = [name for name in missing if name not in others]
        errors = await self._create(new, requester) if new else {}
        for name, outcome in others.items():
            if (error := await asyncio.shield(outcome)) is not None:
                errors[name] = error
        return errors

    async def _create(self, names: list[str], requester: Requester | None) -> dict[str, BrokerError]:
        loop = asyncio.get_running_loop()
        futures = {name: loop.create_future() for name in names}
        self._in_progress.update({(name, requester): future for name, future in futures.items()})
        errors = dict.fromkeys(names, BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the creation was interrupted"))
        try:
            errors = await self._request(names, requester)
            await self._wait_until_known([name for name in names if name not in errors])
        finally:
            for name, future in futures.items():
                del self._in_progress[name, requester]
                future.set_result(errors.get(name))
        return errors

    async def _request(self, names: list[str], requester: Requester | None) -> dict[str, BrokerError]:
        settings, broker_count = self._settings(), len(self._metadata.image.live_brokers())
        topics = [_creatable(_new_topic(name, settings, broker_count)) for name in names]
        request = wire.CreateTopicsRequest(topics=topics, timeout_ms=int(_CALL_TIMEOUT_SECONDS * 1000))
        try:
            if requester is None:
                response = await self._channel.call(request, timeout_seconds=_CALL_TIMEOUT_SECONDS)
            else:
                response = await self._channel.call_for(
                    requester, request, wire.CreateTopicsResponse, timeout_seconds=_CALL_TIMEOUT_SECONDS
                )
        except BrokerError as error:
            return dict.fromkeys(names, error)
        if not isinstance(response, wire.CreateTopicsResponse):
            raise TypeError(f"CreateTopics was answered with {type(response).__name__}")
        return {
            topic.name: BrokerError(ErrorCode(topic.error_code), topic.error_message)
            for topic in response.topics
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        }

    async def _wait_until_known(self, names: list[str]) -> None:
        try:
            async with asyncio.timeout(self._image_wait_seconds):
                while any(name not in self._metadata.image.topics for name in names):
                    changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.add(changed)
                    await changed
        except TimeoutError:
            pass  # the client asks again

    def _on_metadata(self, _image: MetadataImage, _records: Sequence[Message]) -> None:
        waiting, self._waiting = self._waiting, set()
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)


def _new_topic(name: str, settings: BrokerSettings, broker_count: int) -> NewTopic:
    if name in INTERNAL_TOPICS:
        return internal_topic(name, settings, broker_count=broker_count)
    # As in Kafka, the defaults of the broker that the client uses count, not those of the controller.
    return NewTopic(
        name=name, partition_count=settings.num_partitions, replication_factor=settings.default_replication_factor
    )


def _creatable(topic: NewTopic) -> wire.CreatableTopic:
    return wire.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[wire.CreatableTopicConfig(key, value) for key, value in topic.configs.items()],
    )
