"""Which API needs which operation on which resource: all of it on one page, for handlers, tests and operators.

A row lists what an API needs, in the order in which it is checked. `whole` is checked before the handler runs and
refuses the request as a whole. `each` is asked by the handler, for each topic, group or id in the request or in its
response. Of alternatives one is enough; only the last is logged when it is refused. The README shows this table.
"""

from enum import StrEnum
from typing import Final

import msgspec

from core_broker.errors import ErrorCode
from core_broker.security.operations import Operation, ResourceType

ALTER = Operation.ALTER
ALTER_CONFIGS = Operation.ALTER_CONFIGS
CLUSTER_ACTION = Operation.CLUSTER_ACTION
CREATE = Operation.CREATE
DELETE = Operation.DELETE
DESCRIBE = Operation.DESCRIBE
DESCRIBE_CONFIGS = Operation.DESCRIBE_CONFIGS
READ = Operation.READ
WRITE = Operation.WRITE


LAST_VERSION: Final = 32767
"""No API has a later one."""


class Purpose(StrEnum):
    """What a handler asks for, where one API has several questions about the same kind of resource."""

    USE = ""
    CREATE = "to create it"
    KNOW = "to learn whether it exists"
    REPLICATE = "to read as a replica"
    SHOW_CONFIGS = "to see its configs"


