"""MirrorSource: the connector finds topics, creates their copies and assigns partitions; its tasks copy the records."""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.data import OPTIONAL_BYTES, Value
from connect.api.errors import ConfigError, ConnectError
from connect.api.record import Header, SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connectors.mirror.access_care import sync_acls
from connectors.mirror.clusters import SIDES, Side, admin_of, client_settings, explained, given_properties
from connectors.mirror.config import MirrorSourceConfig, converter_advice
from connectors.mirror.positions import check_altered, partition_of
from connectors.mirror.sync_writer import SyncWriter
from connectors.mirror.topic_care import TopicCare, ensure_internal
from connectors.mirror.watcher import Watcher
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, NotFound, Rejected
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


_FIRST_LOOK_SECONDS: Final = 10.0
_SOON_SECONDS: Final = 5.0


class MirrorSourceConnector(SourceConnector):
    """Brings topics of another Kafka cluster, byte for byte."""

    config_class = MirrorSourceConfig
    task_class = MirrorSourceTask
    is_exactly_once = True
    tasks_limit = None
    aliases = ("org.apache.kafka.connect.mirror.MirrorSourceConnector", "MirrorSource")

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        assert isinstance(config, MirrorSourceConfig)
        super().__init__(config, context)
        self._options = config
        self._selection = config.selection
        self._policy = config.policy
        self._places: list[TopicPartition] = []
        self._planned: list[TopicPartition] | None = None
        self._planning = threading.Lock()
        self._is_complete = True
        self._configs_due = self._acls_due = 0.0
        self._admins: dict[Side, Admin] = {}
        self._watcher = Watcher(f"topics of {context.name}", self._look)

    @classmethod
    @override
    def validate(cls, config: Config) -> Iterable[Problem]:
        assert isinstance(config, MirrorSourceConfig)
        for side in SIDES:
            try:
                client_settings(config, side, "admin")
                client_settings(config, side, "consumer")
            except ConfigError as error:
                yield Problem(f"{side}.cluster.bootstrap.servers", str(error))

    @classmethod
    @override
    def advise(cls, config: Config) -> Iterable[Problem]:
        return converter_advice(config)

    @override
    def start(self) -> None:
        if self._options.enabled:
            for side in SIDES:
                self._admins[side] = admin_of(self._options, side, watch=self._watcher.check)
            self._watcher.start()

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        if not self._options.enabled:
            return []
        self._watcher.wait_until_seen(_FIRST_LOOK_SECONDS)
        with self._planning:
            # Without an answer there is nothing to do yet: the watcher asks for a new plan when there is one.
            places = self._planned = self._places
        count = min(len(places), tasks_max)
        # Neighbours go to different tasks: partitions of a busy topic are shared out.
        shares = [places[number::count] for number in range(count)]
        return [{**self.config.given, MirrorSourceConfig.ASSIGNED: assigned_text(share)} for share in shares]

    @override
    def stop(self) -> None:
        self._watcher.stop()
        self._admins = {}

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        for partition, offset in offsets:
            check_altered(partition, offset, texts=("cluster", "topic"))
        return False

    # --- looking ---

    def _look(self) -> float | None:
        options = self._options
        if options.emit_offset_syncs_enabled:
            ensure_internal(
                self._admins[_side(options.offset_syncs_topic_location)],
                options.offset_syncs_topic,
                replication_factor=options.offset_syncs_topic_replication_factor,
            )
        if not self._watcher.has_seen or options.refresh_topics_enabled:
            self._refresh()
        self._watcher.check()
        self._sync_configs()
        self._sync_acls()
        return self._pause()

    def _refresh(self) -> None:
        """See which topics there are, and make those in the target that are missing."""
        partitions = {topic.name: len(topic.partitions) for topic in self._admins["source"].all_topics()}
        wanted = {topic: count for topic, count in sorted(partitions.items()) if topic in self._selection and count}
        made = self._care().ensure({self._policy.remote(topic): (topic, count) for topic, count in wanted.items()})
        there = {topic: min(count, made.get(self._policy.remote(topic), 0)) for topic, count in wanted.items()}
        self._is_complete = there == wanted
        self._plan([(topic, partition) for topic, count in there.items() for partition in range(count)])

    def _plan(self, places: list[TopicPartition]) -> None:
        with self._planning:
            self._places = places
            is_changed = self._planned is not None and self._planned != places
        if is_changed:
            extra = {"connector": self.context.name, "partitions": len(places)}
            log.info("partitions have come or gone", extra=extra)
            self.context.request_reconfiguration()

    def _care(self) -> TopicCare:
        return TopicCare(
            self._admins["source"],
            self._admins["target"],
            replication_factor=self._options.replication_factor,
            excluded=self._options.config_properties_exclude,
        )

    def _sync_configs(self) -> None:
        if self._options.sync_topic_configs_enabled and time.monotonic() >= self._configs_due:
            self._configs_due = time.monotonic() + self._options.sync_topic_configs_interval_seconds
            try:
                self._care().sync_configs({topic: self._policy.remote(topic) for topic, _ in self._places})
            except ClientError as error:
                log.warning("configs of topics were not carried over", extra={"error": str(error)})

    def _sync_acls(self) -> None:
        if not self._options.sync_topic_acls_enabled or time.monotonic() < self._acls_due:
            return
        self._acls_due = time.monotonic() + self._options.sync_topic_acls_interval_seconds
        source, target = self._admins["source"], self._admins["target"]
        try:
            sync_acls(source, target, selection=self._selection, policy=self._policy)
        except Rejected as error:
            self._acls_due = float("inf")
            log.info("a cluster has no authorizer: ACLs are not carried over", extra={"error": str(error)})
        except ClientError as error:
            log.warning("ACLs of topics were not carried over", extra={"error": str(error)})

    def _pause(self) -> float | None:
        """Seconds until something is due; None when nothing ever is."""
        options = self._options
        if not self._is_complete:
            return _SOON_SECONDS
        intervals = [
            (options.refresh_topics_enabled, options.refresh_topics_interval_seconds),
            (options.sync_topic_configs_enabled, options.sync_topic_configs_interval_seconds),
            (options.sync_topic_acls_enabled, options.sync_topic_acls_interval_seconds),
        ]
        return min((float(seconds) for is_enabled, seconds in intervals if is_enabled), default=None)


def _side(name: str) -> Side:
    if name not in ("source", "target"):
        raise ConnectError(f"{name} is none of the two clusters")
    return "source" if name == "source" else "target"
