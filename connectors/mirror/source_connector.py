"""Mirrors topics: finds them, makes them in the target, and shares their partitions out to tasks."""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.errors import ConfigError, ConnectError
from connect.api.source import SourceConnector, SourceOffset, SourcePartition
from connectors.mirror.access_care import sync_acls
from connectors.mirror.clusters import SIDES, Side, admin_of, client_settings
from connectors.mirror.options import converter_advice
from connectors.mirror.positions import check_altered
from connectors.mirror.source_options import MirrorSourceConfig
from connectors.mirror.source_task import MirrorSourceTask, assigned_text
from connectors.mirror.topic_care import TopicCare, ensure_internal
from connectors.mirror.watcher import Watcher
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, Rejected

log = logging.getLogger(__name__)

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
