"""Producers by their guarantees, shared by all requests, and what happens when the cluster is unreachable."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal, Protocol, cast

import msgspec

from core_broker.client.errors import ClientError, Fatal, NotAllowed, Unreachable
from core_broker.client.reachability import Reachability
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration
from rest_proxy.errors import ProxyError, from_cluster, too_many, unavailable
from rest_proxy.identity import Identity
from rest_proxy.produce.async_producer import AsyncProducer, InFlight, LibraryProducer, make
from rest_proxy.settings import ProxySettings

log = logging.getLogger(__name__)

Acks = Literal["all", "1", "0"]
_ACKS: dict[str, Acks] = {"all": "all", "-1": "all", "1": "1", "0": "0"}
_RETRY_SECONDS = 0.2
_FLAGS = {"true": True, "false": False}


class Guarantees(msgspec.Struct, frozen=True):
    """The delivery guarantees that a request asks for."""

    acks: Acks = "all"
    idempotent: bool = True

    @classmethod
    def parse(cls, acks: str | None = None, idempotence: str | None = None) -> "Guarantees":
        """Parse the query parameters `acks` and `idempotence`; raises ProxyError if they are invalid."""
        if acks is None and idempotence is None:
            return STRONGEST
        wanted = _ACKS.get(acks.lower()) if acks is not None else "all"
        if wanted is None:
            raise ProxyError(400, f"Parameter acks={acks!r}: must be all, -1, 1 or 0")
        flag = _FLAGS.get(idempotence.lower()) if idempotence is not None else wanted == "all"
        if flag is None:
            raise ProxyError(400, f"Parameter idempotence={idempotence!r}: must be true or false")
        if flag and wanted != "all":
            raise ProxyError(400, f"Parameter idempotence=true: needs acks=all, not acks={acks}")
        return cls(wanted, flag)


STRONGEST = Guarantees()
"""An acknowledged record is in the log exactly once, on all in-sync replicas."""
_UNDEMANDING = Guarantees("1", False)
"""A producer with these guarantees asks the cluster for nothing."""


class RecordLog(Protocol):
    """Where the senders of both APIs send records: `Producers`, or a log in memory."""

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees
    ) -> Sequence[Delivery | ProxyError]:
        """One outcome per record, in their order; raises ProxyError when none was tried."""


class Producers:
    """Sends records with the guarantees that each request asks for; belongs to one event loop."""

    def __init__(
        self,
        settings: ProxySettings,
        reachability: Reachability,
        *,
        identity: Identity | None = None,
        in_flight: InFlight | None = None,
    ) -> None:
        """`in_flight` counts the records of all producers of this proxy, if there are more."""
        self._settings = settings
        self._reachability = reachability
        self._identity = identity or Identity(settings)
        self._in_flight = in_flight or InFlight()
        self._starting = asyncio.Lock()
        self._producers: dict[Guarantees, AsyncProducer] = {}
        self._watchers: dict[Guarantees, asyncio.Task[None]] = {}
        self.is_gone = False
        """Whether no broker answered when the cluster was last checked."""
        self._closing: set[asyncio.Task[None]] = set()

    def warm_up(self) -> None:
        """Start the producer that most requests need: an idempotent one takes half a second to get its id."""
        self._add(STRONGEST, make(*self._configuration(STRONGEST)))

    def check_settings(self) -> None:
        """Raise ClientError if no producer could be made with the settings."""
        make(*self._configuration(_UNDEMANDING))

    async def send(self, record: OutgoingRecord, guarantees: Guarantees = STRONGEST) -> Delivery | ProxyError:
        """Send one record; raises ProxyError when it was not tried."""
        return (await self.send_all([record], guarantees))[0]

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees = STRONGEST
    ) -> list[Delivery | ProxyError]:
        """Send records; returns one outcome for each, in their order. Errors among the records stay what they are.

        Raises ProxyError when none was tried: the cluster is unreachable, or too much is in flight.
        """
        good = [record for record in records if type(record) is OutgoingRecord]
        if not good:
            return cast("list[Delivery | ProxyError]", list(records))
        producer = await self._usable_producer(guarantees)
        # No other task runs between this check and the send, so the room is still there.
        self._check_room(len(good))
        outcomes = await producer.send_all(good)
        if len(good) == len(records):
            return [self._map_error(outcome, producer) for outcome in outcomes]
        sent = iter(outcomes)
        return [
            record if isinstance(record, ProxyError) else self._map_error(next(sent), producer) for record in records
        ]

    async def close(self) -> None:
        """Wait for the records in flight, for as long as the service may take to stop."""
        for watcher in self._watchers.values():
            watcher.cancel()
        timeout = self._settings.shutdown_timeout_ms / 1000
        await asyncio.gather(*(producer.close(timeout) for producer in self._producers.values()), *self._closing)

    def _check_room(self, count: int) -> None:
        settings = self._settings
        in_flight = self._in_flight.records
        if in_flight and in_flight + count > settings.produce_in_flight_max_records:
            limit = settings.produce_in_flight_max_records
            raise too_many(f"{in_flight} records are in flight (produce.in.flight.max.records={limit})")
        if (in_flight := self._in_flight.bytes) > settings.produce_in_flight_max_bytes:
            limit = settings.produce_in_flight_max_bytes
            raise too_many(f"{in_flight} bytes are in flight (produce.in.flight.max.bytes={limit})")

    async def _usable_producer(self, guarantees: Guarantees) -> AsyncProducer:
        producer = self._producers.get(guarantees)
        if producer is not None and producer.failure:
            self._retire(producer, guarantees)
            producer = None
        if producer is None:
            await self._require_cluster()
            producer = await self._start(guarantees)
        elif producer.is_down or self.is_gone:
            await self._require_cluster()
            producer.trust()
        return producer

    async def _require_cluster(self) -> None:
        if self._reachability.is_believed() and not self._identity.owner:
            return
        try:
            await asyncio.to_thread(self._check)
        except (Unreachable, NotAllowed) as error:
            raise from_cluster(error) from error

    def _check(self) -> None:
        self._reachability.check()
        self._identity.check()

    async def _start(self, guarantees: Guarantees) -> AsyncProducer:
        """Start a producer, unless another request has done so meanwhile."""
        async with self._starting:
            if (found := self._producers.get(guarantees)) is not None:
                return found
            configuration = self._configuration(guarantees)
            is_slow = self._identity.is_slow
            library = await asyncio.to_thread(make, *configuration) if is_slow else make(*configuration)
            return self._add(guarantees, library)

    def _configuration(self, guarantees: Guarantees) -> tuple[ClientSettings, Configuration]:
        settings = self._settings
        return self._identity.kafka(settings.producer_properties), _configuration(settings, guarantees)

    def _add(self, guarantees: Guarantees, library: LibraryProducer) -> AsyncProducer:
        producer = AsyncProducer(library, total=self._in_flight)
        self._producers[guarantees] = producer
        self._watchers[guarantees] = asyncio.create_task(self._watch(producer, guarantees))
        return producer

    async def _watch(self, producer: AsyncProducer, guarantees: Guarantees) -> None:
        """Fail records that were not sent soon after the cluster becomes unreachable, instead of at their time-out.

        Requests that arrive meanwhile fail at once. A producer that has failed is replaced.
        """
        while True:
            await producer.down()
            if producer.failure or await self._is_refused(producer):
                break
            self._reachability.doubt()
            while not await self._is_cluster_up():
                producer.distrust()
                producer.drop_unsent()
                await asyncio.sleep(_RETRY_SECONDS)
            producer.trust()
        self._retire(producer, guarantees)

    async def _is_refused(self, producer: AsyncProducer) -> bool:
        """Whether the cluster accepts the caller no more. A single broker may refuse it because it has just started."""
        if producer.refusal is None or not self._identity.owner:
            return False
        try:
            await asyncio.to_thread(self._identity.check, fresh_seconds=0)
        except NotAllowed:
            return True
        return False

    async def _is_cluster_up(self) -> bool:
        is_gone = False
        try:
            await asyncio.to_thread(self._reachability.check)
        except Unreachable:
            is_gone = True
        if is_gone != self.is_gone:
            message = "no broker of the cluster answers" if is_gone else "the cluster answers again"
            log.warning(message, extra={"bootstrap.servers": self._settings.address})
        self.is_gone = is_gone
        return not is_gone

    def _retire(self, producer: AsyncProducer, guarantees: Guarantees) -> None:
        """Drop a producer, so that the next request starts a new one: after a fatal error librdkafka sends nothing."""
        if self._producers.get(guarantees) is producer:
            reason = producer.failure or producer.refusal
            log.warning("producer failed and will be replaced", extra={"reason": str(reason)})
            del self._producers[guarantees]
            self._watchers.pop(guarantees).cancel()
            closing = asyncio.create_task(producer.close(0))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _map_error(self, outcome: Delivery | ClientError, producer: AsyncProducer) -> Delivery | ProxyError:
        if isinstance(outcome, Delivery):
            return outcome
        is_refused = producer.refusal is not None and (isinstance(outcome, Fatal) or bool(self._identity.owner))
        if is_refused and isinstance(outcome, Fatal | Unreachable):
            outcome = producer.refusal or outcome
        if isinstance(outcome, Fatal):
            return unavailable(
                f"The producer failed and is replaced; whether the record was written is not known: {outcome}"
            )
        return from_cluster(outcome, address=self._settings.address)


def _configuration(settings: ProxySettings, guarantees: Guarantees) -> Configuration:
    return {
        "acks": guarantees.acks,
        "enable.idempotence": guarantees.idempotent,
        # Records with a key go to the partition that Java's producer, and thereby Confluent's proxy, would choose.
        "partitioner": "murmur2_random",
        # Long enough to batch the records of one request, which halves their cost in librdkafka.
        "linger.ms": 0.5,
        "message.timeout.ms": settings.kafka_timeout_ms,
        "message.max.bytes": min(settings.request_max_bytes, 1_000_000_000),
        "queue.buffering.max.messages": max(settings.produce_in_flight_max_records, 10_000),
        "queue.buffering.max.kbytes": min(2_097_151, 64 * 1024 + settings.produce_in_flight_max_bytes // 1024 * 2),
        # Requests to the broker are small and must not wait for the response to earlier ones.
        "socket.nagle.disable": True,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        # Fail soon if a topic does not exist, but not at once: another broker may just be creating it.
        "topic.metadata.propagation.max.ms": 2000,
    }
