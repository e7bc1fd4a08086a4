"""Translates what groups have committed: finds the groups, and shares them out to tasks."""

import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.connector import ConnectorContext
from connect.api.source import SourceConnector, SourceOffset, SourcePartition
from connectors.mirror.checkpoint_options import MirrorCheckpointConfig
from connectors.mirror.checkpoint_task import MirrorCheckpointTask
from connectors.mirror.clusters import SIDES, Side, admin_of
from connectors.mirror.options import converter_advice
from connectors.mirror.positions import check_altered
from connectors.mirror.topic_care import ensure_internal
from connectors.mirror.watcher import Watcher
from core_broker.client.admin import Admin

log = logging.getLogger(__name__)

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
