"""MirrorHeartbeat: a record now and then, which shows that mirroring works and how far it is behind."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.data import BYTES
from connect.api.record import SourceRecord
from connect.api.source import SourceContext, SourceTask
from connectors.mirror.config import MirrorHeartbeatConfig
from connectors.mirror.connector import MirrorConnector
from connectors.mirror.formats import Heartbeat, write_heartbeat
from connectors.mirror.topic_sync import ensure_internal
from core_broker.service.clock import Clock, SystemClock

_LONGEST_WAIT_SECONDS: Final = 1.0


class MirrorHeartbeatTask(SourceTask):
    """Writes heartbeats."""

    config: MirrorHeartbeatConfig

    def __init__(self, config: Config, context: SourceContext, *, clock: Clock | None = None) -> None:
        super().__init__(config, context)
        self._clock = clock or SystemClock()
        self._due = 0.0

    @override
    def poll(self) -> Sequence[SourceRecord]:
        pause = self._due - time.monotonic()
        if pause > 0 and self.context.wait(min(pause, _LONGEST_WAIT_SECONDS)):
            return ()
        if time.monotonic() < self._due:
            return ()
        options, now_ms = self.config, self._clock.now_ms()
        self._due = time.monotonic() + options.emit_heartbeats_interval_seconds
        source, target = options.source_cluster_alias, options.target_cluster_alias
        key, value = write_heartbeat(Heartbeat(source, target, now_ms))
        record = SourceRecord(
            topic=options.heartbeats_topic_name,
            partition=0,
            key_schema=BYTES,
            key=key,
            value_schema=BYTES,
            value=value,
            timestamp_ms=now_ms,
            source_partition={"sourceClusterAlias": source, "targetClusterAlias": target},
            source_offset={"offset": 0},
        )
        return (record,)


class MirrorHeartbeatConnector(MirrorConnector):
    """Creates the topic of heartbeats."""

    config_class = MirrorHeartbeatConfig
    task_class = MirrorHeartbeatTask
    aliases = ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", "MirrorHeartbeat")
    watched = "heartbeats"
    sides = ("target",)
    partition_texts = ("sourceClusterAlias", "targetClusterAlias")
    has_partition_number = False

    config: MirrorHeartbeatConfig

    @property
    @override
    def is_enabled(self) -> bool:
        return self.config.enabled and self.config.emit_heartbeats_enabled

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        if not self.is_enabled:
            return []
        self._watcher.wait_until_seen()
        return [dict(self.config.given)]

    @override
    def _look(self) -> float | None:
        options = self.config
        replicas = options.heartbeats_topic_replication_factor
        ensure_internal(self._admins["target"], options.heartbeats_topic_name, replication_factor=replicas)
        return None