class Check(msgspec.Struct, frozen=True):
    """One operation on one kind of resource."""

    operation: Operation
    kind: ResourceType
    is_on_any: bool = False
    """Whether the right on any one resource of the kind is enough."""

    def __str__(self) -> str:
        return f"{self.operation.name} on {'any ' if self.is_on_any else ''}{self.kind.name}"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the authorizer, with its alternatives."""

    any_of: tuple[Check, ...]
    is_whole: bool
    """Whether the answer decides about the whole request, before the handler runs."""
    named_by: str = ""
    """The field of the request with the name of the resource; the cluster needs none. Null: nothing to check."""
    unless: str = ""
    """The check is left out if this field of the request is not null."""
    versions: tuple[int, int] = (0, LAST_VERSION)
    purpose: Purpose = Purpose.USE
    is_logged: bool = True
    """Whether a refusal is worth a line in the audit log."""

    @property
    def kind(self) -> ResourceType:
        """The kind of resource that the question is about."""
        named = [check.kind for check in self.any_of if not check.is_on_any]
        return named[-1]

    @property
    def denied(self) -> ErrorCode:
        """The error of a refusal."""
        return DENIED[self.kind]

    def __str__(self) -> str:
        return " or ".join(map(str, self.any_of)) + (f" ({self.purpose})" if self.purpose else "")


class Row(msgspec.Struct, frozen=True):
    """What one API needs."""

    name: str
    needs: tuple[Need, ...] = ()


DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def _cluster(operation: Operation) -> Check:
    return Check(operation, ResourceType.CLUSTER)


def _topic(operation: Operation) -> Check:
    return Check(operation, ResourceType.TOPIC)


def _group(operation: Operation) -> Check:
    return Check(operation, ResourceType.GROUP)


def _transaction(operation: Operation) -> Check:
    return Check(operation, ResourceType.TRANSACTIONAL_ID)


def _token(operation: Operation) -> Check:
    return Check(operation, ResourceType.DELEGATION_TOKEN)


def _user(operation: Operation) -> Check:
    return Check(operation, ResourceType.USER)


def _whole(*any_of: Check, named_by: str = "", unless: str = "", versions: tuple[int, int] = (0, LAST_VERSION)) -> Need:
    return Need(any_of=any_of, is_whole=True, named_by=named_by, unless=unless, versions=versions)


def _each(*any_of: Check, purpose: Purpose = Purpose.USE, is_logged: bool = True) -> Need:
    return Need(any_of=any_of, is_whole=False, purpose=purpose, is_logged=is_logged)


def _row(name: str, *needs: Need) -> Row:
    return Row(name, needs)


_NEW_TOPIC: Final = (_cluster(CREATE), _topic(CREATE))
_NODE: Final = _whole(_cluster(CLUSTER_ACTION))
_OF_THE_GROUP: Final = _whole(_group(READ), named_by="group_id")
_OF_THE_TRANSACTION: Final = _whole(_transaction(WRITE), named_by="transactional_id")

BROKER_ROWS: Final = {
    0: _row("Produce", _each(_transaction(WRITE)), _each(_topic(WRITE))),
    1: _row("Fetch", _each(_cluster(CLUSTER_ACTION), purpose=Purpose.REPLICATE), _each(_topic(READ))),
    2: _row(
        "ListOffsets",
        _each(_topic(DESCRIBE)),
        _each(_cluster(CLUSTER_ACTION), purpose=Purpose.REPLICATE, is_logged=False),
    ),
    3: _row("Metadata", _each(_topic(DESCRIBE)), _each(*_NEW_TOPIC, purpose=Purpose.CREATE)),
    8: _row("OffsetCommit", _OF_THE_GROUP, _each(_topic(READ))),
    9: _row("OffsetFetch", _each(_group(DESCRIBE)), _each(_topic(DESCRIBE))),
    10: _row(
        "FindCoordinator", _each(_group(DESCRIBE)), _each(_transaction(DESCRIBE)), _each(_cluster(CLUSTER_ACTION))
    ),
    11: _row("JoinGroup", _OF_THE_GROUP, _each(_topic(DESCRIBE), is_logged=False)),
    12: _row("Heartbeat", _OF_THE_GROUP),
    13: _row("LeaveGroup", _OF_THE_GROUP),
    14: _row("SyncGroup", _each(_group(READ))),
    15: _row("DescribeGroups", _each(_group(DESCRIBE))),
    16: _row("ListGroups", _each(_cluster(DESCRIBE), _group(DESCRIBE), is_logged=False)),
    17: _row("SaslHandshake"),
    18: _row("ApiVersions"),
    19: _row(
        "CreateTopics",
        _each(*_NEW_TOPIC),
        _each(_topic(DESCRIBE_CONFIGS), purpose=Purpose.SHOW_CONFIGS, is_logged=False),
    ),
    20: _row(
        "DeleteTopics",
        _each(_cluster(DELETE), _topic(DELETE)),
        _each(_cluster(DELETE), _topic(DESCRIBE), purpose=Purpose.KNOW),
    ),
    21: _row("DeleteRecords", _each(_topic(DELETE))),
    22: _row(
        "InitProducerId",
        _OF_THE_TRANSACTION,
        _whole(
            _cluster(Operation.IDEMPOTENT_WRITE),
            Check(WRITE, ResourceType.TOPIC, is_on_any=True),
            unless="transactional_id",
        ),
    ),
    23: _row("OffsetForLeaderEpoch", _each(_cluster(CLUSTER_ACTION), _topic(DESCRIBE))),
    24: _row(
        "AddPartitionsToTxn",
        _whole(_transaction(WRITE), named_by="v3_and_below_transactional_id", versions=(0, 3)),
        _whole(_cluster(CLUSTER_ACTION), versions=(4, LAST_VERSION)),
        _each(_topic(WRITE)),
    ),
    25: _row("AddOffsetsToTxn", _OF_THE_TRANSACTION, _OF_THE_GROUP),
    26: _row("EndTxn", _OF_THE_TRANSACTION),
    27: _row("WriteTxnMarkers", _whole(_cluster(ALTER), _cluster(CLUSTER_ACTION))),
    28: _row("TxnOffsetCommit", _OF_THE_TRANSACTION, _OF_THE_GROUP, _each(_topic(READ))),
    29: _row("DescribeAcls", _whole(_cluster(DESCRIBE))),
    30: _row("CreateAcls", _whole(_cluster(ALTER))),
    31: _row("DeleteAcls", _whole(_cluster(ALTER))),
    32: _row(
        "DescribeConfigs",
        _each(_topic(DESCRIBE_CONFIGS)),
        _each(_group(DESCRIBE_CONFIGS)),
        _each(_cluster(DESCRIBE_CONFIGS)),
    ),
    33: _row(
        "AlterConfigs", _each(_topic(ALTER_CONFIGS)), _each(_group(ALTER_CONFIGS)), _each(_cluster(ALTER_CONFIGS))
    ),
    34: _row("AlterReplicaLogDirs", _whole(_cluster(ALTER))),
    35: _row("DescribeLogDirs", _whole(_cluster(DESCRIBE))),
    36: _row("SaslAuthenticate"),
    37: _row("CreatePartitions", _each(_topic(ALTER))),
    38: _row("CreateDelegationToken", _each(_user(Operation.CREATE_TOKENS))),
    39: _row("RenewDelegationToken"),
    40: _row("ExpireDelegationToken"),
    41: _row("DescribeDelegationToken", _each(_token(DESCRIBE)), _each(_user(Operation.DESCRIBE_TOKENS))),
    42: _row("DeleteGroups", _each(_group(DELETE))),
    43: _row("ElectLeaders", _whole(_cluster(ALTER))),
    44: _row(
        "IncrementalAlterConfigs",
        _each(_topic(ALTER_CONFIGS)),
        _each(_group(ALTER_CONFIGS)),
        _each(_cluster(ALTER_CONFIGS)),
    ),
    45: _row("AlterPartitionReassignments", _whole(_cluster(ALTER))),
    46: _row("ListPartitionReassignments", _whole(_cluster(DESCRIBE))),
    47: _row("OffsetDelete", _whole(_group(DELETE), named_by="group_id"), _each(_topic(READ))),
    48: _row("DescribeClientQuotas", _whole(_cluster(DESCRIBE_CONFIGS))),
    49: _row("AlterClientQuotas", _whole(_cluster(ALTER_CONFIGS))),
    50: _row("DescribeUserScramCredentials", _whole(_cluster(DESCRIBE))),
    51: _row("AlterUserScramCredentials", _whole(_cluster(ALTER))),
    55: _row("DescribeQuorum", _whole(_cluster(DESCRIBE))),
    57: _row("UpdateFeatures", _whole(_cluster(ALTER))),
    60: _row("DescribeCluster"),
    61: _row("DescribeProducers", _each(_topic(READ))),
    64: _row("UnregisterBroker", _whole(_cluster(ALTER))),
    65: _row("DescribeTransactions", _each(_transaction(DESCRIBE)), _each(_topic(DESCRIBE))),
    66: _row("ListTransactions", _each(_transaction(DESCRIBE))),
    68: _row("ConsumerGroupHeartbeat", _each(_group(READ)), _each(_topic(DESCRIBE))),
    69: _row("ConsumerGroupDescribe", _each(_group(DESCRIBE)), _each(_topic(DESCRIBE))),
    74: _row("ListConfigResources", _whole(_cluster(DESCRIBE_CONFIGS))),
    75: _row("DescribeTopicPartitions", _each(_topic(DESCRIBE))),
    80: _row("AddRaftVoter", _whole(_cluster(ALTER))),
    81: _row("RemoveRaftVoter", _whole(_cluster(ALTER))),
}
"""What the APIs of brokers need, and those of controllers that are the same there."""

CONTROLLER_ROWS: Final = {
    **BROKER_ROWS,
    1: _row("Fetch", _NODE),
    52: _row("Vote", _NODE),
    53: _row("BeginQuorumEpoch", _NODE),
    54: _row("EndQuorumEpoch", _NODE),
    56: _row("AlterPartition", _NODE),
    58: _row("Envelope", _NODE),
    59: _row("FetchSnapshot", _NODE),
    60: _row("DescribeCluster", _whole(_cluster(ALTER))),
    62: _row("BrokerRegistration", _NODE),
    63: _row("BrokerHeartbeat", _NODE),
    67: _row("AllocateProducerIds", _NODE),
    70: _row("ControllerRegistration", _NODE),
    73: _row("AssignReplicasToDirs", _NODE),
    82: _row("UpdateRaftVoter", _NODE),
}
"""What the APIs of controller listeners need."""

_LOGIN: Final = "never after a login with a token, nor without any login"
_CONFIGS: Final = "the resource decides: a topic or a group itself, for anything else the cluster"
_FIRST: Final = "none: it comes before the client is known"
_LEFT_OUT: Final = "of all topics, those without the right are left out"

NOTES: Final = {
    0: "transactional batches need the id",
    1: "replicas need no right on topics, and are refused with the error of topics",
    2: "without CLUSTER_ACTION a replica sees what consumers see",
    3: _LEFT_OUT,
    9: _LEFT_OUT,
    10: "the key type decides: groups, transactions, share groups",
    11: "subscriptions are not checked, but regular expressions of others are resolved to what the sender may see",
    14: "after the protocol, which must not be missing",
    16: "groups without the right are left out",
    17: _FIRST,
    18: _FIRST,
    20: "results are in random order, because the order would tell which topics exist",
    24: "from version 4 on it comes from brokers, which have checked the topics",
    32: _CONFIGS,
    33: _CONFIGS,
    35: "shows the names of all topics",
    36: _FIRST,
    38: f"for an owner other than the client; {_LOGIN}",
    39: f"none: the owner and the renewers may, and no other; {_LOGIN}",
    40: f"none: the owner and the renewers may, and no other; {_LOGIN}",
    41: f"for tokens of others, which are left out without one of the two; {_LOGIN}",
    44: _CONFIGS,
    60: "none: every client needs the addresses of the brokers",
    65: "topics without the right are left out",
    66: "those without the right are left out",
    68: "one refused topic refuses the request; regular expressions are resolved to what the sender may see",
    69: "a group with an assigned topic without the right is hidden as a whole",
    74: "shows the names of all topics and of groups with configs",
    75: _LEFT_OUT,
}
"""What the checks do not say, and why an API has none."""

CONTROLLER_NOTES: Final = {
    1: "the metadata log has the credentials of all users",
    58: "the request inside needs what its own row says, for its own client",
    59: "the metadata log has the credentials of all users",
}
"""The same of controller listeners."""
