"""Plans which brokers hold which replicas: none on one broker, more of them, or evenly over all.

A plan changes as little as it can. A new replica goes to a rack that the partition does not use yet, then to the broker
with the fewest replicas of the topic, then to the one with the fewest of all.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from core_broker.client.consumer import TopicPartition
from core_broker.client.models import Broker, Topic

Assignment = dict[TopicPartition, tuple[int, ...]]
"""The brokers of each partition; the first is the preferred leader."""

_FILE_VERSION: Final = 1


class PlanFileError(Exception):
    """The file is not a list of partitions with their replicas."""


class Move(msgspec.Struct, frozen=True):
    """A partition and its replicas before and after."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True):
    """Moves, and partitions for which there is no way."""

    moves: list[Move]
    offline: list[TopicPartition] = []
    """Without a leader: there is no replica to copy."""
    crowded: list[TopicPartition] = []
    """Every other live broker has a replica of them already."""

    @property
    def assignment(self) -> Assignment:
        """The replicas after the moves."""
        return {(move.topic, move.partition): move.after for move in self.moves}


def plan_drain(
    topics: Iterable[Topic], brokers: Iterable[Broker], broker_id: int, *, allow_fewer: bool = False
) -> Plan:
    """Replace each replica on a broker by one on another; with `allow_fewer`, drop it if there is no other broker."""
    listed = list(topics)
    spread = _Spread(listed, brokers, without=(broker_id,))
    plan = Plan([], [], [])
    for topic in listed:
        for partition in topic.partitions:
            if broker_id not in partition.replicas:
                continue
            name, others = (topic.name, partition.index), [item for item in partition.replicas if item != broker_id]
            if partition.leader < 0:
                plan.offline.append(name)
                continue
            substitute = spread.choose(topic.name, others)
            if substitute is not None:
                spread.add(topic.name, substitute)
                after = tuple(substitute if item == broker_id else item for item in partition.replicas)
            elif allow_fewer and others:
                after = tuple(others)
            else:
                plan.crowded.append(name)
                continue
            plan.moves.append(Move(*name, partition.replicas, after))
    return plan


def plan_growth(topics: Iterable[Topic], brokers: Iterable[Broker], factor: int) -> Plan:
    """Add replicas to partitions that have fewer than `factor`."""
    listed = list(topics)
    spread = _Spread(listed, brokers)
    plan = Plan([], [], [])
    for topic in listed:
        for partition in topic.partitions:
            after = list(partition.replicas)
            if len(after) >= factor:
                continue
            if partition.leader < 0:
                plan.offline.append((topic.name, partition.index))
                continue
            while len(after) < factor and (another := spread.choose(topic.name, after)) is not None:
                spread.add(topic.name, another)
                after.append(another)
            if len(after) < factor:
                plan.crowded.append((topic.name, partition.index))
            if len(after) > len(partition.replicas):
                plan.moves.append(Move(topic.name, partition.index, partition.replicas, tuple(after)))
    return plan


def plan_balance(topics: Iterable[Topic], brokers: Iterable[Broker], *, onto: Iterable[int] | None = None) -> Plan:
    """Spread replicas and preferred leaders evenly over the live brokers, or over those named by `onto`."""
    listed, known = list(topics), list(brokers)
    unwanted = set() if onto is None else {broker.id for broker in known} - set(onto)
    spread = _Spread(listed, known, without=unwanted)
    plan = Plan([], [], [])
    before = {(topic.name, item.index): item for topic in listed for item in topic.partitions}
    after: Assignment = {}
    for name, partition in before.items():
        if partition.leader < 0:
            plan.offline.append(name)
            continue
        replicas = list(partition.replicas)
        for position, broker_id in enumerate(partition.replicas):
            if broker_id in unwanted:
                others = [item for item in replicas if item != broker_id]
                substitute = spread.choose(name[0], others)
                if substitute is None:
                    break
                spread.add(name[0], substitute)
                replicas[position] = substitute
        if set(replicas) & unwanted:
            plan.crowded.append(name)
        else:
            after[name] = tuple(replicas)
    while sum(_even_out(name, after, spread) for name in after):
        pass
    _even_out_leaders(after, spread.targets)
    plan.moves.extend(
        Move(*name, before[name].replicas, replicas)
        for name, replicas in after.items()
        if replicas != before[name].replicas
    )
    return plan


def read_plan(text: str) -> Assignment:
    """The replicas in the JSON format of `kafka-reassign-partitions`; raises `PlanFileError`."""
    try:
        found: Any = json.loads(text)
        listed = found["partitions"]
        version = found.get("version", _FILE_VERSION)
        assignment = {
            (str(item["topic"]), int(item["partition"])): tuple(int(broker_id) for broker_id in item["replicas"])
            for item in listed
        }
        directories = {directory for item in listed for directory in item.get("log_dirs", ())}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PlanFileError(f"{type(error).__name__}: {error}") from error
    if version != _FILE_VERSION:
        raise PlanFileError(f"its version is {version}, not {_FILE_VERSION}")
    if len(assignment) != len(listed):
        raise PlanFileError("a partition is listed twice")
    if not assignment:
        raise PlanFileError("it lists no partitions")
    for (topic, partition), replicas in assignment.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise PlanFileError(f"the replicas of {topic}-{partition} are {list(replicas)}")
    if directories - {"any"}:
        raise PlanFileError("`log_dirs` other than `any` are not supported")
    return assignment


