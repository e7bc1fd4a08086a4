"""MirrorCheckpoint: translates offsets that groups have committed in the source cluster to offsets of the target."""

import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.data import BYTES
from connect.api.errors import ConnectError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connectors.mirror.clusters import SIDES, Side, admin_of, client_settings, explained
from connectors.mirror.config import MirrorCheckpointConfig, converter_advice
from connectors.mirror.formats import Checkpoint, read_checkpoint, read_sync, write_checkpoint
from connectors.mirror.positions import check_altered
from connectors.mirror.topic_care import ensure_internal
from connectors.mirror.topic_tail import TopicTail
from connectors.mirror.translation import Translation
from connectors.mirror.watcher import Watcher
from core_broker.client.admin import Admin
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
    """Looks at its groups again and again."""

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, MirrorCheckpointConfig)
        super().__init__(config, context)
        self._options = config
        self._clock: Clock = SystemClock()
        self._checkpoints: dict[str, dict[TopicPartition, Checkpoint]] = {}
        self._translation = Translation()
        self._tails: list[TopicTail] = []
        self._due = 0.0

    @override
    def start(self) -> None:
        options = self._options
        self._groups: list[str] = json.loads(options.given.get(MirrorCheckpointConfig.ASSIGNED, "[]"))
        self._side: Side = "source" if options.offset_syncs_topic_location == "source" else "target"
        self._topic = options.policy.checkpoints_topic()
        self._selection = options.selection
        self._source, self._target = admin_of(options, "source"), admin_of(options, "target")
        self._syncs = self._tail(self._side, options.offset_syncs_topic)
        self._written = self._tail("target", self._topic)
        self._is_ready = False

    def _tail(self, side: Side, topic: str) -> TopicTail:
        tail = TopicTail(client_settings(self._options, side, "consumer"), topic, patience_seconds=_PATIENCE_SECONDS)
        self._tails.append(tail)
        return tail

    @override
    def poll(self) -> Sequence[SourceRecord]:
        pause = self._due - time.monotonic()
        if pause > 0:
            self.context.wait(min(pause, _LONGEST_WAIT_SECONDS))
            return ()
        options = self._options
        self._catch_up()
        fresh = self._fresh_checkpoints()
        if options.sync_group_offsets_enabled:
            self._sync_groups()
        self._due = time.monotonic() + min(
            options.emit_checkpoints_interval_seconds if options.emit_checkpoints_enabled else _NEVER,
            options.sync_group_offsets_interval_seconds if options.sync_group_offsets_enabled else _NEVER,
        )
        return [self._record(checkpoint) for checkpoint in fresh] if options.emit_checkpoints_enabled else []

    @override
    def stop(self) -> None:
        while self._tails:
            self._tails.pop().close()

    # --- what is known ---

    def _catch_up(self) -> None:
        """Learn where copies are; at first also what was written before, so that nothing ever goes back."""
        if not self._is_ready:
            for record in self._news("target", self._written):
                checkpoint = read_checkpoint(record.key, record.value)
                if checkpoint is not None and checkpoint.group in self._groups:
                    self._checkpoints.setdefault(checkpoint.group, {})[checkpoint.place] = checkpoint
            self._is_ready = True
        for record in self._news(self._side, self._syncs):
            if (sync := read_sync(record.key, record.value)) is not None:
                self._translation.add(sync)

    def _news(self, side: Side, tail: TopicTail) -> Iterator[IncomingRecord]:
        """What has come in a topic; nothing while it is not there."""
        try:
            with explained(side):
                yield from tail.news()
        except ConnectError as error:
            if not isinstance(error.__cause__, NotFound):
                raise

    # --- checkpoints ---

    def _fresh_checkpoints(self) -> list[Checkpoint]:
        """What has changed since the last checkpoints."""
        found = [checkpoint for group in self._groups for checkpoint in self._translated(group)]
        with explained("target"):
            ends = self._target.committed_ends({checkpoint.place for checkpoint in found})
        fresh = []
        for checkpoint in found:
            # A copy that was made anew ends before what is known of it.
            if checkpoint.downstream <= ends.get(checkpoint.place, -1) and self._is_news(checkpoint):
                self._checkpoints.setdefault(checkpoint.group, {})[checkpoint.place] = checkpoint
                fresh.append(checkpoint)
        return fresh

    def _translated(self, group: str) -> Iterable[Checkpoint]:
        try:
            with explained("source"):
                committed = self._source.group_commits(group)
        except ConnectError as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            return
        for place, commit in committed.items():
            if self._selection.has_offsets_of(place[0]):
                downstream = self._translation.downstream(place, commit.offset)
                if downstream is not None:
                    yield Checkpoint(group, self._renamed(place), commit.offset, downstream, commit.metadata)

    def _renamed(self, place: TopicPartition) -> TopicPartition:
        """Where a partition of the source is in the target; one that was mirrored from there has its own name."""
        policy, topic = self._options.policy, place[0]
        if policy.origin(topic) == self._options.target_cluster_alias:
            return policy.original(topic), place[1]
        return policy.remote(topic), place[1]

    def _is_news(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint goes on, or the group itself went back."""
        last = self._checkpoints.get(checkpoint.group, {}).get(checkpoint.place)
        return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream

    def _record(self, checkpoint: Checkpoint) -> SourceRecord:
        key, value = write_checkpoint(checkpoint)
        topic, partition = checkpoint.place
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

    # --- groups of the target ---

    def _sync_groups(self) -> None:
        """Commit for groups without members what has been translated, unless they are further already."""
        groups = [group for group in self._groups if self._checkpoints.get(group)]
        for group in groups:
            wanted = {place: Commit(item.downstream, item.metadata) for place, item in self._checkpoints[group].items()}
            try:
                if self._target.group(group).state in _IDLE:
                    self._commit(group, wanted)
            except ClientError as error:
                extra = {"group": group, "error": str(error)}
                log.warning("the offsets of a group were not set in the target", extra=extra)

    def _commit(self, group: str, wanted: Mapping[TopicPartition, Commit]) -> None:
        try:
            known = self._target.group_offsets(group)
        except NotFound:
            known = {}
        ahead = {place: commit for place, commit in wanted.items() if commit.offset > known.get(place, -1)}
        if ahead:
            self._target.set_group_commits(group, ahead)


_FIRST_LOOK_SECONDS: Final = 10.0


class MirrorCheckpointConnector(SourceConnector):
    """Lets groups of another Kafka cluster go on in this one, where they were."""

    config_class = MirrorCheckpointConfig
    task_class = MirrorCheckpointTask
    tasks_limit = None
    aliases = ("org.apache.kafka.connect.mirror.MirrorCheckpointConnector", "MirrorCheckpoint")

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        assert isinstance(config, MirrorCheckpointConfig)
        super().__init__(config, context)
        self._options = config
        self._groups: list[str] = []
        self._planned: list[str] | None = None
        self._planning = threading.Lock()
        self._admins: dict[Side, Admin] = {}
        self._watcher = Watcher(f"groups of {context.name}", self._look)

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
            groups = self._planned = self._groups
        count = min(len(groups), tasks_max)
        shares = [groups[number::count] for number in range(count)]
        # Names of groups may have commas in them.
        return [{**self.config.given, MirrorCheckpointConfig.ASSIGNED: json.dumps(share)} for share in shares]

    @override
    def stop(self) -> None:
        self._watcher.stop()
        self._admins = {}

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        for partition, offset in offsets:
            check_altered(partition, offset, texts=("group", "topic"))
        return False

    def _look(self) -> float | None:
        options = self._options
        ensure_internal(
            self._admins["target"],
            options.policy.checkpoints_topic(),
            replication_factor=options.checkpoints_topic_replication_factor,
        )
        wanted = options.wanted_groups
        groups = [group.group_id for group in self._admins["source"].groups() if group.group_id in wanted]
        with self._planning:
            self._groups = groups
            is_changed = self._planned is not None and self._planned != groups
        if is_changed:
            log.info("groups have come or gone", extra={"connector": self.context.name, "groups": len(groups)})
            self.context.request_reconfiguration()
        return float(options.refresh_groups_interval_seconds) if options.refresh_groups_enabled else None
