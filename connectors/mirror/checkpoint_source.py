"""MirrorCheckpoint: translates offsets that groups have committed in the source cluster to offsets of the target."""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.data import BYTES
from connect.api.errors import ConnectError
from connect.api.record import SourceRecord
from connect.api.source import SourceContext, SourceTask
from connectors.mirror.clusters import admin_of, client_settings, map_errors
from connectors.mirror.config import MirrorCheckpointConfig, Side
from connectors.mirror.connector import MirrorConnector
from connectors.mirror.formats import Checkpoint, read_checkpoint, read_sync, write_checkpoint
from connectors.mirror.topic_sync import ensure_internal
from connectors.mirror.topic_tail import TopicTail
from connectors.mirror.translation import Translation
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, NotFound
from core_broker.client.group_consumer import Commit
from core_broker.client.records import IncomingRecord
from core_broker.service.clock import Clock, SystemClock

log = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 20.0
_NEVER: Final = float("inf")
_IDLE: Final = ("empty", "dead")


class MirrorCheckpointTask(SourceTask):
    """Translates the offsets of its groups at intervals."""

    config: MirrorCheckpointConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        super().__init__(config, context)
        self._clock: Clock = SystemClock()
        self._checkpoints: dict[str, dict[TopicPartition, Checkpoint]] = {}
        self._translation = Translation()
        self._tails: list[TopicTail] = []
        self._due = 0.0

    @override
    def start(self) -> None:
        options = self.config
        self._groups: list[str] = json.loads(options.given.get(MirrorCheckpointConfig.ASSIGNED, "[]"))
        self._topic = options.policy.checkpoints_topic()
        self._selection = options.selection
        self._source, self._target = admin_of(options, "source"), admin_of(options, "target")
        self._syncs = self._tail(options.offset_syncs_side, options.offset_syncs_topic)
        self._written = self._tail("target", self._topic)
        self._is_ready = False

    def _tail(self, side: Side, topic: str) -> TopicTail:
        tail = TopicTail(client_settings(self.config, side, "consumer"), topic, patience_seconds=_PATIENCE_SECONDS)
        self._tails.append(tail)
        return tail

    @override
    def poll(self) -> Sequence[SourceRecord]:
        pause = self._due - time.monotonic()
        if pause > 0:
            self.context.wait(min(pause, _LONGEST_WAIT_SECONDS))
            return ()
        options = self.config
        self._catch_up()
        changed = self._changed_checkpoints()
        if options.sync_group_offsets_enabled:
            self._sync_groups()
        self._due = time.monotonic() + min(
            options.emit_checkpoints_interval_seconds if options.emit_checkpoints_enabled else _NEVER,
            options.sync_group_offsets_interval_seconds if options.sync_group_offsets_enabled else _NEVER,
        )
        return [self._record(checkpoint) for checkpoint in changed] if options.emit_checkpoints_enabled else []

    @override
    def stop(self) -> None:
        while self._tails:
            self._tails.pop().close()

    def _catch_up(self) -> None:
        """Read new offset syncs; the first time also earlier checkpoints, so that offsets never move backwards."""
        if not self._is_ready:
            for record in self._read_new("target", self._written):
                checkpoint = read_checkpoint(record.key, record.value)
                if checkpoint is not None and checkpoint.group in self._groups:
                    self._checkpoints.setdefault(checkpoint.group, {})[checkpoint.partition] = checkpoint
            self._is_ready = True
        for record in self._read_new(self.config.offset_syncs_side, self._syncs):
            if (sync := read_sync(record.key, record.value)) is not None:
                self._translation.add(sync)

    def _read_new(self, side: Side, tail: TopicTail) -> Iterator[IncomingRecord]:
        """New records of a topic; none while it does not exist."""
        try:
            with map_errors(side):
                yield from tail.read_new()
        except ConnectError as error:
            if not isinstance(error.__cause__, NotFound):
                raise

    def _changed_checkpoints(self) -> list[Checkpoint]:
        """Checkpoints that differ from the last ones."""
        found = [checkpoint for group in self._groups for checkpoint in self._translate(group)]
        with map_errors("target"):
            ends = self._target.committed_ends({checkpoint.partition for checkpoint in found})
        changed = []
        for checkpoint in found:
            known = self._checkpoints.setdefault(checkpoint.group, {})
            last = known.get(checkpoint.partition)
            # It moves forward, or the group itself was moved back.
            is_new = last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream
            # A copy that was recreated ends before the translated offset.
            if is_new and checkpoint.downstream <= ends.get(checkpoint.partition, -1):
                known[checkpoint.partition] = checkpoint
                changed.append(checkpoint)
        return changed

    def _translate(self, group: str) -> Iterable[Checkpoint]:
        try:
            with map_errors("source"):
                committed = self._source.group_commits(group)
        except ConnectError as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            return
        policy = self.config.policy
        for partition, commit in committed.items():
            topic, number = partition
            if not self._selection.has_offsets_of(topic):
                continue
            downstream = self._translation.downstream(partition, commit.offset)
            if downstream is not None:
                # A topic that was mirrored from the target has its original name there.
                is_from_target = policy.origin(topic) == self.config.target_cluster_alias
                copy = policy.original(topic) if is_from_target else policy.remote(topic)
                yield Checkpoint(group, (copy, number), commit.offset, downstream, commit.metadata)

    def _record(self, checkpoint: Checkpoint) -> SourceRecord:
        key, value = write_checkpoint(checkpoint)
        topic, partition = checkpoint.partition
        return SourceRecord(
            topic=self._topic,
            partition=0,
            key_schema=BYTES,
            key=key,
            value_schema=BYTES,
            value=value,
            timestamp_ms=self._clock.now_ms(),
            source_partition={"group": checkpoint.group, "topic": topic, "partition": partition},
            source_offset={"offset": 0},
        )

    def _sync_groups(self) -> None:
        """Commit translated offsets for groups without members, unless they are further already."""
        for group, checkpoints in self._checkpoints.items():
            wanted = {partition: Commit(item.downstream, item.metadata) for partition, item in checkpoints.items()}
            try:
                if wanted and self._target.group(group).state in _IDLE:
                    self._commit(group, wanted)
            except ClientError as error:
                extra = {"group": group, "error": str(error)}
                log.warning("translated offsets of a group were not committed", extra=extra)

    def _commit(self, group: str, wanted: Mapping[TopicPartition, Commit]) -> None:
        try:
            known = self._target.group_offsets(group)
        except NotFound:
            known = {}
        ahead = {partition: commit for partition, commit in wanted.items() if commit.offset > known.get(partition, -1)}
        if ahead:
            self._target.set_group_commits(group, ahead)


class MirrorCheckpointConnector(MirrorConnector):
    """Lets groups of another Kafka cluster continue in this one."""

    config_class = MirrorCheckpointConfig
    task_class = MirrorCheckpointTask
    tasks_limit = None
    aliases = ("org.apache.kafka.connect.mirror.MirrorCheckpointConnector", "MirrorCheckpoint")
    watched = "groups"
    config: MirrorCheckpointConfig
    partition_texts = ("group", "topic")

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        # As JSON, since names of groups may contain commas.
        return self._task_configs(MirrorCheckpointConfig.ASSIGNED, json.dumps, tasks_max)

    @override
    def _look(self) -> float | None:
        options = self.config
        ensure_internal(
            self._admins["target"],
            options.policy.checkpoints_topic(),
            replication_factor=options.checkpoints_topic_replication_factor,
        )
        wanted = options.wanted_groups
        self._plan([group.group_id for group in self._admins["source"].groups() if group.group_id in wanted])
        return float(options.refresh_groups_interval_seconds) if options.refresh_groups_enabled else None
