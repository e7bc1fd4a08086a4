"""Chooses the brokers for the replicas of new partitions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest

from core_broker.cluster.metadata import BrokerImage
from core_broker.errors import BrokerError, ErrorCode


def place(
    brokers: Iterable[BrokerImage], *, partition_count: int, replication_factor: int, first_partition: int = 0
) -> list[list[int]]:
    """Replicas for each partition, the leader first: leaders are assigned round-robin, and so are their followers.

    Replicas are spread over racks. A broker that is fenced or stopping never leads, and follows only where its rack has
    no other. Raises INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    ring = _alternating_racks(brokers)
    if replication_factor > len(ring):
        raise _impossible(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because only {len(ring)} "
            "broker(s) are registered.",
        )
    leaders = [place for place, broker in enumerate(ring) if _is_active(broker)]
    if not leaders:
        raise _impossible(replication_factor, "All brokers are currently fenced or in controlled shutdown.")
    return [
        _replicas(ring, leaders, index, replication_factor)
        for index in range(first_partition, first_partition + partition_count)
    ]


def check_assignment(replicas: Sequence[int], brokers: Mapping[int, BrokerImage], *, replication_factor: int) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless a manual choice of replicas is valid."""
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    if len(set(replicas)) != len(replicas):
        raise _invalid(f"The manual partition assignment includes a broker more than once: {list(replicas)}.")
    unknown = [broker_id for broker_id in replicas if broker_id not in brokers]
    if unknown:
        known = ", ".join(map(str, sorted(brokers)))
        raise _invalid(
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered; "
            f"the registered brokers are {known}."
        )
    if len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _replicas(
    ring: Sequence[BrokerImage], leaders: Sequence[int], partition: int, replication_factor: int
) -> list[int]:
    """The leader round-robin; the followers shift by one whenever the leaders have gone all the way round."""
    leader = leaders[partition % len(leaders)]
    others = len(ring) - 1
    shift = partition // len(leaders)
    followers = [ring[(leader + 1 + (shift + step) % others) % len(ring)] for step in range(others)]
    chosen = [ring[leader]]
    while len(chosen) < replication_factor:
        racks = Counter(broker.rack for broker in chosen)
        # Only the fewest replicas in a rack count, then an active broker; `min` keeps the order of the ring.
        follower = min(followers, key=lambda broker: (racks[broker.rack], not _is_active(broker)))
        followers.remove(follower)
        chosen.append(follower)
    return [broker.broker_id for broker in chosen]


def _alternating_racks(brokers: Iterable[BrokerImage]) -> list[BrokerImage]:
    """Brokers ordered so that neighbours are in different racks as far as possible."""
    racks: dict[str | None, list[BrokerImage]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker)
    return [broker for broker in chain.from_iterable(zip_longest(*racks.values())) if broker is not None]


def _is_active(broker: BrokerImage) -> bool:
    return not broker.is_fenced and not broker.in_controlled_shutdown


def _impossible(replication_factor: int, reason: str) -> BrokerError:
    text = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    return BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
