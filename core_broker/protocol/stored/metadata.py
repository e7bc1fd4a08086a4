"""Records of `__cluster_metadata`."""

from typing import Annotated

from typing_extensions import override

from core_broker.protocol.fields import (
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableSince,
    Since,
    Tag,
    UInt16,
    Uuid,
    message,
)
from core_broker.protocol.primitives import ZERO_UUID


@message(25, versions=(0, 0), flexible_since=0)
class AbortTransactionRecord(Message):
    reason: Annotated[str | None, NullableSince(), Tag(0)] = None


@message(18, versions=(0, 0), flexible_since=0)
class AccessControlEntryRecord(Message):
    id: Uuid = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 0
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(23, versions=(0, 0), flexible_since=0)
class BeginTransactionRecord(Message):
    name: Annotated[str | None, NullableSince(), Tag(0)] = None


@message(17, versions=(0, 3), flexible_since=0)
class BrokerRegistrationChangeRecord(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[list[Uuid], Since(2), Tag(2)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, Since(3), NullableSince(), Tag(3)] = None


@message(28, versions=(0, 0), flexible_since=0)
class ClearElrRecord(Message):
    topic_name: str = ""


class EntityData(Message):
    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


@message(14, versions=(0, 0), flexible_since=0)
class ClientQuotaRecord(Message):
    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False


@message(4, versions=(0, 0), flexible_since=0)
class ConfigRecord(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""


@message(10, versions=(0, 0), flexible_since=0)
class DelegationTokenRecord(Message):
    owner: str = ""
    requester: str = ""
    renewers: list[str] = []
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: str = ""


@message(24, versions=(0, 0), flexible_since=0)
class EndTransactionRecord(Message):
    """`EndTransactionRecord`, as Kafka stores it."""


@message(12, versions=(0, 0), flexible_since=0)
class FeatureLevelRecord(Message):
    name: str = ""
    feature_level: Int16 = 0


@message(7, versions=(0, 0), flexible_since=0)
class FenceBrokerRecord(Message):
    id: Int32 = 0
    epoch: Int64 = 0


@message(20, versions=(0, 0), flexible_since=0)
class NoOpRecord(Message):
    """`NoOpRecord`, as Kafka stores it."""


@message(5, versions=(0, 2), flexible_since=0)
class PartitionChangeRecord(Message):
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


@message(3, versions=(0, 2), flexible_since=0)
class PartitionRecord(Message):
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


@message(15, versions=(0, 0), flexible_since=0)
class ProducerIdsRecord(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


class BrokerEndpoint(Message):
    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class BrokerFeature(Message):
    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(0, versions=(0, 4), flexible_since=0)
class RegisterBrokerRecord(Message):
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
    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class ControllerFeature(Message):
    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(27, versions=(0, 0), flexible_since=0)
class RegisterControllerRecord(Message):
    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []


@message(19, versions=(0, 0), flexible_since=0)
class RemoveAccessControlEntryRecord(Message):
    id: Uuid = ZERO_UUID


@message(26, versions=(0, 0), flexible_since=0)
class RemoveDelegationTokenRecord(Message):
    token_id: str = ""


@message(9, versions=(0, 0), flexible_since=0)
class RemoveTopicRecord(Message):
    topic_id: Uuid = ZERO_UUID


@message(22, versions=(0, 0), flexible_since=0)
class RemoveUserScramCredentialRecord(Message):
    name: str = ""
    mechanism: Int8 = 0


@message(2, versions=(0, 0), flexible_since=0)
class TopicRecord(Message):
    name: str = ""
    topic_id: Uuid = ZERO_UUID


@message(8, versions=(0, 0), flexible_since=0)
class UnfenceBrokerRecord(Message):
    id: Int32 = 0
    epoch: Int64 = 0


@message(1, versions=(0, 0), flexible_since=0)
class UnregisterBrokerRecord(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@message(11, versions=(0, 0), flexible_since=0)
class UserScramCredentialRecord(Message):
    name: str = ""
    mechanism: Int8 = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: Int32 = 0

    @override
    def __repr__(self) -> str:
        """Without the keys: with them a password can be guessed, and clients can be deceived."""
        return f"UserScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism})"


@message(21, versions=(0, 0), flexible_since=0)
class ZkMigrationStateRecord(Message):
    zk_migration_state: Int8 = 0
