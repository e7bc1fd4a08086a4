"""How far a sink is behind, from what Spark tells of its query."""

import json
from collections.abc import Mapping
from typing import Any

from connectors.spark.manifest import TopicPartition
from streams.spark.topics.offsets import from_checkpoint


def lag_of(progress: Any, positions: Mapping[TopicPartition, int]) -> int | None:
    """How many records the partition has that is behind the most; None when nobody has told."""
    sources = progress["sources"] if isinstance(progress, Mapping) else progress.sources
    latest = sources[0]["latestOffset"] if isinstance(sources[0], Mapping) else sources[0].latestOffset
    if not latest:
        return None
    document = json.loads(latest) if isinstance(latest, str) else latest
    ends = from_checkpoint(document)
    return max((max(0, end - positions.get(place, 0)) for place, end in ends.items()), default=None)
