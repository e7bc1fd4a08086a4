"""Options of the connector that translates what groups have committed."""

from collections.abc import Iterable
from typing import ClassVar

from typing_extensions import override

from connect.api.config import BOOLEAN, LIST, LONG, SHORT, Importance, Problem, option
from connectors.mirror.options import INTERNAL, PATTERNS, REPLICAS, SECONDS, SelectingConfig
from connectors.mirror.selection import Names

_GROUPS = "Groups"


class MirrorCheckpointConfig(SelectingConfig):
    """What can be told to the connector that translates what groups have committed."""

    ASSIGNED: ClassVar[str] = "task.assigned.groups"

    groups: tuple[str, ...] = option(LIST, default=(".*",), check=PATTERNS, importance=Importance.HIGH, group=_GROUPS)
    """Groups whose offsets are translated: names and regular expressions, separated by commas."""
    groups_exclude: tuple[str, ...] = option(
        LIST,
        default=("console-consumer-.*", "connect-.*", "__.*"),
        check=PATTERNS,
        aliases=("groups.blacklist",),
        importance=Importance.HIGH,
        group=_GROUPS,
    )
    """Groups that are left out, whatever `groups` says."""
    refresh_groups_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_GROUPS)
    """Whether new groups are looked for."""
    refresh_groups_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    emit_checkpoints_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_GROUPS)
    """Whether translated offsets are written to the topic of checkpoints."""
    emit_checkpoints_interval_seconds: int = option(
        LONG, default=60, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    sync_group_offsets_enabled: bool = option(BOOLEAN, default=False, importance=Importance.LOW, group=_GROUPS)
    """Whether groups of the target get the translated offsets, as long as they have no members there."""
    sync_group_offsets_interval_seconds: int = option(
        LONG, default=60, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    checkpoints_topic_replication_factor: int = option(
        SHORT, default=3, check=REPLICAS, importance=Importance.LOW, group=INTERNAL
    )
    """Replicas of the topic of checkpoints; fewer where the target has fewer brokers."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not self.emit_checkpoints_enabled and not self.sync_group_offsets_enabled:
            told = (
                "MirrorCheckpointConnector can't run with both of emit.checkpoints.enabled and "
                "sync.group.offsets.enabled set to false"
            )
            yield Problem("emit.checkpoints.enabled", told)
        if not self.emit_offset_syncs_enabled:
            told = "MirrorCheckpointConnector can't run while emit.offset-syncs.enabled is set to false"
            yield Problem("emit.offset-syncs.enabled", told)

    @property
    def wanted_groups(self) -> Names:
        """Which groups are meant."""
        return Names(self.groups, excluded=self.groups_exclude)
