"""Records of `__cluster_metadata`."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, NullableSince, Since, Tag, UInt16, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class AbortTransactionRecord(Message):
    """`AbortTransactionRecord`, as Kafka stores it."""

    API_KEY = 25
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    reason: Annotated[str | None, NullableSince(), Tag(0)] = None


class AccessControlEntryRecord(Message):
    """`AccessControlEntryRecord`, as Kafka stores it."""

    API_KEY = 18
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    id: Uuid = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 0
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class BeginTransactionRecord(Message):
    """`BeginTransactionRecord`, as Kafka stores it."""

    API_KEY = 23
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    name: Annotated[str | None, NullableSince(), Tag(0)] = None


class BrokerRegistrationChangeRecord(Message):
    """`BrokerRegistrationChangeRecord`, as Kafka stores it."""

    API_KEY = 17
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[list[Uuid], Since(2), Tag(2)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, Since(3), NullableSince(), Tag(3)] = None


class ClearElrRecord(Message):
    """`ClearElrRecord`, as Kafka stores it."""

    API_KEY = 28
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topic_name: str = ""


class EntityData(Message):
    """Part of `ClientQuotaRecord`."""

    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class ClientQuotaRecord(Message):
    """`ClientQuotaRecord`, as Kafka stores it."""

    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False


class ConfigRecord(Message):
    """`ConfigRecord`, as Kafka stores it."""

    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    resource_type: Int8 = 0
    resource_name: str = ""
    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""


class EndTransactionRecord(Message):
    """`EndTransactionRecord`, as Kafka stores it."""

    API_KEY = 24
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0


class FeatureLevelRecord(Message):
    """`FeatureLevelRecord`, as Kafka stores it."""

    API_KEY = 12
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    name: str = ""
    feature_level: Int16 = 0


class FenceBrokerRecord(Message):
    """`FenceBrokerRecord`, as Kafka stores it."""

    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    id: Int32 = 0
    epoch: Int64 = 0


class NoOpRecord(Message):
    """`NoOpRecord`, as Kafka stores it."""

    API_KEY = 20
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0


class PartitionChangeRecord(Message):
    """`PartitionChangeRecord`, as Kafka stores it."""

    API_KEY = 5
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: Annotated[list[Int32] | None, NullableSince(), Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = -2
    replicas: Annotated[list[Int32] | None, NullableSince(), Tag(2)] = None
    removing_replicas: Annotated[list[Int32] | None, NullableSince(), Tag(3)] = None
    adding_replicas: Annotated[list[Int32] | None, NullableSince(), Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = -1
    directories: Annotated[list[Uuid] | None, Since(1), NullableSince(), Tag(8)] = None
    eligible_leader_replicas: Annotated[list[Int32] | None, Since(2), NullableSince(), Tag(6)] = None
    last_known_elr: Annotated[list[Int32] | None, Since(2), NullableSince(), Tag(7)] = None


class PartitionRecord(Message):
    """`PartitionRecord`, as Kafka stores it."""

    API_KEY = 3
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[Int32] = []
    isr: list[Int32] = []
    removing_replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[list[Uuid], Since(1)] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, Since(2), NullableSince(), Tag(1)] = None
    last_known_elr: Annotated[list[Int32] | None, Since(2), NullableSince(), Tag(2)] = None


class ProducerIdsRecord(Message):
    """`ProducerIdsRecord`, as Kafka stores it."""

    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


class BrokerEndpoint(Message):
    """Part of `RegisterBrokerRecord`."""

    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class BrokerFeature(Message):
    """Part of `RegisterBrokerRecord`."""

    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class RegisterBrokerRecord(Message):
    """`RegisterBrokerRecord`, as Kafka stores it."""

    API_KEY = 0
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0
    is_migrating_zk_broker: Annotated[bool, Since(2)] = False
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: Int64 = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: Annotated[str | None, NullableSince()] = ""
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, Since(1)] = False
    log_dirs: Annotated[list[Uuid], Since(3), Tag(0)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, Since(4), NullableSince(), Tag(1)] = None


class ControllerEndpoint(Message):
    """Part of `RegisterControllerRecord`."""

    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class ControllerFeature(Message):
    """Part of `RegisterControllerRecord`."""

    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class RegisterControllerRecord(Message):
    """`RegisterControllerRecord`, as Kafka stores it."""

    API_KEY = 27
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []


class RemoveAccessControlEntryRecord(Message):
    """`RemoveAccessControlEntryRecord`, as Kafka stores it."""

    API_KEY = 19
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    id: Uuid = ZERO_UUID


class RemoveTopicRecord(Message):
    """`RemoveTopicRecord`, as Kafka stores it."""

    API_KEY = 9
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topic_id: Uuid = ZERO_UUID


class RemoveUserScramCredentialRecord(Message):
    """`RemoveUserScramCredentialRecord`, as Kafka stores it."""

    API_KEY = 22
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    name: str = ""
    mechanism: Int8 = 0


class TopicRecord(Message):
    """`TopicRecord`, as Kafka stores it."""

    API_KEY = 2
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    name: str = ""
    topic_id: Uuid = ZERO_UUID


class UnfenceBrokerRecord(Message):
    """`UnfenceBrokerRecord`, as Kafka stores it."""

    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    id: Int32 = 0
    epoch: Int64 = 0


class UnregisterBrokerRecord(Message):
    """`UnregisterBrokerRecord`, as Kafka stores it."""

    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


class UserScramCredentialRecord(Message):
    """`UserScramCredentialRecord`, as Kafka stores it."""

    API_KEY = 11
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    name: str = ""
    mechanism: Int8 = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: Int32 = 0
