"""Reads partitions of the source, and tells where their records went."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.data import OPTIONAL_BYTES, Value
from connect.api.errors import ConfigError, ConnectError
from connect.api.record import Header, SourceRecord
from connect.api.source import SourceContext, SourceTask
from connectors.mirror.clusters import Side, client_settings, explained, given_properties
from connectors.mirror.positions import partition_of
from connectors.mirror.source_options import MirrorSourceConfig
from connectors.mirror.sync_writer import SyncWriter
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import NotFound
from core_broker.client.group_consumer import BEGINNING, END
from core_broker.client.producer import Producer
from core_broker.client.reachability import Reachability
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord

log = logging.getLogger(__name__)

_MOST_RECORDS: Final = 1000
_BATCH_BYTES: Final = 16 << 20
_LONGEST_WAIT_MS: Final = 1000
_DOUBT_SECONDS: Final = 3.0
"""After so much silence it is asked whether the source is there at all."""
_MISSING_PAUSE_SECONDS: Final = 1.0


def assigned_text(places: Iterable[TopicPartition]) -> str:
    """Partitions as MirrorMaker writes them in the configuration of a task."""
    return ",".join(f"{topic}-{partition}" for topic, partition in places)


def assigned_places(text: str) -> list[TopicPartition]:
    """The partitions of a task."""
    parts = [item.rpartition("-") for item in text.split(",") if item]
    return [(topic, int(partition)) for topic, _, partition in parts]


class MirrorSourceTask(SourceTask):
    """Reads from where the worker knows that it was, or from the beginning."""

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, MirrorSourceConfig)
        super().__init__(config, context)
        self._options = config
        self._reader: Reader | None = None
        self._producer: Producer | None = None
        self._syncs: SyncWriter | None = None
        self._origins: dict[TopicPartition, tuple[str, Mapping[str, Value]]] = {}
        """The name in the target, and what the worker calls it, of each partition."""
        self._heard_at = 0.0

    @override
    def start(self) -> None:
        options = self._options
        consumer = given_properties(options, "source", "consumer")
        self._count_max = _count_max(consumer)
        self._reset = consumer.get("auto.offset.reset", "earliest").strip().lower()
        policy = options.policy
        places = assigned_places(options.given.get(MirrorSourceConfig.ASSIGNED, ""))
        for place in places:
            self._origins[place] = policy.remote(place[0]), partition_of(options.source_cluster_alias, place)
        settings = client_settings(options, "source", "consumer")
        with explained("source"):
            self._reader = Reader(settings, isolation_level=options.isolation_level)
            self._reachability = Reachability(client_settings(options, "source", "admin"))
            self._reader.start({place: self._position(place) for place in places})
        if options.emit_offset_syncs_enabled:
            self._start_syncs()

    def _start_syncs(self) -> None:
        side: Side = "source" if self._options.offset_syncs_topic_location == "source" else "target"
        with explained(side):
            self._producer = Producer(client_settings(self._options, side, "producer"))
        topic = self._options.offset_syncs_topic
        self._syncs = SyncWriter(self._producer, topic, lag_max=self._options.offset_lag_max)

    def _position(self, place: TopicPartition) -> int:
        known = self.context.offset(self._origins[place][1])
        offset = None if known is None else known.get("offset")
        if isinstance(offset, int):
            return offset + 1
        return END if self._reset == "latest" else BEGINNING

    @override
    def poll(self) -> Sequence[SourceRecord]:
        reader = self._reader
        assert reader is not None, "start comes first"
        if self._syncs is not None:
            self._syncs.rest()
        wait_ms = min(self._options.consumer_poll_timeout_ms, _LONGEST_WAIT_MS)
        try:
            with explained("source"):
                records = reader.read(self._count_max, timeout_ms=wait_ms, bytes_max=_BATCH_BYTES)
        except ConnectError as error:
            self._mend(error)
            return ()
        if records:
            self._heard_at = time.monotonic()
            return self._converted(records)
        if time.monotonic() - self._heard_at > _DOUBT_SECONDS:
            with explained("source"):
                self._reachability.check()
            self._heard_at = time.monotonic()
        return ()

    def _converted(self, records: Sequence[IncomingRecord]) -> list[SourceRecord]:
        origins = self._origins
        converted = []
        for record in records:
            topic, partition = origins[record.topic, record.partition]
            converted.append(
                SourceRecord(
                    topic=topic,
                    partition=record.partition,
                    key_schema=OPTIONAL_BYTES,
                    key=record.key,
                    value_schema=OPTIONAL_BYTES,
                    value=record.value,
                    timestamp_ms=record.timestamp_ms if record.timestamp_type else None,
                    headers=tuple([Header(key, value, OPTIONAL_BYTES) for key, value in record.headers])
                    if record.headers
                    else (),
                    source_partition=partition,
                    source_offset={"offset": record.offset},
                )
            )
        return converted

    @override
    def delivered(self, records: Sequence[SourceRecord], offsets: Sequence[int]) -> None:
        if self._syncs is None:
            return
        note = self._syncs.note
        for record, offset in zip(records, offsets, strict=True):
            if offset >= 0:
                place = record.source_partition["topic"], record.source_partition["partition"]
                note(place, record.source_offset["offset"], offset)

    @override
    def stop(self) -> None:
        if self._syncs is not None:
            self._syncs.finish()
        if self._producer is not None:
            self._producer.close()
        if self._reader is not None:
            self._reader.close()
        self._syncs, self._reader, self._producer = None, None, None

    # --- trouble ---

    def _mend(self, error: ConnectError) -> None:
        """Go on where that is possible; raises where it is not."""
        cause = error.__cause__
        if isinstance(cause, OffsetOutOfRange):
            self._jump(cause)
        elif isinstance(cause, NotFound):
            # A topic is gone: the connector sees it, too, and plans without it. The others are read meanwhile.
            log.warning("a topic of the source is gone", extra={"error": str(cause)})
            self.context.wait(_MISSING_PAUSE_SECONDS)
        else:
            raise error

    def _jump(self, lost: OffsetOutOfRange) -> None:
        """Records were deleted before they were mirrored, or the topic is a new one of the same name."""
        reader, place = self._reader, lost.place
        assert reader is not None
        if self._reset == "none":
            raise ConnectError(f"{lost}, and auto.offset.reset is none") from lost
        with explained("source"):
            first, end = reader.bounds(*place)
        goal = end if self._reset == "latest" else first
        extra = {"topic": place[0], "partition": place[1], "offset": lost.offset, "goes_on_at": goal}
        log.error("records are gone from the source before they were mirrored", extra=extra)
        with explained("source"):
            reader.start({**reader.positions, place: goal})


def _count_max(properties: Mapping[str, str]) -> int:
    text = properties.get("max.poll.records", str(_MOST_RECORDS))
    if not text.strip().isdecimal() or int(text) < 1:
        told = f"Invalid value {text} for configuration source.consumer.max.poll.records: must be at least 1"
        raise ConfigError(told)
    return min(int(text), 10_000)
