"""What a copy has to know of its topic."""

from collections.abc import Mapping
from typing import Final

import msgspec

from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed

_TOMBSTONES_MS: Final = 86_400_000
"""How long tombstones are kept by default."""


class TopicFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it is at the moment."""

    topic_id: str
    partitions: tuple[int, ...]
    tombstones_ms: int = _TOMBSTONES_MS
    """How long a deletion can be read after it was written."""
    retention_ms: int | None = None
    """How long records are kept; None for ever."""


def topic_facts(admin: Admin, topic: str) -> TopicFacts:
    """Look at a topic; NotFound if there is none."""
    (found,) = admin.topics([topic])
    try:
        configs: Mapping[str, str | None] = {config.key: config.value for config in admin.configs(topic)}
    except NotAllowed:
        configs = {}
    is_kept = "delete" not in (configs.get("cleanup.policy") or "")
    retention_ms = _number(configs.get("retention.ms"), -1)
    return TopicFacts(
        topic_id=found.topic_id,
        partitions=tuple(sorted(partition.index for partition in found.partitions)),
        tombstones_ms=_number(configs.get("delete.retention.ms"), _TOMBSTONES_MS),
        retention_ms=None if is_kept or retention_ms < 0 else retention_ms,
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None else default
