"""Server-side assignors of KIP-848, as pure functions of the subscriptions.

Both are sticky: members keep their partitions as far as the balance allows, so that the next target assignment moves as
few partitions as possible. Racks are ignored.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; a topic without partitions is left out."""

_TopicPartition: TypeAlias = tuple[bytes, int]
"""Topic id and partition."""

NOTHING: Final[Assignment] = {}
_ROUNDS_MAX: Final = 100
"""Each balancing round brings the loads closer together; this bounds the time for unfavourable subscriptions."""


class Assignor(Protocol):
    """Computes the target assignment of a group."""

    def __call__(
        self,
        subscriptions: Mapping[str, AbstractSet[bytes]],
        partition_counts: Mapping[bytes, int],
        current: Mapping[str, Assignment],
    ) -> dict[str, Assignment]:
        """The partitions of each member.

        `subscriptions` has the topics of every member, `partition_counts` at least those topics, and `current` the
        previous assignment, which may contain members, topics and partitions that no longer exist.
        """


def assign_uniform(
    subscriptions: Mapping[str, AbstractSet[bytes]],
    partition_counts: Mapping[bytes, int],
    current: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """Distribute partitions evenly: with equal subscriptions, the counts of members differ by at most one."""
    members = sorted(subscriptions)
    if not members:
        return {}
    topics = subscriptions[members[0]]
    if all(subscription == topics for subscription in subscriptions.values()):
        places = [(topic, partition) for topic in sorted(topics) for partition in range(partition_counts[topic])]
        shares = _share_equally(members, places, current)
    else:
        shares = _share_by_subscription(subscriptions, partition_counts, current)
    return {member: _assignment(shares[member]) for member in members}


def assign_range(
    subscriptions: Mapping[str, AbstractSet[bytes]],
    partition_counts: Mapping[bytes, int],
    current: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """Give each member a contiguous range of every topic; topics with the same readers are divided alike.

    So a member reads the same partition numbers of topics that are to be joined. Members keep the order of their
    ranges, and new members come last.
    """
    readers = _readers(subscriptions)
    topics_of: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
    for topic, members in readers.items():
        topics_of[tuple(members)].append(topic)
    shares: dict[str, dict[bytes, frozenset[int]]] = {member: {} for member in subscriptions}
    for members_of_topics, topics in topics_of.items():
        ordered = _in_order_of_ranges(members_of_topics, topics, current)
        for topic in topics:
            for member, partitions in _ranges(ordered, partition_counts[topic]):
                shares[member][topic] = partitions
    return dict(shares)


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}


# --- uniform, all members with the same topics -----------------------------------------------------------------------


def _share_equally(
    members: Sequence[str], places: Sequence[_TopicPartition], current: Mapping[str, Assignment]
) -> dict[str, list[_TopicPartition]]:
    free = set(places)
    shares = {member: _claim(current.get(member, NOTHING), free) for member in members}
    smallest, larger_count = divmod(len(places), len(members))
    # Members with the most partitions get the larger shares, so that they give away fewer.
    by_load = sorted(members, key=lambda member: -len(shares[member]))
    room: deque[tuple[str, int]] = deque()
    for index, member in enumerate(by_load):
        quota = smallest + 1 if index < larger_count else smallest
        share = shares[member]
        free.update(share[quota:])
        del share[quota:]
        if len(share) < quota:
            room.append((member, quota - len(share)))
    # Round-robin, so that the partitions of one topic go to different members.
    for place in sorted(free):
        member, left = room.popleft()
        shares[member].append(place)
        if left > 1:
            room.append((member, left - 1))
    return shares


def _claim(assignment: Assignment, free: set[_TopicPartition]) -> list[_TopicPartition]:
    """The previous partitions that still exist, ordered so that those given away come from all topics alike."""
    claimed = [
        (topic, partition)
        for topic, partitions in assignment.items()
        for partition in partitions
        if (topic, partition) in free
    ]
    claimed.sort(key=lambda place: (place[1], place[0]))
    free.difference_update(claimed)
    return claimed


# --- uniform, members with different topics --------------------------------------------------------------------------


def _share_by_subscription(
    subscriptions: Mapping[str, AbstractSet[bytes]],
    partition_counts: Mapping[bytes, int],
    current: Mapping[str, Assignment],
) -> dict[str, list[_TopicPartition]]:
    readers = _readers(subscriptions)
    held: dict[bytes, dict[str, list[int]]] = {topic: defaultdict(list) for topic in readers}
    load = dict.fromkeys(sorted(subscriptions), 0)
    _keep(subscriptions, partition_counts, current, held, load)
    for topic in sorted(readers, key=lambda topic: (len(readers[topic]), topic)):
        _give_to_least_loaded(partition_counts[topic], readers[topic], held[topic], load)
    for _ in range(_ROUNDS_MAX):
        moves = [_even_out(readers[topic], held[topic], load) for topic in readers]
        if not any(moves):
            break
    shares: dict[str, list[_TopicPartition]] = {member: [] for member in subscriptions}
    for topic, holders in held.items():
        for member, partitions in holders.items():
            shares[member].extend((topic, partition) for partition in partitions)
    return shares


def _keep(
    subscriptions: Mapping[str, AbstractSet[bytes]],
    partition_counts: Mapping[bytes, int],
    current: Mapping[str, Assignment],
    held: dict[bytes, dict[str, list[int]]],
    load: dict[str, int],
) -> None:
    taken: set[_TopicPartition] = set()
    for member in load:
        for topic, partitions in current.get(member, NOTHING).items():
            if topic not in subscriptions[member]:
                continue
            kept = [p for p in sorted(partitions) if p < partition_counts[topic] and (topic, p) not in taken]
            if kept:
                taken.update((topic, partition) for partition in kept)
                held[topic][member] = kept
                load[member] += len(kept)


def _give_to_least_loaded(
    partition_count: int, readers: Sequence[str], holders: dict[str, list[int]], load: dict[str, int]
) -> None:
    taken = {partition for partitions in holders.values() for partition in partitions}
    if len(taken) == partition_count:
        return
    queue = [(load[member], member) for member in readers]
    heapq.heapify(queue)
    for partition in range(partition_count):
        if partition not in taken:
            count, member = queue[0]
            holders[member].append(partition)
            load[member] = count + 1
            heapq.heapreplace(queue, (count + 1, member))


def _even_out(readers: Sequence[str], holders: dict[str, list[int]], load: dict[str, int]) -> bool:
    """Move partitions of one topic from the most to the least loaded reader while that improves the balance."""
    moved = False
    while True:
        least = min(readers, key=load.__getitem__)
        most = max(
            (member for member, partitions in holders.items() if partitions), key=load.__getitem__, default=least
        )
        if load[most] - load[least] <= 1:
            return moved
        holders[least].append(holders[most].pop())
        load[most] -= 1
        load[least] += 1
        moved = True


# --- range -----------------------------------------------------------------------------------------------------------


def _in_order_of_ranges(
    members: Sequence[str], topics: Sequence[bytes], current: Mapping[str, Assignment]
) -> list[str]:
    def lowest_partition(member: str) -> float:
        assignment = current.get(member, NOTHING)
        return min((min(assignment[topic]) for topic in topics if assignment.get(topic)), default=float("inf"))

    return sorted(members, key=lambda member: (lowest_partition(member), member))


def _ranges(members: Sequence[str], partition_count: int) -> Iterable[tuple[str, frozenset[int]]]:
    """Ranges of nearly equal length in the order of the members; none for members beyond the last partition."""
    length, longer_count = divmod(partition_count, len(members))
    start = 0
    for index, member in enumerate(members):
        end = start + (length + 1 if index < longer_count else length)
        if end > start:
            yield member, frozenset(range(start, end))
        start = end


# --- conversions -----------------------------------------------------------------------------------------------------


def _readers(subscriptions: Mapping[str, AbstractSet[bytes]]) -> dict[bytes, list[str]]:
    readers: dict[bytes, list[str]] = defaultdict(list)
    for member in sorted(subscriptions):
        for topic in subscriptions[member]:
            readers[topic].append(member)
    return {topic: readers[topic] for topic in sorted(readers)}


def _assignment(places: Iterable[_TopicPartition]) -> Assignment:
    partitions: dict[bytes, list[int]] = defaultdict(list)
    for topic, partition in places:
        partitions[topic].append(partition)
    return {topic: frozenset(numbers) for topic, numbers in partitions.items()}
