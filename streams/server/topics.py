"""Topics of the cluster, as statements need them."""

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import AlreadyExists, ClientError, NotFound, Rejected
from core_broker.client.group_consumer import Commit
from core_broker.client.models import Topic
from core_broker.client.settings import ClientSettings
from streams.model.plan import Query, TopicRequest
from streams.server.errors import BadStatement

INTERNAL: Final = "_streams-"
"""What names of topics that services keep for themselves begin with."""
_READY_SECONDS: Final = 15.0
_GONE_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.05


class Topics:
    """Threads may share it; errors of the cluster are raised as `ClientError`."""

    def __init__(self, settings: ClientSettings, *, hidden: Sequence[str] = (), read_only: Sequence[str] = ()) -> None:
        self.admin = Admin(settings)
        self._hidden = [re.compile(pattern) for pattern in hidden]
        self._read_only = [re.compile(pattern) for pattern in read_only]

    def partitions(self) -> Mapping[str, int]:
        """Every topic and its number of partitions."""
        return self.admin.topic_names()

    def all(self, *, with_hidden: bool = False) -> list[Topic]:
        """Every topic, by name, with its partitions."""
        return [topic for topic in self.admin.all_topics() if with_hidden or not self.is_hidden(topic.name)]

    def is_hidden(self, name: str) -> bool:
        """Whether SHOW TOPICS leaves a topic out."""
        return _is_ours(name) or any(pattern.fullmatch(name) for pattern in self._hidden)

    def is_read_only(self, name: str) -> bool:
        """Whether statements may not write to a topic."""
        return _is_ours(name) or any(pattern.fullmatch(name) for pattern in self._read_only)

    def describe(self, name: str) -> Topic | None:
        """A topic with its partitions; None if it does not exist."""
        try:
            return self.admin.topics([name])[0]
        except NotFound:
            return None

    def config(self, name: str, key: str) -> str | None:
        """The value of a config of a topic; None if there is no such topic or config."""
        try:
            return next((config.value for config in self.admin.configs(name) if config.key == key), None)
        except NotFound:
            return None

    # --- making and deleting ---

    def check(self, requests: Iterable[TopicRequest], existing: Mapping[str, int]) -> None:
        """Raise BadStatement if an existing topic is not as it has to be."""
        for request in requests:
            partitions = existing.get(request.name)
            wanted = request.partitions
            if request.must_match and partitions is not None and wanted is not None and partitions != wanted:
                raise BadStatement(
                    f"A Kafka topic with the name '{request.name}' already exists, with different partition/replica "
                    f"configuration than required. KSQL expects {wanted} partitions (topic has {partitions}). "
                    "Leave out PARTITIONS, or name another topic."
                )

    def ensure(self, requests: Collection[TopicRequest]) -> None:
        """Make topics that are missing, and wait until they can be used."""
        if not requests:
            return
        existing = self.partitions()
        self.check(requests, existing)
        for request in requests:
            if request.name not in existing:
                self._make(request)

    def _make(self, request: TopicRequest) -> None:
        try:
            self.admin.create_topic(
                request.name,
                partitions=request.partitions or -1,
                replication_factor=request.replicas or -1,
                configs=request.configs,
            )
        except AlreadyExists:
            return
        except Rejected as error:
            raise BadStatement(f"The topic {request.name} cannot be made: {error}") from error
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            found = self.describe(request.name)
            if found is not None and all(partition.leader >= 0 for partition in found.partitions):
                return
            time.sleep(_PAUSE_SECONDS)

    def delete(self, names: Collection[str]) -> None:
        """Delete topics, and wait until they are gone; those that do not exist are gone already."""
        wanted = sorted(set(names) & set(self.partitions())) if names else []
        if not wanted:
            return
        for error in self.admin.delete_topics(wanted).values():
            if error is not None and not isinstance(error, NotFound):
                raise error
        deadline = time.monotonic() + _GONE_SECONDS
        while time.monotonic() < deadline and set(wanted) & set(self.partitions()):
            time.sleep(_PAUSE_SECONDS)

    def delete_groups(self, names: Collection[str]) -> None:
        """Delete consumer groups that have no members; those that do not exist are gone already."""
        if names:
            for error in self.admin.delete_groups(sorted(names)).values():
                if error is not None and not isinstance(error, NotFound):
                    raise error

    # --- offsets ---

    def ends(self, names: Collection[str]) -> dict[str, dict[int, tuple[int, int]]]:
        """The first and the next offset of each partition of topics; those that do not exist are left out."""
        known = self.partitions()
        places: list[TopicPartition] = [
            (name, number) for name in sorted(set(names)) if name in known for number in range(known[name])
        ]
        starts, ends = self.admin.offsets(places, "earliest"), self.admin.committed_ends(places)
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for place, end in ends.items():
            found.setdefault(place[0], {})[place[1]] = (starts.get(place, 0), end)
        return found

    def pin(self, query: Query) -> None:
        """Commit where a new query begins that reads from now on: what is written before it runs is not left out.

        The engine begins there, because the metadata say that no batch has been written yet.
        """
        for plan in query.plans:
            names = {one.source.topic for one in plan.inputs if one.starting == "latest" and not one.is_internal}
            if plan.group is None or not names:
                continue
            commits = {
                (topic, number): Commit(end, f"{query.generation}:-1")
                for topic, partitions in self.ends(names).items()
                for number, (_, end) in partitions.items()
            }
            self.admin.set_group_commits(plan.group, commits)

    def committed(self, group: str) -> dict[str, dict[int, int]]:
        """The committed offsets of a group, by topic and partition; empty if it has none."""
        try:
            offsets = self.admin.group_offsets(group)
        except ClientError:
            return {}
        found: dict[str, dict[int, int]] = {}
        for (topic, number), offset in offsets.items():
            found.setdefault(topic, {})[number] = offset
        return found


def _is_ours(name: str) -> bool:
    """Whether the topic belongs to a service: its definitions, or what flows between the parts of its queries."""
    return name.startswith(INTERNAL)
