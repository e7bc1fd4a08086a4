"""Where partitions begin and end, and what a group has committed: what the driver asks a cluster."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from core_broker.client.admin import Admin
from core_broker.client.errors import NotFound, Retriable, Unreachable
from core_broker.client.models import Topic
from streams.errors import StreamsError, WrongOption
from streams.spark.topics.cluster import READ_COMMITTED, Cluster
from streams.spark.topics.offsets import EARLIEST, LATEST, by_topic
from streams.spark.topics.options import Boundary, Subscription
from streams.spark.topics.ranges import Offsets, TopicPartition

T = TypeVar("T")
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 1.0


class Positions:
    """Asks a cluster where partitions begin and end. It opens a client, so it lives in one process."""

    def __init__(self, cluster: Cluster) -> None:
        self._admin = Admin(cluster.settings())
        self._reads_committed = cluster.isolation == READ_COMMITTED

    def places(self, subscription: Subscription) -> set[TopicPartition]:
        """The partitions that are subscribed to, and exist."""
        counts = _tried(self._admin.topic_names)
        if subscription.kind == "assign":
            return {place for place in subscription.places if place[1] < counts.get(place[0], 0)}
        if subscription.kind == "subscribe":
            topics = [topic for topic in subscription.topics if topic in counts]
        else:
            fits = re.compile(subscription.pattern).fullmatch
            topics = [topic for topic in counts if fits(topic)]
        return {(topic, partition) for topic in topics for partition in range(counts[topic])}

    def existing_places(self, subscription: Subscription) -> set[TopicPartition]:
        """The same; StreamsError when something is subscribed to by name and does not exist."""
        places = self.places(subscription)
        missing = sorted(set(subscription.topics) - {topic for topic, _ in places})
        missing += [f"{topic}-{partition}" for topic, partition in sorted(set(subscription.places) - places)]
        if missing:
            raise StreamsError(f"These topics or partitions do not exist: {', '.join(missing)}")
        return places

    def ids(self, places: Iterable[TopicPartition]) -> dict[str, str]:
        """The ids of the topics, which tell whether one was deleted and made anew; none where there are none."""
        topics = sorted({topic for topic, _ in places})
        try:
            found = _tried(lambda: self._admin.topics(topics)) if topics else []
        except NotFound:
            found = [told for topic in topics for told in self._described(topic)]
        return {told.name: told.topic_id for told in found if told.topic_id.strip("A=")}

    def _described(self, topic: str) -> list[Topic]:
        try:
            return self._admin.topics([topic])
        except NotFound:
            return []

    def earliest(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition; those that are gone are left out."""
        return self._asked(places, "earliest")

    def latest(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each partition ends for this reader; those that are gone are left out."""
        wanted = sorted(places)
        if self._reads_committed:
            return _tried(lambda: self._admin.committed_ends(wanted))
        return self._asked(wanted, "latest")

    def resolved(
        self, boundary: Boundary, places: set[TopicPartition], *, late_is_end: bool
    ) -> dict[TopicPartition, int]:
        """The offset at which each partition begins or ends."""
        match boundary.kind:
            case "earliest":
                return self.earliest(places)
            case "latest":
                return self.latest(places)
            case "offsets":
                return self._chosen(_all_of(boundary, places))
            case "timestamp":
                return self._at(dict.fromkeys(places, boundary.timestamp_ms), boundary, late_is_end=late_is_end)
            case "timestamps":
                return self._at(_all_of(boundary, places), boundary, late_is_end=late_is_end)

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Commit for a group, so that its lag is seen by all."""
        _tried(lambda: self._admin.set_group_offsets(group_id, offsets))

    def _chosen(self, offsets: Offsets) -> dict[TopicPartition, int]:
        first = self.earliest(place for place, offset in offsets.items() if offset == EARLIEST)
        last = self.latest(place for place, offset in offsets.items() if offset == LATEST)
        return {**offsets, **first, **last}

    def _at(
        self, times: Mapping[TopicPartition, int], boundary: Boundary, *, late_is_end: bool
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for moment in set(times.values()):
            found |= self._asked((place for place, time_ms in times.items() if time_ms == moment), moment)
        late = [place for place, offset in found.items() if offset < 0]
        if late and not late_is_end:
            raise WrongOption(
                boundary.key,
                boundary.timestamp_ms if boundary.kind == "timestamp" else by_topic(times),
                f"no record is that late in {', '.join(f'{topic}-{number}' for topic, number in sorted(late))};"
                " startingOffsetsByTimestampStrategy=latest begins at the end there",
            )
        return {**found, **self.latest(late)}

    def _asked(self, places: Iterable[TopicPartition], spec: str | int) -> dict[TopicPartition, int]:
        wanted = sorted(places)
        try:
            return _tried(lambda: self._admin.offsets(wanted, spec))
        except NotFound:
            found: dict[TopicPartition, int] = {}
            for place in wanted:  # One of them is gone: each is asked for by itself.
                try:
                    found |= self._admin.offsets([place], spec)
                except NotFound:
                    continue
            return found


def _all_of(boundary: Boundary, places: set[TopicPartition]) -> dict[TopicPartition, int]:
    """What is chosen for each partition: every one must be named, and no other."""
    if set(boundary.offsets) != places:
        raise WrongOption(
            boundary.key,
            by_topic(boundary.offsets),
            f"must name every partition that is read, and no other: {_listed(places)}",
        )
    return dict(boundary.offsets)


def _listed(places: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(places))


def _tried(ask: Callable[[], T]) -> T:
    """The answer, after a few attempts while the cluster does not answer."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return ask()
        except (Unreachable, Retriable):
            time.sleep(_PAUSE_SECONDS)
    return ask()
