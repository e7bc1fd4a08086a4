"""A cluster that exists only as metadata: applies what the controller plans, and checks every record on the way."""

from collections.abc import Sequence

from core_broker.cluster.controller.activation import bootstrap_records
from core_broker.cluster.controller.elections import plan_config_effects, plan_fencing, plan_unfencing
from core_broker.cluster.controller.registrations import plan_registration
from core_broker.cluster.controller.topics import NewTopic, TopicPlanner
from core_broker.cluster.controller.transitions import TopicRules
from core_broker.cluster.features import SUPPORTED_FEATURES
from core_broker.cluster.metadata import (
    NO_LEADER,
    BrokerImage,
    MetadataDraft,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from core_broker.protocol.stored.metadata import ConfigRecord, PartitionChangeRecord
from core_broker.settings import BrokerSettings

CLUSTER_ID = "a-cluster"
_UNCHANGED = -2


class ControllerWorld:
    """Brokers, topics and configs, changed by records only."""

    def __init__(self, **settings: object) -> None:
        self.settings = BrokerSettings(**settings)  # type: ignore[arg-type] # settings by name
        self.image = MetadataImage(cluster_id=CLUSTER_ID)
        self._incarnations = 0
        self.apply(bootstrap_records(self.image, self.settings))

    @property
    def next_offset(self) -> int:
        return self.image.offset + 1

    @property
    def rules(self) -> TopicRules:
        return TopicRules(self.image, self.settings)

    @property
    def topic(self) -> TopicImage:
        return self.image.topics["t"]

    @property
    def partition(self) -> PartitionImage:
        """The first partition of the first topic."""
        return self.topic.partitions[0]

    def broker(self, broker_id: int) -> BrokerImage:
        return self.image.brokers[broker_id]

    def apply(self, records: Sequence[Message]) -> None:
        """Replay records; each change of a partition must keep the invariants."""
        draft = MetadataDraft(self.image)
        draft.replay(records)
        before, after = self.image, draft.finish(offset=self.image.offset + len(records), epoch=1)
        written: dict[tuple[bytes, int], list[PartitionChangeRecord]] = {}
        for record in records:
            if isinstance(record, PartitionChangeRecord):
                written.setdefault((record.topic_id, record.partition_id), []).append(record)
        self.image = after
        for topic in after.topics.values():
            for index, partition in topic.partitions.items():
                check_invariants(partition, after)
                changes = written.get((topic.topic_id, index), [])
                known = before.topics_by_id.get(topic.topic_id)
                if known is None or index not in known.partitions:
                    continue
                old = known.partitions[index]
                elections = sum(change.leader != _UNCHANGED for change in changes)
                assert partition.partition_epoch == old.partition_epoch + len(changes)
                assert partition.leader_epoch == old.leader_epoch + elections
                if partition.leader_id != old.leader_id:
                    assert elections

    def request(self, broker_id: int, **fields: object) -> BrokerRegistrationRequest:
        """A valid registration of a new incarnation, except for `fields`."""
        self._incarnations += 1
        values: dict[str, object] = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": self._incarnations.to_bytes(16, "big"),
            "listeners": [Listener("PLAINTEXT", "localhost", 9092, 0)],
            "features": [Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
            "rack": None,
            "log_dirs": [broker_id.to_bytes(1, "big") * 16],
            **fields,
        }
        return BrokerRegistrationRequest(**values)  # type: ignore[arg-type] # fields by name

    def register(self, broker_id: int, *, has_session: bool = False, **fields: object) -> int:
        """Register a broker, or raise BrokerError; returns its epoch."""
        plan = plan_registration(
            self.request(broker_id, **fields),
            self.image,
            self.settings,
            next_offset=self.next_offset,
            has_session=has_session,
        )
        self.apply(plan.records)
        return plan.epoch

    def start(self, *broker_ids: int, **fields: object) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            self.register(broker_id, has_session=False, **fields)
            self.unfence(broker_id)

    def unfence(self, broker_id: int) -> None:
        self.apply(plan_unfencing(self.broker(broker_id), self.image, self.settings))

    def fence(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.apply(plan_fencing(self.broker(broker_id), self.image, self.settings))

    def create(self, *replicas: Sequence[int], **configs: str) -> None:
        """Create the topic, with these replicas of each partition."""
        topic = NewTopic(
            name="t",
            assignments=dict(enumerate(replicas)),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        planner = TopicPlanner(self.image, self.settings)
        planner.plan(topic)
        self.apply(planner.records)

    def configure(self, **configs: str) -> None:
        """Change configs of the topic."""
        records = [
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        self.apply([*records, *plan_config_effects(records, self.image, self.settings)])

    def proposal(self, *isr: int, index: int = 0, **fields: object) -> AlterPartitionRequest:
        """AlterPartition by the leader of a partition, as it should be except for `fields`."""
        partition = self.topic.partitions[index]
        leader = self.image.brokers.get(partition.leader_id)
        brokers = self.image.brokers
        values: dict[str, object] = {
            "partition_index": index,
            "leader_epoch": partition.leader_epoch,
            "new_isr_with_epochs": [BrokerState(b, brokers[b].epoch if b in brokers else -1) for b in isr],
            "leader_recovery_state": 0,
            "partition_epoch": partition.partition_epoch,
            **fields,
        }
        return AlterPartitionRequest(
            partition.leader_id,
            -1 if leader is None else leader.epoch,
            [TopicData(self.topic.topic_id, [PartitionData(**values)])],  # type: ignore[arg-type] # fields by name
        )


def check_invariants(partition: PartitionImage, image: MetadataImage) -> None:
    """What holds for a partition after every change."""
    replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
    assert len(replicas) == len(partition.replicas)
    assert len(isr) == len(partition.isr)
    assert len(elr) == len(partition.elr)
    assert isr <= replicas
    assert elr <= replicas
    assert not isr & elr
    assert isr or elr or partition.last_known_elr
    if partition.leader_id != NO_LEADER:
        assert partition.leader_id in isr
        assert not image.brokers[partition.leader_id].is_fenced
        assert partition.last_known_elr == ()
    assert set(partition.adding_replicas) <= replicas
    assert set(partition.removing_replicas) <= replicas
    assert not set(partition.adding_replicas) & set(partition.removing_replicas)
