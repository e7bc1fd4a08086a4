"""Plans the reassignment of replicas to other brokers (KIP-455): start, replace, cancel.

While it runs, a partition has its old and its new replicas. It is complete once the new ones are in sync, which is
checked with every change of the partition (`transitions.completed_reassignment`).
"""

from collections.abc import Sequence

from core_broker.cluster.controller.placement import check_assignment
from core_broker.cluster.controller.transitions import RECOVERING, Election, TopicRules, Wish, change_record
from core_broker.cluster.metadata import MetadataImage, PartitionImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.stored.metadata import PartitionChangeRecord


class Reassigner:
    """Plans the reassignments of one request."""

    def __init__(self, image: MetadataImage, rules: TopicRules, *, allow_factor_change: bool = True) -> None:
        """Without `allow_factor_change` the number of replicas must stay what it is (KIP-860)."""
        self._image = image
        self._rules = rules
        self._allow_factor_change = allow_factor_change

    def plan(self, topic_name: str, index: int, target: Sequence[int] | None) -> PartitionChangeRecord | None:
        """Reassign a partition to `target`, or cancel its reassignment with None. Raises BrokerError."""
        topic = self._image.topics.get(topic_name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None:
            text = f"No such partition as {topic_name}-{index}"
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        rules = self._rules.of(topic, partition)
        if target is None:
            wish = _cancellation(partition, f"{topic_name}-{index}", allows_unclean=rules.allows_unclean)
        else:
            self._check(target, partition, f"{topic_name}-{index}")
            wish = _reassignment(partition, tuple(target))
        return change_record(partition, wish, rules, topic_id=topic.topic_id, index=index)

    def _check(self, target: Sequence[int], partition: PartitionImage, name: str) -> None:
        check_assignment(target, self._image.brokers, replication_factor=len(target))
        before = sum(replica not in partition.adding_replicas for replica in partition.replicas)
        if not self._allow_factor_change and len(target) != before:
            raise BrokerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor of {name} is {before}; the request changes it to {len(target)}, "
                "but does not allow such a change.",
            )


def _reassignment(partition: PartitionImage, target: tuple[int, ...]) -> Wish:
    """The target first, then what is removed, so that the first replica of the target is the preferred leader."""
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    added = set(target) - set(partition.replicas) | set(target) & set(partition.adding_replicas)
    return Wish(replicas=(*target, *removing), adding=tuple(sorted(added)), removing=removing, election=Election.ONLINE)


def _cancellation(partition: PartitionImage, name: str, *, allows_unclean: bool) -> Wish:
    """Back to the replicas from before, as far as one of them has every committed record."""
    if not partition.adding_replicas and not partition.removing_replicas:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(replica for replica in partition.isr if replica in replicas)
    if not isr and not set(partition.elr) & set(replicas):
        if not allows_unclean:
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {name} because it would require an unclean leader "
                "election.",
            )
        return Wish(replicas=replicas, isr=replicas[:1], adding=(), removing=(), recovery_state=RECOVERING)
    return Wish(replicas=replicas, isr=isr, adding=(), removing=())
