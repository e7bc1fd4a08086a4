"""Plans AssignReplicasToDirs: the log directories in which a broker has its replicas (KIP-858)."""

from typing import Final

from core_broker.cluster.controller.registrations import check_broker_epoch
from core_broker.cluster.controller.transitions import TopicRules, Wish, change_record
from core_broker.cluster.features import METADATA_VERSION
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages import assign_replicas_to_dirs as wire
from core_broker.protocol.stored.metadata import PartitionChangeRecord
from core_broker.settings import BrokerSettings

_SUPPORTED_SINCE: Final = 17


def plan_directories(
    request: wire.AssignReplicasToDirsRequest, image: MetadataImage, settings: BrokerSettings
) -> tuple[list[PartitionChangeRecord], wire.AssignReplicasToDirsResponse]:
    """The records and the response. Raises BrokerError."""
    if image.features.get(METADATA_VERSION, 0) < _SUPPORTED_SINCE:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    if request.broker_id not in image.brokers:
        text = f"Broker ID {request.broker_id} is not currently registered"
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
    broker = check_broker_epoch(request.broker_id, request.broker_epoch, image)
    # A directory that the broker did not register is offline: a replica in it neither leads nor is in sync.
    online, offline = TopicRules(image, settings), TopicRules(image, settings, unusable=broker.broker_id)
    records: dict[tuple[bytes, int], PartitionChangeRecord] = {}
    directories = []
    for directory in request.directories:
        rules = online if directory.id in broker.log_dirs else offline
        topics = []
        for topic in directory.topics:
            partitions = []
            for index in (partition.partition_index for partition in topic.partitions):
                try:
                    record = _plan(broker.broker_id, directory.id, topic.topic_id, index, image, rules)
                except BrokerError as error:
                    partitions.append(wire.AssignReplicasToDirsResponsePartitionData(index, error.code))
                    continue
                partitions.append(wire.AssignReplicasToDirsResponsePartitionData(index))
                if record is not None:
                    records[topic.topic_id, index] = record
            topics.append(wire.AssignReplicasToDirsResponseTopicData(topic.topic_id, partitions))
        directories.append(wire.AssignReplicasToDirsResponseDirectoryData(directory.id, topics))
    return list(records.values()), wire.AssignReplicasToDirsResponse(directories=directories)


def _plan(
    broker_id: int, directory: bytes, topic_id: bytes, index: int, image: MetadataImage, rules: TopicRules
) -> PartitionChangeRecord | None:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    is_lost = not rules.is_active(broker_id)
    isr = tuple(replica for replica in partition.isr if replica != broker_id) if is_lost else None
    wish = Wish(isr=isr, directories={broker_id: directory})
    return change_record(partition, wish, rules.of(topic, partition), topic_id=topic_id, index=index)
