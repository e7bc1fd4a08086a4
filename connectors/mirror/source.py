"""MirrorSource: the connector finds topics, creates their copies and assigns partitions; its tasks copy the records."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.data import OPTIONAL_BYTES, Value
from connect.api.errors import ConfigError, ConnectError
from connect.api.record import Header, SourceRecord
from connect.api.source import SourceContext, SourceTask
from connectors.mirror.clusters import SIDES, client_settings, given_properties, map_errors
from connectors.mirror.config import MirrorSourceConfig
from connectors.mirror.connector import MirrorConnector
from connectors.mirror.sync_writer import SyncWriter
from connectors.mirror.topic_sync import TopicSync, ensure_internal, sync_acls
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, NotFound, Rejected
from core_broker.client.group_consumer import BEGINNING, END
from core_broker.client.producer import Producer
from core_broker.client.reachability import Reachability
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord

log = logging.getLogger(__name__)

_POLL_RECORDS: Final = 1000
_POLL_RECORDS_MAX: Final = 10_000
_BATCH_BYTES: Final = 16 << 20
_LONGEST_WAIT_MS: Final = 1000
_SILENCE_SECONDS: Final = 3.0
"""After this long without records, check that the source answers at all."""
_MISSING_PAUSE_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 5.0


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as MirrorMaker writes them in the configuration of a task."""
    return ",".join(f"{topic}-{partition}" for topic, partition in partitions)


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions of a task."""
    parts = [item.rpartition("-") for item in text.split(",") if item]
    return [(topic, int(partition)) for topic, _, partition in parts]


class MirrorSourceTask(SourceTask):
    """Copies partitions, from the stored offset or from the beginning."""

    config: MirrorSourceConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        super().__init__(config, context)
        self._reader: Reader | None = None
        self._producer: Producer | None = None
        self._syncs: SyncWriter | None = None
        self._copies: dict[TopicPartition, tuple[str, Mapping[str, Value]]] = {}
        """The name in the target, and the source partition of its offsets, for each partition."""
        self._heard_at = 0.0

    @override
    def start(self) -> None:
        options = self.config
        consumer = given_properties(options, "source", "consumer")
        self._records_max = _parse_records_max(consumer)
        self._reset = consumer.get("auto.offset.reset", "earliest").strip().lower()
        partitions = parse_partitions(options.given.get(MirrorSourceConfig.ASSIGNED, ""))
        for topic, number in partitions:
            stored = {"cluster": options.source_cluster_alias, "topic": topic, "partition": number}
            self._copies[topic, number] = options.policy.remote(topic), stored
        with map_errors("source"):
            self._reader = Reader(
                client_settings(options, "source", "consumer"), isolation_level=options.isolation_level
            )
            self._reachability = Reachability(client_settings(options, "source", "admin"))
            self._reader.start({partition: self._position(partition) for partition in partitions})
        if options.emit_offset_syncs_enabled:
            side = options.offset_syncs_side
            with map_errors(side):
                self._producer = Producer(client_settings(options, side, "producer"))
            self._syncs = SyncWriter(self._producer, options.offset_syncs_topic, lag_max=options.offset_lag_max)

    def _position(self, partition: TopicPartition) -> int:
        stored = self.context.offset(self._copies[partition][1])
        offset = None if stored is None else stored.get("offset")
        if isinstance(offset, int):
            return offset + 1
        return END if self._reset == "latest" else BEGINNING

    @override
    def poll(self) -> Sequence[SourceRecord]:
        reader = self._reader
        assert reader is not None, "start comes first"
        if self._syncs is not None:
            self._syncs.send_due()
        wait_ms = min(self.config.consumer_poll_timeout_ms, _LONGEST_WAIT_MS)
        try:
            with map_errors("source"):
                records = reader.read(self._records_max, timeout_ms=wait_ms, bytes_max=_BATCH_BYTES)
        except ConnectError as error:
            self._recover(error)
            return ()
        if records:
            self._heard_at = time.monotonic()
            return self._convert(records)
        if time.monotonic() - self._heard_at > _SILENCE_SECONDS:
            with map_errors("source"):
                self._reachability.check()
            self._heard_at = time.monotonic()
        return ()

    def _convert(self, records: Sequence[IncomingRecord]) -> list[SourceRecord]:
        copies = self._copies
        converted = []
        for record in records:
            topic, partition = copies[record.topic, record.partition]
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
        add = self._syncs.add
        for record, offset in zip(records, offsets, strict=True):
            if offset >= 0:
                partition = record.source_partition["topic"], record.source_partition["partition"]
                add(partition, record.source_offset["offset"], offset)

    @override
    def stop(self) -> None:
        if self._syncs is not None:
            self._syncs.finish()
        if self._producer is not None:
            self._producer.close()
        if self._reader is not None:
            self._reader.close()
        self._syncs, self._reader, self._producer = None, None, None

    def _recover(self, error: ConnectError) -> None:
        """Continue where that is possible; raises where it is not."""
        cause = error.__cause__
        if isinstance(cause, OffsetOutOfRange):
            self._skip_deleted(cause)
        elif isinstance(cause, NotFound):
            # The connector sees that the topic is gone, too, and plans without it. The others are read meanwhile.
            log.warning("a topic of the source is gone", extra={"error": str(cause)})
            self.context.wait(_MISSING_PAUSE_SECONDS)
        else:
            raise error

    def _skip_deleted(self, error: OffsetOutOfRange) -> None:
        """Records were deleted before they were mirrored, or the topic was recreated."""
        reader, partition = self._reader, error.place
        assert reader is not None
        if self._reset == "none":
            raise ConnectError(f"{error}, and auto.offset.reset is none") from error
        with map_errors("source"):
            first, end = reader.bounds(*partition)
            goal = end if self._reset == "latest" else first
            extra = {"topic": partition[0], "partition": partition[1], "offset": error.offset, "resumes_at": goal}
            log.error("records were deleted from the source before they were mirrored", extra=extra)
            reader.start({**reader.positions, partition: goal})


def _parse_records_max(properties: Mapping[str, str]) -> int:
    text = properties.get("max.poll.records", str(_POLL_RECORDS))
    if not text.strip().isdecimal() or int(text) < 1:
        key = "source.consumer.max.poll.records"
        raise ConfigError(f"Invalid value {text} for configuration {key}: must be at least 1")
    return min(int(text), _POLL_RECORDS_MAX)


class MirrorSourceConnector(MirrorConnector):
    """Copies topics of another Kafka cluster, byte for byte."""

    config_class = MirrorSourceConfig
    task_class = MirrorSourceTask
    is_exactly_once = True
    tasks_limit = None
    aliases = ("org.apache.kafka.connect.mirror.MirrorSourceConnector", "MirrorSource")
    config: MirrorSourceConfig
    watched = "partitions"
    partition_texts = ("cluster", "topic")

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        assert isinstance(config, MirrorSourceConfig)
        super().__init__(config, context)
        self._selection = config.selection
        self._policy = config.policy
        self._is_complete = True
        self._configs_due = self._acls_due = 0.0

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

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return self._task_configs(MirrorSourceConfig.ASSIGNED, format_partitions, tasks_max)

    @override
    def _look(self) -> float | None:
        options, source, target = self.config, self._admins["source"], self._admins["target"]
        sync = TopicSync(
            source,
            target,
            replication_factor=options.replication_factor,
            excluded=options.config_properties_exclude,
        )
        if options.emit_offset_syncs_enabled:
            ensure_internal(
                self._admins[options.offset_syncs_side],
                options.offset_syncs_topic,
                replication_factor=options.offset_syncs_topic_replication_factor,
            )
        if not self._watcher.has_seen or options.refresh_topics_enabled:
            self._refresh(sync)
        self._watcher.check()
        if options.sync_topic_configs_enabled and time.monotonic() >= self._configs_due:
            self._configs_due = time.monotonic() + options.sync_topic_configs_interval_seconds
            try:
                sync.sync_configs({topic: self._policy.remote(topic) for topic, _ in self._items})
            except ClientError as error:
                log.warning("configs of topics were not copied", extra={"error": str(error)})
        if options.sync_topic_acls_enabled and time.monotonic() >= self._acls_due:
            self._sync_acls()
        return self._pause()

    def _refresh(self, sync: TopicSync) -> None:
        """Find the topics of the source, and create those that are missing in the target."""
        counts = {topic.name: len(topic.partitions) for topic in self._admins["source"].all_topics()}
        wanted = {topic: count for topic, count in sorted(counts.items()) if topic in self._selection and count}
        ensured = sync.ensure({self._policy.remote(topic): (topic, count) for topic, count in wanted.items()})
        copied = {topic: min(count, ensured.get(self._policy.remote(topic), 0)) for topic, count in wanted.items()}
        self._is_complete = copied == wanted
        self._plan([(topic, partition) for topic, count in copied.items() for partition in range(count)])

    def _sync_acls(self) -> None:
        self._acls_due = time.monotonic() + self.config.sync_topic_acls_interval_seconds
        source, target = self._admins["source"], self._admins["target"]
        try:
            sync_acls(source, target, selection=self._selection, policy=self._policy)
        except Rejected as error:
            self._acls_due = float("inf")
            log.info("ACLs are not copied: a cluster has no authorizer", extra={"error": str(error)})
        except ClientError as error:
            log.warning("ACLs of topics were not copied", extra={"error": str(error)})

    def _pause(self) -> float | None:
        """Seconds until something is due; None when nothing ever is."""
        options = self.config
        if not self._is_complete:
            return _SOON_SECONDS
        intervals = [
            (options.refresh_topics_enabled, options.refresh_topics_interval_seconds),
            (options.sync_topic_configs_enabled, options.sync_topic_configs_interval_seconds),
            (options.sync_topic_acls_enabled, options.sync_topic_acls_interval_seconds),
        ]
        return min((float(seconds) for is_enabled, seconds in intervals if is_enabled), default=None)
