"""Chooses the brokers for the replicas of new partitions."""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from core_broker.cluster.metadata import BrokerImage
from core_broker.errors import BrokerError, ErrorCode


def place(
    brokers: Sequence[BrokerImage], *, partition_count: int, replication_factor: int, first_partition: int = 0
) -> list[list[int]]:
    """Replicas for each partition, the leader first: leaders are assigned round-robin, and so are their followers.

    Raises INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    if replication_factor > len(brokers):
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(brokers)} broker(s) are registered.",
        )
    ring = _alternating_racks(brokers)
    return [
        _replicas(ring, index, replication_factor)
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


def _replicas(ring: Sequence[int], partition: int, replication_factor: int) -> list[int]:
    """The leader round-robin; the followers shift by one whenever the leaders have gone all the way round."""
    count = len(ring)
    leader = partition % count
    if count == 1:
        return [ring[0]]
    shift = (partition // count) % (count - 1)
    followers = [ring[(leader + 1 + (shift + step) % (count - 1)) % count] for step in range(replication_factor - 1)]
    return [ring[leader], *followers]


def _alternating_racks(brokers: Sequence[BrokerImage]) -> list[int]:
    """Broker ids ordered so that neighbours are in different racks as far as possible."""
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker.broker_id)
    return [broker_id for broker_id in chain.from_iterable(zip_longest(*racks.values())) if broker_id is not None]


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
