"""Metrics of the cluster: replication, the controller and the metadata quorum.

Their names are those under which dashboards know Kafka's; what Kafka does not measure begins with `caudal_`. Everything
is computed when it is asked for, from state that is there anyway.
"""

from collections.abc import Iterable, Iterator
from math import inf

from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.metadata import NO_LEADER, MetadataImage, PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum, QuorumReplica
from core_broker.service.clock import Clock
from core_broker.service.metrics import Family, counter, gauge

_REPLICAS = "kafka_server_replicamanager"
_CONTROLLER = "kafka_controller_kafkacontroller"
_RAFT = "kafka_server_raft_metrics"


def replication_families(partitions: Partitions, image: MetadataImage) -> Iterator[Family]:
    """The replicas on this broker: those that it leads, and those that it follows."""
    hosted = list(partitions)
    leading = [partition for partition in hosted if partition.is_leader]
    in_sync = [(len(partition.isr), partition.min_in_sync_replicas) for partition in leading]
    described = [(partition, _described(partition, image)) for partition in leading]
    # A replica that is being added is not missing yet.
    missing = [len(p.replicas) - (0 if of is None else len(of.adding_replicas)) - len(p.isr) for p, of in described]
    moving = [of for _, of in described if of is not None and (of.adding_replicas or of.removing_replicas)]
    for name, help_text, value in (
        ("partitioncount", "Partitions on this broker", len(hosted)),
        ("leadercount", "Partitions led by this broker", len(leading)),
        ("underreplicatedpartitions", "Led with replicas out of sync", sum(count > 0 for count in missing)),
        ("underminisrpartitioncount", "Led below the minimum ISR", sum(isr < least for isr, least in in_sync)),
        ("atminisrpartitioncount", "Led with exactly the minimum ISR", sum(isr == least for isr, least in in_sync)),
        ("reassigningpartitions", "Led, and being moved to other replicas", len(moving)),
        ("offlinereplicacount", "Partitions that this broker cannot host because of a disk", partitions.offline_count),
    ):
        yield gauge(f"{_REPLICAS}_{name}", help_text, value)
    metrics = partitions.metrics
    for name, help_text, value in (
        ("isrshrinks", "Times that replicas of a led partition fell out of sync", metrics.isr_shrinks),
        ("isrexpands", "Times that replicas of a led partition got in sync", metrics.isr_expands),
        ("failedisrupdates", "Changes of in-sync replicas that the controller rejected", metrics.isr_changes_failed),
    ):
        yield counter(f"{_REPLICAS}_{name}_total", help_text, value)
    yield from _follower_families([partition for partition in hosted if not partition.is_leader])


def _follower_families(followed: list[Partition]) -> Iterator[Family]:
    lags = {partition: max(0, partition.leader_high_watermark - partition.log.end_offset) for partition in followed}
    yield Family(
        name="kafka_server_fetcherlagmetrics_consumerlag",
        help="Committed records of the leader that this follower lacks, by partition",
        labels=("clientId", "topic", "partition"),
        samples=[
            ((f"ReplicaFetcherThread-0-{partition.leader_id}", partition.topic, str(partition.index)), lag)
            for partition, lag in lags.items()
            if partition.leader_id != NO_LEADER
        ],
    )
    yield Family(
        name="kafka_server_replicafetchermanager_maxlag",
        help="The largest of these lags",
        labels=("clientId",),
        samples=[(("Replica",), max(lags.values(), default=0))],
    )


def _described(partition: Partition, image: MetadataImage) -> PartitionImage | None:
    topic = image.topics.get(partition.topic)
    return None if topic is None else topic.partitions.get(partition.index)


