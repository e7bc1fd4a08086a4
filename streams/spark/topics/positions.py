"""Finds where partitions begin and end, and commits for a group: the driver's requests to a cluster."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from core_broker.client.admin import Admin
from core_broker.client.errors import NotFound, Retriable, Unreachable
from core_broker.client.handshake import check_handshake
from streams.errors import StreamsError, WrongOption
from streams.spark.topics.cluster import READ_COMMITTED, Cluster
from streams.spark.topics.offsets import EARLIEST, LATEST, offsets_by_topic
from streams.spark.topics.options import Boundary, Subscription
from streams.spark.topics.ranges import Offsets, TopicPartition

K = TypeVar("K")
T = TypeVar("T")
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 1.0


class Positions:
    """Finds where partitions begin and end. It opens a client, so it cannot move to another process."""

    def __init__(self, cluster: Cluster) -> None:
        # A query whose login is refused fails at once, with the reason; the library would go on trying.
        check_handshake(cluster.settings())
        self._admin = Admin(cluster.settings())
        self._reads_committed = cluster.isolation == READ_COMMITTED

    def partitions(self, subscription: Subscription) -> set[TopicPartition]:
        """The partitions that are subscribed to, and exist."""
        counts = _with_retries(self._admin.topic_names)
        if subscription.kind == "assign":
            return {(topic, number) for topic, number in subscription.partitions if number < counts.get(topic, 0)}
        if subscription.kind == "subscribe":
            topics = [topic for topic in subscription.topics if topic in counts]
        else:
            matches = re.compile(subscription.pattern).fullmatch
            topics = [topic for topic in counts if matches(topic)]
        return {(topic, partition) for topic in topics for partition in range(counts[topic])}

    def existing_partitions(self, subscription: Subscription) -> set[TopicPartition]:
        """The same; StreamsError if a topic or partition that was named does not exist."""
        partitions = self.partitions(subscription)
        missing = sorted(set(subscription.topics) - {topic for topic, _ in partitions})
        missing += [f"{topic}-{number}" for topic, number in sorted(set(subscription.partitions) - partitions)]
        if missing:
            raise StreamsError(
                f"These topics or partitions do not exist, or this user may not see them: {', '.join(missing)}"
            )
        return partitions

    def ids(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """The ids of the topics, which show whether one was deleted and recreated; none if the cluster has no ids."""
        topics = sorted({topic for topic, _ in partitions})
        found = _skip_missing(self._admin.topics, topics) if topics else []
        return {item.name: item.topic_id for item in found if item.topic_id.strip("A=")}

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition; those that no longer exist are left out."""
        return self._offsets(partitions, "earliest")

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each partition ends for this reader; those that no longer exist are left out."""
        wanted = sorted(partitions)
        if self._reads_committed:
            return _with_retries(lambda: self._admin.committed_ends(wanted))
        return self._offsets(wanted, "latest")

    def resolve(
        self, boundary: Boundary, partitions: set[TopicPartition], *, late_is_end: bool
    ) -> dict[TopicPartition, int]:
        """The offset at which each partition begins or ends."""
        match boundary.kind:
            case "earliest":
                return self.earliest(partitions)
            case "latest":
                return self.latest(partitions)
            case "offsets":
                offsets = _complete(boundary, partitions)
                first = self.earliest(item for item, offset in offsets.items() if offset == EARLIEST)
                last = self.latest(item for item, offset in offsets.items() if offset == LATEST)
                return {**offsets, **first, **last}
            case "timestamp":
                times = dict.fromkeys(partitions, boundary.timestamp_ms)
                return self._at_times(times, boundary, late_is_end=late_is_end)
            case "timestamps":
                return self._at_times(_complete(boundary, partitions), boundary, late_is_end=late_is_end)

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Commit for a group, so that every tool sees its lag."""
        _with_retries(lambda: self._admin.set_group_offsets(group_id, offsets))

    def _at_times(
        self, times: Mapping[TopicPartition, int], boundary: Boundary, *, late_is_end: bool
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for moment in set(times.values()):
            found |= self._offsets((item for item, time_ms in times.items() if time_ms == moment), moment)
        late = [item for item, offset in found.items() if offset < 0]
        if late and not late_is_end:
            raise WrongOption(
                boundary.key,
                boundary.timestamp_ms if boundary.kind == "timestamp" else offsets_by_topic(times),
                f"no record is that late in {partition_names(late)};"
                " startingOffsetsByTimestampStrategy=latest begins at the end there",
            )
        return {**found, **self.latest(late)}

    def _offsets(self, partitions: Iterable[TopicPartition], spec: str | int) -> dict[TopicPartition, int]:
        found = _skip_missing(lambda wanted: list(self._admin.offsets(wanted, spec).items()), sorted(partitions))
        return dict(found)


def partition_names(partitions: Iterable[TopicPartition]) -> str:
    """`topic-0, topic-1`."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))


def _complete(boundary: Boundary, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset or time for each partition: every partition must be named, and no other."""
    if set(boundary.offsets) != partitions:
        expected = f"must name every partition that is read, and no other: {partition_names(partitions)}"
        raise WrongOption(boundary.key, offsets_by_topic(boundary.offsets), expected)
    return dict(boundary.offsets)


def _skip_missing(request: Callable[[list[K]], list[T]], wanted: list[K]) -> list[T]:
    """The answer for all at once or, if one of them does not exist, for each of those that do."""
    try:
        return _with_retries(lambda: request(wanted))
    except NotFound:
        found: list[T] = []
        for item in wanted:
            with suppress(NotFound):
                found += request([item])
        return found


def _with_retries(request: Callable[[], T]) -> T:
    """The answer, after a few attempts while the cluster does not answer."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return request()
        except (Unreachable, Retriable):
            time.sleep(_PAUSE_SECONDS)
    return request()
