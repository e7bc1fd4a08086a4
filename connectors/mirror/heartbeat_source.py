"""Signs of life: a record now and then, by which one sees how far mirroring is behind."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.data import BYTES
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connectors.mirror.clusters import admin_of
from connectors.mirror.config import MirrorHeartbeatConfig, converter_advice
from connectors.mirror.formats import Heartbeat, write_heartbeat
from connectors.mirror.positions import check_heartbeat
from connectors.mirror.topic_care import ensure_internal
from connectors.mirror.watcher import Watcher
from core_broker.client.admin import Admin
from core_broker.service.clock import Clock, SystemClock

log = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 1.0


class MirrorHeartbeatTask(SourceTask):
    """Writes a heartbeat now and then."""

    def __init__(self, config: Config, context: SourceContext, *, clock: Clock | None = None) -> None:
        assert isinstance(config, MirrorHeartbeatConfig)
        super().__init__(config, context)
        self._options = config
        self._clock = clock or SystemClock()
        self._due = 0.0

    @override
    def poll(self) -> Sequence[SourceRecord]:
        pause = self._due - time.monotonic()
        if pause > 0 and self.context.wait(min(pause, _LONGEST_WAIT_SECONDS)):
            return ()
        if time.monotonic() < self._due:
            return ()
        self._due = time.monotonic() + self._options.emit_heartbeats_interval_seconds
        return (self._record(),)

    def _record(self) -> SourceRecord:
        options, now_ms = self._options, self._clock.now_ms()
        source, target = options.source_cluster_alias, options.target_cluster_alias
        key, value = write_heartbeat(Heartbeat(source, target, now_ms))
        return SourceRecord(
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


class MirrorHeartbeatConnector(SourceConnector):
    """Shows that a cluster is mirrored, and how far behind."""

    config_class = MirrorHeartbeatConfig
    task_class = MirrorHeartbeatTask
    aliases = ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", "MirrorHeartbeat")

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        assert isinstance(config, MirrorHeartbeatConfig)
        super().__init__(config, context)
        self._options = config
        self._target: Admin | None = None
        self._watcher = Watcher(f"heartbeats of {context.name}", self._make_topic)

    @classmethod
    @override
    def advise(cls, config: Config) -> Iterable[Problem]:
        return converter_advice(config)

    @override
    def start(self) -> None:
        if self._is_wanted:
            self._target = admin_of(self._options, "target", watch=self._watcher.check)
            self._watcher.start()

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        if not self._is_wanted:
            return []
        self._watcher.wait_until_seen(_LONGEST_WAIT_SECONDS * 10)
        return [dict(self.config.given)]

    @override
    def stop(self) -> None:
        self._watcher.stop()
        self._target = None

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        for partition, offset in offsets:
            check_heartbeat(partition, offset)
        return False

    @property
    def _is_wanted(self) -> bool:
        return self._options.enabled and self._options.emit_heartbeats_enabled

    def _make_topic(self) -> float | None:
        assert self._target is not None, "start comes first"
        ensure_internal(
            self._target,
            self._options.heartbeats_topic_name,
            replication_factor=self._options.heartbeats_topic_replication_factor,
        )
        return None