def plan_document(assignment: Mapping[TopicPartition, Iterable[int]]) -> dict[str, object]:
    """The same as an object for JSON."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in assignment.items()
    ]
    return {"version": _FILE_VERSION, "partitions": partitions}


def moves_of(assignment: Assignment, topics: Iterable[Topic]) -> tuple[list[Move], list[TopicPartition]]:
    """What an assignment changes, and which of its partitions do not exist."""
    before = {(topic.name, item.index): item.replicas for topic in topics for item in topic.partitions}
    moves = [
        Move(*name, before[name], replicas)
        for name, replicas in assignment.items()
        if name in before and replicas != before[name]
    ]
    return moves, [name for name in assignment if name not in before]


def bytes_copied(moves: Iterable[Move], sizes: Mapping[int, Mapping[TopicPartition, int]]) -> tuple[int, int]:
    """How much new replicas have, and how much they will, given the size of each replica by broker."""
    copied = total = 0
    for move in moves:
        found = {broker_id: sizes.get(broker_id, {}).get((move.topic, move.partition), 0) for broker_id in move.after}
        source = max(sizes.get(broker_id, {}).get((move.topic, move.partition), 0) for broker_id in move.before)
        whole = max(source, *found.values())
        new = [broker_id for broker_id in move.after if broker_id not in move.before]
        copied += sum(found[broker_id] for broker_id in new)
        total += whole * len(new)
    return copied, total


class _Spread:
    """How many replicas each broker has, as planned so far."""

    def __init__(self, topics: Iterable[Topic], brokers: Iterable[Broker], *, without: Iterable[int] = ()) -> None:
        known = list(brokers)
        self._racks = {broker.id: broker.rack for broker in known}
        self.targets = sorted({broker.id for broker in known if not broker.is_fenced} - set(without))
        self.total: Counter[int] = Counter()
        self._of_topic: Counter[tuple[str, int]] = Counter()
        for topic in topics:
            for partition in topic.partitions:
                for broker_id in partition.replicas:
                    self.add(topic.name, broker_id)

    def add(self, topic: str, broker_id: int, count: int = 1) -> None:
        """Count a planned replica; -1 for one that is taken away."""
        self.total[broker_id] += count
        self._of_topic[topic, broker_id] += count

    def choose(self, topic: str, replicas: Iterable[int]) -> int | None:
        """The best broker for one more replica beside these; None if each has one."""
        present = set(replicas)
        return min(
            (broker_id for broker_id in self.targets if broker_id not in present),
            key=lambda item: (
                self.shares_rack(item, present),
                self._of_topic[topic, item],
                self.total[item],
                item,
            ),
            default=None,
        )

    def shares_rack(self, broker_id: int, others: Iterable[int]) -> bool:
        """Whether one of the others is in the rack of this broker."""
        rack = self._racks.get(broker_id)
        return rack is not None and any(self._racks.get(other) == rack for other in others)


def _even_out(name: TopicPartition, after: Assignment, spread: _Spread) -> bool:
    """Move one replica of a partition to a broker that has at least two fewer; returns whether it did."""
    replicas = after[name]
    for broker_id in sorted(replicas, key=lambda item: -spread.total[item]):
        others = [item for item in replicas if item != broker_id]
        for candidate in sorted(spread.targets, key=lambda item: (spread.total[item], item)):
            if spread.total[broker_id] - spread.total[candidate] < 2:
                break
            is_worse = spread.shares_rack(candidate, others) and not spread.shares_rack(broker_id, others)
            if candidate not in replicas and not is_worse:
                spread.add(name[0], broker_id, -1)
                spread.add(name[0], candidate)
                after[name] = tuple(candidate if item == broker_id else item for item in replicas)
                return True
    return False


def _even_out_leaders(after: Assignment, brokers: Iterable[int]) -> None:
    """Reorder replicas until no broker is the preferred leader of two partitions more than one it could yield to."""
    leaders = Counter(dict.fromkeys(brokers, 0))
    leaders.update(replicas[0] for replicas in after.values())
    has_changed = True
    while has_changed:
        has_changed = False
        for name, replicas in after.items():
            least = min(replicas, key=lambda item: leaders[item])
            if leaders[replicas[0]] - leaders[least] >= 2:
                leaders[replicas[0]] -= 1
                leaders[least] += 1
                after[name] = (least, *(item for item in replicas if item != least))
                has_changed = True
