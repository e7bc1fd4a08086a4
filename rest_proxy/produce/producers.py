"""Producers by what they promise, shared by all requests, and what happens when the cluster is gone."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal, cast

import msgspec

from core_broker.client.async_producer import AsyncProducer
from core_broker.client.errors import ClientError, Fatal, Unreachable
from core_broker.client.reachability import Reachability
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import Configuration
from rest_proxy.errors import ProxyError, from_cluster, too_many, unavailable
from rest_proxy.settings import ProxySettings

log = logging.getLogger(__name__)

Acks = Literal["all", "1", "0"]
_ACKS: dict[str, Acks] = {"all": "all", "-1": "all", "1": "1", "0": "0"}
_PAUSE_SECONDS = 0.2
_FLAGS = {"true": True, "false": False}


class Guarantees(msgspec.Struct, frozen=True):
    """What a request wants to be sure of."""

    acks: Acks = "all"
    idempotent: bool = True

    @classmethod
    def parse(cls, acks: str | None = None, idempotence: str | None = None) -> "Guarantees":
        """Read the query parameters `acks` and `idempotence`; raises ProxyError for what cannot be."""
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
"""Each record is in the log exactly once, on all replicas in sync, when it is acknowledged."""


class Producers:
    """Sends records with the guarantees that each request asks for; belongs to one event loop."""

    def __init__(self, settings: ProxySettings, reachability: Reachability) -> None:
        self._settings = settings
        self._reachability = reachability
        self._producers: dict[Guarantees, AsyncProducer] = {}
        self._watchers: dict[Guarantees, asyncio.Task[None]] = {}
        self.is_gone = False
        """Whether no broker of the cluster answers, as far as is known."""
        self._closing: set[asyncio.Task[None]] = set()

    def warm_up(self) -> None:
        """Make what most requests need: an idempotent producer takes half a second to be known to the cluster."""
        self._start(STRONGEST)

    @property
    def records_in_flight(self) -> int:
        """Records that are on their way to the cluster."""
        return sum(producer.records_in_flight for producer in self._producers.values())

    @property
    def bytes_in_flight(self) -> int:
        """Keys and values that are on their way to the cluster."""
        return sum(producer.bytes_in_flight for producer in self._producers.values())

    async def send(self, record: OutgoingRecord, guarantees: Guarantees = STRONGEST) -> Delivery | ProxyError:
        """What became of one record; raises ProxyError when it was not even tried."""
        return (await self.send_all([record], guarantees))[0]

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees = STRONGEST
    ) -> list[Delivery | ProxyError]:
        """One outcome per record, in their order; what is an error already stays one.

        Raises ProxyError when none was tried: the cluster is gone, or too much is on its way.
        """
        good = [record for record in records if type(record) is OutgoingRecord]
        if not good:
            return cast("list[Delivery | ProxyError]", list(records))
        producer = await self._usable(guarantees)
        # From here to the producer nobody else gets a turn: what there is room for is there still.
        self._check_room(len(good))
        outcomes = await producer.send_all(good)
        if len(good) == len(records):
            return [self._told(outcome) for outcome in outcomes]
        told = iter(outcomes)
        return [record if isinstance(record, ProxyError) else self._told(next(told)) for record in records]

    async def close(self) -> None:
        """Wait for what is on its way, as long as the service may take to stop."""
        for watcher in self._watchers.values():
            watcher.cancel()
        timeout = self._settings.shutdown_timeout_ms / 1000
        await asyncio.gather(*(producer.close(timeout) for producer in self._producers.values()), *self._closing)

    def _check_room(self, count: int) -> None:
        settings = self._settings
        flying = self.records_in_flight
        if flying and flying + count > settings.produce_in_flight_max_records:
            most = settings.produce_in_flight_max_records
            raise too_many(f"{flying} records are on their way to the cluster (produce.in.flight.max.records={most})")
        if (flying := self.bytes_in_flight) > settings.produce_in_flight_max_bytes:
            most = settings.produce_in_flight_max_bytes
            raise too_many(f"{flying} bytes are on their way to the cluster (produce.in.flight.max.bytes={most})")

    async def _usable(self, guarantees: Guarantees) -> AsyncProducer:
        producer = self._producers.get(guarantees)
        if producer is not None and producer.failure:
            self._retire(producer, guarantees)
            producer = None
        if producer is None:
            await self._require_cluster()
            # Another request may have been quicker while this one waited.
            producer = self._producers.get(guarantees) or self._start(guarantees)
        elif producer.is_down or self.is_gone:
            await self._require_cluster()
            producer.trust()
        return producer

    async def _require_cluster(self) -> None:
        if self._reachability.is_believed():
            return
        try:
            await asyncio.to_thread(self._reachability.check)
        except Unreachable as error:
            raise from_cluster(error) from error

    def _start(self, guarantees: Guarantees) -> AsyncProducer:
        settings = self._settings
        producer = AsyncProducer(
            settings.kafka(settings.producer_properties), defaults=_configuration(settings, guarantees)
        )
        self._producers[guarantees] = producer
        self._watchers[guarantees] = asyncio.create_task(self._watch(producer, guarantees))
        return producer

    async def _watch(self, producer: AsyncProducer, guarantees: Guarantees) -> None:
        """Let records that were not sent fail soon after the cluster has gone, instead of at their time-out.

        Requests that come meanwhile are told at once. A producer that has failed is replaced.
        """
        while True:
            await producer.down()
            if producer.failure:
                break
            self._reachability.doubt()
            while not await self._answers():
                producer.distrust()
                producer.drop_unsent()
                await asyncio.sleep(_PAUSE_SECONDS)
            producer.trust()
        self._retire(producer, guarantees)

    async def _answers(self) -> bool:
        is_gone = False
        try:
            await asyncio.to_thread(self._reachability.check)
        except Unreachable:
            is_gone = True
        if is_gone != self.is_gone:
            words = "no broker of the cluster answers" if is_gone else "the cluster answers again"
            log.warning(words, extra={"bootstrap.servers": self._settings.address})
        self.is_gone = is_gone
        return not is_gone

    def _retire(self, producer: AsyncProducer, guarantees: Guarantees) -> None:
        """After a fatal error librdkafka sends nothing any more: the next request gets a new producer."""
        if self._producers.get(guarantees) is producer:
            log.warning("a producer has failed and is replaced", extra={"reason": str(producer.failure)})
            del self._producers[guarantees]
            self._watchers.pop(guarantees).cancel()
            closing = asyncio.create_task(producer.close(0))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _told(self, outcome: Delivery | ClientError) -> Delivery | ProxyError:
        if isinstance(outcome, Delivery):
            return outcome
        if isinstance(outcome, Fatal):
            return unavailable(f"The producer is replaced, whether the record was written is not known: {outcome}")
        return from_cluster(outcome, address=self._settings.address)


def _configuration(settings: ProxySettings, guarantees: Guarantees) -> Configuration:
    return {
        "acks": guarantees.acks,
        "enable.idempotence": guarantees.idempotent,
        # Keys go to the partitions that Java's producer, and thereby Confluent's proxy, would choose.
        "partitioner": "murmur2_random",
        # Long enough for the records of a request to travel together, which halves what they cost in librdkafka.
        "linger.ms": 0.5,
        "message.timeout.ms": settings.kafka_timeout_ms,
        "message.max.bytes": min(settings.request_max_bytes, 1_000_000_000),
        "queue.buffering.max.messages": max(settings.produce_in_flight_max_records, 10_000),
        "queue.buffering.max.kbytes": min(2_097_151, 64 * 1024 + settings.produce_in_flight_max_bytes // 1024 * 2),
        # Requests to the broker are small and must not wait for the answer to those before.
        "socket.nagle.disable": True,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        # A topic that does not exist is told soon; it may be in the making on another broker, hence not at once.
        "topic.metadata.propagation.max.ms": 2000,
    }