def controller_families(controller: Controller, quorum: MetadataQuorum) -> Iterator[Family]:
    """The cluster as a controller sees it: every controller knows it, and only the active one elects leaders."""
    image = quorum.image
    brokers = list(image.brokers.values())
    everywhere = [p for topic in list(image.topics.values()) for p in list(topic.partitions.values())]
    for name, help_text, value in (
        ("activecontrollercount", "1 on the active controller", int(quorum.is_leader)),
        ("activebrokercount", "Brokers that serve clients", sum(not broker.is_fenced for broker in brokers)),
        ("fencedbrokercount", "Registered brokers that do not", sum(broker.is_fenced for broker in brokers)),
        ("globaltopiccount", "Topics of the cluster", len(image.topics)),
        ("globalpartitioncount", "Partitions of the cluster", len(everywhere)),
        ("offlinepartitionscount", "Without a leader", sum(p.leader_id == NO_LEADER for p in everywhere)),
        (
            "preferredreplicaimbalancecount",
            "Led by another replica than the preferred one",
            sum(p.leader_id != p.replicas[0] for p in everywhere),
        ),
        ("lastappliedrecordoffset", "Last metadata record that this controller has applied", image.offset),
        ("lastcommittedrecordoffset", "Last metadata record that is committed", quorum.high_watermark - 1),
    ):
        yield gauge(f"{_CONTROLLER}_{name}", help_text, value)
    # A count without the suffix of a counter: that is how Kafka's histogram is exported.
    yield gauge(
        "kafka_controller_controllerstats_leaderelectionrateandtimems_count",
        "Leaders elected by this controller",
        controller.elections,
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders elected that may lack committed records",
        controller.unclean_elections,
    )


def quorum_families(quorum: MetadataQuorum, clock: Clock) -> Iterator[Family]:
    """The metadata log as this node knows it; how far the other nodes are, only its leader knows."""
    replicas = quorum.replicas()
    yield Family(
        name=f"{_RAFT}_current_state",
        help="1 for the role of this node in the metadata quorum",
        labels=("state",),
        samples=[((_state(quorum),), 1)],
    )
    for name, help_text, value in (
        ("current_leader", "Node id of the quorum's leader; -1 if unknown", quorum.leader_id),
        ("current_epoch", "Epoch of the quorum", quorum.leader_epoch),
        ("high_watermark", "First metadata offset that is not committed", quorum.high_watermark),
        ("log_end_offset", "Next offset of the metadata log on this node", quorum.end_offset),
        ("number_of_voters", "Voters of the quorum", len(quorum.voters)),
    ):
        yield gauge(f"{_RAFT}_{name}", help_text, value)
    if not quorum.is_leader:
        return
    others = [replica for replica in replicas if replica.key.id != quorum.node_id]
    observers = sum(not replica.is_voter for replica in others)
    yield gauge(f"{_RAFT}_number_of_observers", "Nodes that follow the metadata log and do not vote", observers)
    yield from _lag_families(others, end_offset=quorum.end_offset, now_ms=clock.now_ms())


def _lag_families(others: Iterable[QuorumReplica], *, end_offset: int, now_ms: int) -> Iterator[Family]:
    # A node that has got a new disk is known under both for a while: the one that is fetching comes last.
    newest_last = sorted(others, key=lambda replica: replica.caught_up_ms)
    found = {(str(other.key.id), "voter" if other.is_voter else "observer"): other for other in newest_last}
    yield Family(
        name="caudal_quorum_replica_lag_records",
        help="Records of the metadata log that a node lacks",
        labels=("node", "role"),
        samples=[(labels, max(0, end_offset - max(other.end_offset, 0))) for labels, other in found.items()],
    )
    yield Family(
        name="caudal_quorum_replica_lag_seconds",
        help="Seconds since a node last had the whole metadata log",
        labels=("node", "role"),
        samples=[
            (labels, inf if other.caught_up_ms < 0 else max(0, now_ms - other.caught_up_ms) / 1000)
            for labels, other in found.items()
        ],
    )


def _state(quorum: MetadataQuorum) -> str:
    role = type(quorum.node.role).__name__.lower()
    return "observer" if role == "follower" and not quorum.node.is_voter else role


def applied_families(partitions: Partitions, quorum: MetadataQuorum) -> Iterator[Family]:
    """How far this broker follows the metadata."""
    name = "kafka_server_broker_metadata_metrics"
    yield gauge(f"{name}_last_applied_record_offset", "Last metadata record applied", partitions.applied_offset)
    yield gauge(f"{name}_metadata_apply_error_count", "Changes that could not be applied", quorum.listener_failures)
