"""One request for each right of each API, with the ACLs that it needs and nothing else: what `test_access` walks.

All clients are anonymous; they differ in the address they connect from, and ACLs can name an address. The nodes and
the administrator come from 127.0.0.1 and may do everything, the client of the walk comes from 127.0.0.2.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import msgspec

from core_broker.errors import ErrorCode
from core_broker.handlers.table import BY_KEY, CONTROLLER_BY_KEY
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    fetch,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_txn_markers,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.security.operations import CLUSTER_NAME, Operation, ResourceType
from tests.support.cluster import ClusterNode
from tests.support.kafka import KafkaNode
from tests.support.patience import eventually
from tests.support.wire import WireConnection

ADMIN_HOST: Final = "127.0.0.1"
CLIENT_HOST: Final = "127.0.0.2"
ANONYMOUS: Final = "User:ANONYMOUS"

_ANY, _LITERAL, _ALLOW = 1, 3, 3
_TRANSACTIONAL: Final = 0x10
_ATTRIBUTES_AT: Final = 22
_OTHER_CLUSTER: Final = "b3RoZXItY2x1c3Rlci0wMA"
_NO_NODE: Final = 99
AUTHORIZATION_FAILED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
LEFT_OUT: Final = None
"""Not an error: the response does not have the name."""


@dataclass(frozen=True)
class Names:
    """What a request is about. The names of things that exist are as long as those of things that do not."""

    topic: str = "orders"
    group: str = "crew-1"
    band: str = "band-1"
    """A group of the consumer protocol, with a member that has the topic."""
    transaction: str = "pay-1"
    new: str = "new-a"
    newer: str = "new-c"
    """Topics that a request creates."""
    cluster: str = CLUSTER_NAME


EXISTING: Final = Names()
MISSING: Final = Names(topic="absent", group="crew-0", band="band-0", transaction="pay-0", new="new-b", newer="new-d")


@dataclass(frozen=True)
class Rule:
    """An operation that the client is allowed, on the resource with one of the `Names`."""

    operation: Operation
    kind: ResourceType
    name: str
    refused: ErrorCode | None
    """The error without this rule."""


@dataclass(frozen=True)
class Case:
    """A request with the rules that it needs, all of them."""

    title: str
    request: Callable[[Names], Message]
    version: int
    rules: tuple[Rule, ...]
    is_for_controller: bool = False
    shows: Sequence[str] = field(default=())
    """Names in the response when everything is allowed, and not otherwise."""
    uses_missing: bool = False
    """Whether to ask for what does not exist if it is allowed, because it would be changed."""

    @property
    def key(self) -> int:
        """The key of the API."""
        return self.request(EXISTING).API_KEY or 0

    @property
    def response(self) -> type[Message]:
        """The message of the response."""
        return (CONTROLLER_BY_KEY if self.is_for_controller else BY_KEY)[self.key].response


def topic(operation: Operation, refused: ErrorCode | None = TOPIC_DENIED, name: str = "topic") -> Rule:
    """A right on a topic."""
    return Rule(operation, ResourceType.TOPIC, name, refused)


def group(operation: Operation, refused: ErrorCode | None = GROUP_DENIED, name: str = "group") -> Rule:
    """A right on a group."""
    return Rule(operation, ResourceType.GROUP, name, refused)


def cluster(operation: Operation, refused: ErrorCode | None = CLUSTER_DENIED) -> Rule:
    """A right on the cluster."""
    return Rule(operation, ResourceType.CLUSTER, "cluster", refused)


def transaction(operation: Operation, refused: ErrorCode | None = TRANSACTION_DENIED) -> Rule:
    """A right on a transactional id."""
    return Rule(operation, ResourceType.TRANSACTIONAL_ID, "transaction", refused)


class Walk:
    """A cluster with an authorizer, as its administrator and as one client see it."""

    def __init__(self, node: ClusterNode | KafkaNode) -> None:
        self.addresses = {False: node.bootstrap, True: f"127.0.0.1:{node.controller_port}"}
        self._tells_clients_their_port = isinstance(node, KafkaNode)
        self._admin = WireConnection(node.bootstrap)

    def close(self) -> None:
        """Close the connection."""
        self._admin.__exit__()

    def prepare(self) -> None:
        """Close everything to all addresses but the administrator's, then create what requests are about."""
        everywhere = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID, ResourceType.CLUSTER)
        self._create(
            _acl(kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else "*", Operation.ALL, ADMIN_HOST)
            for kind in everywhere
        )
        request = create_topics.CreateTopicsRequest([create_topics.CreatableTopic("orders", 1, 1)])
        self._admin.request(request, 7, create_topics.CreateTopicsResponse)
        self._until(produce_request("orders"), 11)
        for key_type, name in ((0, "crew-1"), (1, "pay-1")):
            self._until(find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name]), 4)
        self._until(_commit("crew-1", "orders"), 8)
        opened = self._until(init_producer_id.InitProducerIdRequest("pay-1", 60_000), 4)
        assert isinstance(opened, init_producer_id.InitProducerIdResponse)
        self._until(_add_partitions("pay-1", "orders", opened.producer_id, opened.producer_epoch), 3)
        joined = self._until(_join_band("band-1", "orders"), 1)
        assert isinstance(joined, consumer_group_heartbeat.ConsumerGroupHeartbeatResponse)

    def allow(self, rules: Iterable[tuple[Rule, str]]) -> None:
        """Allow the client these operations on the resources with these names, and no others."""
        wanted = list(rules)
        one = delete_acls.DeleteAclsFilter(_ANY, None, _ANY, None, CLIENT_HOST, _ANY, _ANY)
        self._admin.request(delete_acls.DeleteAclsRequest([one]), 3, delete_acls.DeleteAclsResponse)
        if wanted:
            self._create(_acl(rule.kind, name, rule.operation, CLIENT_HOST) for rule, name in wanted)
        expected = len({(rule.kind, name, rule.operation) for rule, name in wanted})
        for is_controller in self.addresses:
            eventually(partial(self._count, is_controller), lambda found: found == expected)

    def ask(self, case: Case, names: Names) -> bytes:
        """Send the request as the client; the response without its header."""
        with WireConnection(self.addresses[case.is_for_controller], source_host=CLIENT_HOST) as connection:
            return connection.body(case.request(names), case.version)

    def content(self, case: Case, body: bytes) -> bytes:
        """A response in which what exists has the name of what does not."""
        for name in ("topic", "group", "band", "transaction", "new", "newer"):
            body = body.replace(getattr(EXISTING, name).encode(), getattr(MISSING, name).encode())
        if not self._tells_clients_their_port:
            return body
        # Kafka repeats the request and its connection in the messages of errors.
        response = decode(case.response, case.version, body)
        _remove_messages(response)
        return bytes(encode(response, case.version))

    def topics_of_expression(self, group_id: str, expression: str) -> set[str]:
        """Join a group with a regular expression as the client; the topics that it is assigned."""
        wire = consumer_group_heartbeat
        join = wire.ConsumerGroupHeartbeatRequest(
            group_id,
            "CCCCCCCCCCCCCCCCCCCCCC",
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=expression,
            topic_partitions=[],
        )
        with WireConnection(self.addresses[False], source_host=CLIENT_HOST) as connection:
            last = connection.request(join, 1, wire.ConsumerGroupHeartbeatResponse)

            def beat() -> wire.ConsumerGroupHeartbeatResponse:
                """Kafka resolves expressions a moment later."""
                nonlocal last
                if last.assignment is None or not last.assignment.topic_partitions:
                    again = wire.ConsumerGroupHeartbeatRequest(group_id, join.member_id, last.member_epoch)
                    last = connection.request(again, 1, wire.ConsumerGroupHeartbeatResponse)
                assert not last.error_code, last
                return last

            eventually(beat, lambda found: bool(found.assignment and found.assignment.topic_partitions))
        described = self._admin.request(
            consumer_group_describe.ConsumerGroupDescribeRequest([group_id]),
            1,
            consumer_group_describe.ConsumerGroupDescribeResponse,
        )
        (member,) = described.groups[0].members
        return {found.topic_name for found in member.target_assignment.topic_partitions}

    def _count(self, is_controller: bool) -> int:
        one = describe_acls.DescribeAclsRequest(_ANY, None, _ANY, None, CLIENT_HOST, _ANY, _ANY)
        with WireConnection(self.addresses[is_controller]) as connection:
            found = connection.request(one, 3, describe_acls.DescribeAclsResponse)
        assert not found.error_code, found
        return sum(len(resource.acls) for resource in found.resources)

    def _create(self, acls: Iterable[create_acls.AclCreation]) -> None:
        created = self._admin.request(create_acls.CreateAclsRequest(list(acls)), 3, create_acls.CreateAclsResponse)
        assert not any(result.error_code for result in created.results), created

    def _until(self, request: Message, version: int) -> Message:
        """Send a request of the administrator until it succeeds; coordinators need a moment."""
        response = BY_KEY[request.API_KEY or 0].response
        return eventually(
            lambda: self._admin.request(request, version, response), lambda found: not any(error_codes(found))
        )


def error_codes(message: Message) -> list[int]:
    """All error codes of a response, at any depth."""
    codes: list[int] = []
    for name, value in msgspec.structs.asdict(message).items():
        if name.endswith("error_code"):
            codes.append(value)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                codes += error_codes(item)
    return codes


def _remove_messages(message: Message) -> None:
    for name, value in msgspec.structs.asdict(message).items():
        if name == "error_message":
            setattr(message, name, "")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                _remove_messages(item)


def refusals(case: Case, body: bytes) -> set[int]:
    """The errors of authorization in a response."""
    return set(error_codes(decode(case.response, case.version, body))) & AUTHORIZATION_FAILED


def named(rules: Iterable[Rule], *names: Names) -> list[tuple[Rule, str]]:
    """Rules with the names of their resources."""
    return list(dict.fromkeys((rule, getattr(each, rule.name)) for rule in rules for each in names))


def without(names: Names, rule: Rule) -> Names:
    """The same names, except that the resource of the rule does not exist."""
    if rule.kind is ResourceType.CLUSTER:
        return MISSING
    return replace(names, **{rule.name: getattr(MISSING, rule.name)})


def _acl(kind: ResourceType, name: str, operation: Operation, host: str) -> create_acls.AclCreation:
    return create_acls.AclCreation(kind, name, _LITERAL, ANONYMOUS, host, operation, _ALLOW)


# --- requests ---------------------------------------------------------------------------------------------------------


def produce_request(name: str, transactional_id: str | None = None) -> Message:
    batch = bytearray(build_batch([Record(timestamp=1_700_000_000_000, value=b"v")]))
    if transactional_id is not None:
        batch[_ATTRIBUTES_AT] |= _TRANSACTIONAL
    data = produce.TopicProduceData(name=name, partition_data=[produce.PartitionProduceData(0, bytes(batch))])
    return produce.ProduceRequest(transactional_id, -1, 10_000, [data])


def _fetch(name: str, replica: int = -1) -> Message:
    wanted = fetch.FetchTopic(topic=name, partitions=[fetch.FetchPartition(partition_max_bytes=1000)])
    return fetch.FetchRequest(replica_id=replica, max_bytes=1000, session_epoch=-1, topics=[wanted])


def _list_offsets(name: str) -> Message:
    wanted = list_offsets.ListOffsetsTopic(name, [list_offsets.ListOffsetsPartition(0, -1, -1)])
    return list_offsets.ListOffsetsRequest(-1, 0, [wanted])


def _metadata(name: str, *, creates: bool = False) -> Message:
    return metadata.MetadataRequest([metadata.MetadataRequestTopic(name=name)], creates)


def _commit(group_id: str, name: str) -> Message:
    wanted = offset_commit.OffsetCommitRequestTopic(
        name=name, partitions=[offset_commit.OffsetCommitRequestPartition(0, 1)]
    )
    return offset_commit.OffsetCommitRequest(group_id, topics=[wanted])


def _offset_fetch(group_id: str, name: str | None) -> Message:
    topics = None if name is None else [offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0])]
    return offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(group_id, None, -1, topics)])


def _join_band(group_id: str, name: str) -> Message:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id,
        "AAAAAAAAAAAAAAAAAAAAAA",
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )


def _leave_band(group_id: str, name: str) -> Message:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id, "BBBBBBBBBBBBBBBBBBBBBB", -1, subscribed_topic_names=[name]
    )


def _add_partitions(transactional_id: str, name: str, producer_id: int = 1, epoch: int = 0) -> Message:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name, [0])],
    )


def _add_partitions_of_brokers(transactional_id: str, name: str) -> Message:
    wire = add_partitions_to_txn
    wanted = wire.AddPartitionsToTxnTransaction(transactional_id, 1, 0, True, [wire.AddPartitionsToTxnTopic(name, [0])])
    return wire.AddPartitionsToTxnRequest([wanted])


def _offset_for_epoch(name: str) -> Message:
    wire = offset_for_leader_epoch
    return wire.OffsetForLeaderEpochRequest(
        -1, [wire.OffsetForLeaderTopic(name, [wire.OffsetForLeaderPartition(0, -1, 0)])]
    )


def _markers(name: str) -> Message:
    wire = write_txn_markers
    marker = wire.WritableTxnMarker(1_000_000, 0, False, [wire.WritableTxnMarkerTopic(name, [0])], 0)
    return wire.WriteTxnMarkersRequest([marker])


def _txn_commit(names: Names) -> Message:
    wire = txn_offset_commit
    wanted = wire.TxnOffsetCommitRequestTopic(names.topic, [wire.TxnOffsetCommitRequestPartition(0, 1)])
    return wire.TxnOffsetCommitRequest(names.transaction, names.group, 1, 0, topics=[wanted])


def _acls(_names: Names) -> Message:
    return describe_acls.DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)


def _create_acls(_names: Names) -> Message:
    acls = [create_acls.AclCreation(ResourceType.TOPIC, "t", _LITERAL, "User:bob", "*", Operation.READ, _ALLOW)] * 2
    return create_acls.CreateAclsRequest(acls)


def _delete_acls(_names: Names) -> Message:
    one = delete_acls.DeleteAclsFilter(_ANY, "nothing", _ANY, None, None, _ANY, _ANY)
    return delete_acls.DeleteAclsRequest([one, one])


def _configs(kind: int, name: str) -> Message:
    return describe_configs.DescribeConfigsRequest([describe_configs.DescribeConfigsResource(kind, name, None)])


def _alter_configs(kind: int, name: str) -> Message:
    return alter_configs.AlterConfigsRequest([alter_configs.AlterConfigsResource(kind, name, [])], True)


def _change_configs(kind: int, name: str) -> Message:
    wire = incremental_alter_configs
    return wire.IncrementalAlterConfigsRequest([wire.AlterConfigsResource(kind, name, [])], True)


def _move(name: str) -> Message:
    wire = alter_replica_log_dirs
    directory = wire.AlterReplicaLogDir("/nowhere", [wire.AlterReplicaLogDirTopic(name, [0])])
    return wire.AlterReplicaLogDirsRequest([directory])


def _reassign(name: str) -> Message:
    wire = alter_partition_reassignments
    return wire.AlterPartitionReassignmentsRequest(
        topics=[wire.ReassignableTopic(name, [wire.ReassignablePartition(0, None)])]
    )


def _reassignments(name: str) -> Message:
    wire = list_partition_reassignments
    return wire.ListPartitionReassignmentsRequest(topics=[wire.ListPartitionReassignmentsTopics(name, [0])])


def _delete_offsets(names: Names) -> Message:
    wire = offset_delete
    wanted = wire.OffsetDeleteRequestTopic(names.topic, [wire.OffsetDeleteRequestPartition(0)])
    return wire.OffsetDeleteRequest(names.group, [wanted])


def _elect(name: str) -> Message:
    return elect_leaders.ElectLeadersRequest(0, [elect_leaders.TopicPartitions(name, [0])])


def _alter_quotas(names: Names) -> Message:
    wire = alter_client_quotas
    entity = [wire.EntityData("user", names.group)]
    return wire.AlterClientQuotasRequest([wire.EntryData(entity, [wire.OpData("producer_byte_rate", 1000.0)])], True)


def _delete_user(names: Names) -> Message:
    wire = alter_user_scram_credentials
    return wire.AlterUserScramCredentialsRequest([wire.ScramCredentialDeletion(names.group, 1)])


def _voter(_names: Names) -> Message:
    listeners = [add_raft_voter.Listener("CONTROLLER", "127.0.0.1", 1)]
    return add_raft_voter.AddRaftVoterRequest(_OTHER_CLUSTER, 1000, _NO_NODE, b"v" * 16, listeners)


def _quorum(_names: Names) -> Message:
    return describe_quorum.DescribeQuorumRequest(
        [describe_quorum.TopicData("__cluster_metadata", [describe_quorum.PartitionData(0)])]
    )


def _create_topic(name: str) -> Message:
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, 1, 1)], 1000, True)


def _inside(names: Names) -> Message:
    """An envelope whose content nobody can read, so that only the envelope itself is judged."""
    return envelope.EnvelopeRequest(names.topic.encode(), b"\x00\x09", b"\x7f\x00\x00\x01")


_O = Operation
_NODE: Final = (cluster(_O.CLUSTER_ACTION),)

BROKER_CASES: Final = (
    Case("Produce", lambda n: produce_request(n.topic), 11, (topic(_O.WRITE),)),
    Case(
        "Produce-transactional",
        lambda n: produce_request(n.topic, n.transaction),
        11,
        (transaction(_O.WRITE), topic(_O.WRITE)),
    ),
    Case("Fetch", lambda n: _fetch(n.topic), 12, (topic(_O.READ),)),
    Case("Fetch-replica", lambda n: _fetch(n.topic, 7), 12, (cluster(_O.CLUSTER_ACTION, TOPIC_DENIED),)),
    Case("ListOffsets", lambda n: _list_offsets(n.topic), 7, (topic(_O.DESCRIBE),)),
    Case("Metadata", lambda n: _metadata(n.topic), 12, (topic(_O.DESCRIBE),)),
    Case(
        "Metadata-all", lambda _: metadata.MetadataRequest(None), 12, (topic(_O.DESCRIBE, LEFT_OUT),), shows=["orders"]
    ),
    Case(
        "Metadata-create",
        lambda n: _metadata(n.new, creates=True),
        12,
        (topic(_O.DESCRIBE, name="new"), topic(_O.CREATE, name="new")),
    ),
    Case(
        "Metadata-create-any",
        lambda n: _metadata(n.newer, creates=True),
        12,
        (topic(_O.DESCRIBE, name="newer"), cluster(_O.CREATE, TOPIC_DENIED)),
    ),
    Case("OffsetCommit", lambda n: _commit(n.group, n.topic), 8, (group(_O.READ), topic(_O.READ))),
    Case("OffsetFetch", lambda n: _offset_fetch(n.group, n.topic), 8, (group(_O.DESCRIBE), topic(_O.DESCRIBE))),
    Case(
        "OffsetFetch-old",
        lambda n: offset_fetch.OffsetFetchRequest(n.group, [offset_fetch.OffsetFetchRequestTopic(n.topic, [0])]),
        5,
        (group(_O.DESCRIBE), topic(_O.DESCRIBE)),
    ),
    Case(
        "OffsetFetch-all",
        lambda n: _offset_fetch(n.group, None),
        8,
        (group(_O.DESCRIBE), topic(_O.DESCRIBE, LEFT_OUT)),
        shows=["orders"],
    ),
    Case(
        "FindCoordinator-group",
        lambda n: find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[n.group]),
        4,
        (group(_O.DESCRIBE),),
    ),
    Case(
        "FindCoordinator-transaction",
        lambda n: find_coordinator.FindCoordinatorRequest(n.transaction, 1),
        3,
        (transaction(_O.DESCRIBE),),
    ),
    Case(
        "FindCoordinator-share-group",
        lambda n: find_coordinator.FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{n.group}:{'A' * 22}:0"] * 2),
        6,
        (cluster(_O.CLUSTER_ACTION),),
    ),
    Case(
        "JoinGroup",
        lambda n: join_group.JoinGroupRequest(
            n.group, 6000, 6000, "", None, "consumer", [join_group.JoinGroupRequestProtocol("range", b"")]
        ),
        5,
        (group(_O.READ),),
    ),
    Case("Heartbeat", lambda n: heartbeat.HeartbeatRequest(n.group, 1, "m"), 3, (group(_O.READ),)),
    Case(
        "LeaveGroup",
        lambda n: leave_group.LeaveGroupRequest(n.group, members=[leave_group.MemberIdentity("m")]),
        4,
        (group(_O.READ),),
    ),
    Case("SyncGroup", lambda n: sync_group.SyncGroupRequest(n.group, 1, "m"), 3, (group(_O.READ),)),
    Case("DescribeGroups", lambda n: describe_groups.DescribeGroupsRequest([n.group], True), 5, (group(_O.DESCRIBE),)),
    Case("ListGroups", lambda _: list_groups.ListGroupsRequest(), 4, (group(_O.DESCRIBE, LEFT_OUT),), shows=["crew-1"]),
    Case(
        "ListGroups-all",
        lambda _: list_groups.ListGroupsRequest(),
        4,
        (cluster(_O.DESCRIBE, LEFT_OUT),),
        shows=["crew-1", "band-1"],
    ),
    Case("CreateTopics", lambda n: _create_topic(n.topic), 7, (topic(_O.CREATE),)),
    Case("CreateTopics-any", lambda n: _create_topic(n.topic), 7, (cluster(_O.CREATE, TOPIC_DENIED),)),
    Case(
        "DeleteTopics",
        lambda n: delete_topics.DeleteTopicsRequest(topic_names=[n.topic], timeout_ms=5000),
        5,
        (topic(_O.DELETE),),
        uses_missing=True,
    ),
    Case(
        "DeleteTopics-any",
        lambda n: delete_topics.DeleteTopicsRequest([delete_topics.DeleteTopicState(n.topic)], timeout_ms=5000),
        6,
        (cluster(_O.DELETE, TOPIC_DENIED),),
        uses_missing=True,
    ),
    Case(
        "DeleteRecords",
        lambda n: delete_records.DeleteRecordsRequest(
            [delete_records.DeleteRecordsTopic(n.topic, [delete_records.DeleteRecordsPartition(0, 0)])], 5000
        ),
        2,
        (topic(_O.DELETE),),
    ),
    Case(
        "InitProducerId-transactional",
        lambda n: init_producer_id.InitProducerIdRequest(n.transaction, 60_000),
        4,
        (transaction(_O.WRITE),),
        uses_missing=True,
    ),
    Case(
        "InitProducerId-idempotent",
        lambda _: init_producer_id.InitProducerIdRequest(None, 60_000),
        4,
        (cluster(_O.IDEMPOTENT_WRITE),),
    ),
    Case(
        "InitProducerId-any-topic",
        lambda _: init_producer_id.InitProducerIdRequest(None, 60_000),
        4,
        (topic(_O.WRITE, CLUSTER_DENIED),),
    ),
    Case("OffsetForLeaderEpoch", lambda n: _offset_for_epoch(n.topic), 4, (topic(_O.DESCRIBE),)),
    Case(
        "OffsetForLeaderEpoch-node",
        lambda n: _offset_for_epoch(n.topic),
        4,
        (cluster(_O.CLUSTER_ACTION, TOPIC_DENIED),),
    ),
    Case(
        "AddPartitionsToTxn",
        lambda n: _add_partitions(n.transaction, n.topic),
        3,
        (transaction(_O.WRITE), topic(_O.WRITE)),
    ),
    Case(
        "AddPartitionsToTxn-broker",
        lambda n: _add_partitions_of_brokers(n.transaction, n.topic),
        4,
        (cluster(_O.CLUSTER_ACTION),),
    ),
    Case(
        "AddOffsetsToTxn",
        lambda n: add_offsets_to_txn.AddOffsetsToTxnRequest(n.transaction, 1, 0, n.group),
        3,
        (transaction(_O.WRITE), group(_O.READ)),
    ),
    Case("EndTxn", lambda n: end_txn.EndTxnRequest(n.transaction, 1, 0, False), 3, (transaction(_O.WRITE),)),
    Case("WriteTxnMarkers", lambda n: _markers(n.topic), 1, (cluster(_O.CLUSTER_ACTION),), uses_missing=True),
    Case("WriteTxnMarkers-admin", lambda n: _markers(n.topic), 1, (cluster(_O.ALTER),), uses_missing=True),
    Case("TxnOffsetCommit", _txn_commit, 3, (transaction(_O.WRITE), group(_O.READ), topic(_O.READ))),
    Case("DescribeAcls", _acls, 3, (cluster(_O.DESCRIBE),)),
    Case("CreateAcls", _create_acls, 3, (cluster(_O.ALTER),)),
    Case("DeleteAcls", _delete_acls, 3, (cluster(_O.ALTER),)),
    Case("DescribeConfigs-topic", lambda n: _configs(2, n.topic), 4, (topic(_O.DESCRIBE_CONFIGS),)),
    Case("DescribeConfigs-group", lambda n: _configs(32, n.group), 4, (group(_O.DESCRIBE_CONFIGS),)),
    Case("DescribeConfigs-broker", lambda _: _configs(4, "1"), 4, (cluster(_O.DESCRIBE_CONFIGS),)),
    Case("AlterConfigs-topic", lambda n: _alter_configs(2, n.topic), 2, (topic(_O.ALTER_CONFIGS),)),
    Case("AlterConfigs-group", lambda n: _alter_configs(32, n.group), 2, (group(_O.ALTER_CONFIGS),)),
    Case("AlterConfigs-broker", lambda _: _alter_configs(4, ""), 2, (cluster(_O.ALTER_CONFIGS),)),
    Case("IncrementalAlterConfigs-topic", lambda n: _change_configs(2, n.topic), 1, (topic(_O.ALTER_CONFIGS),)),
    Case("IncrementalAlterConfigs-group", lambda n: _change_configs(32, n.group), 1, (group(_O.ALTER_CONFIGS),)),
    Case("IncrementalAlterConfigs-broker", lambda _: _change_configs(4, ""), 1, (cluster(_O.ALTER_CONFIGS),)),
    Case("AlterReplicaLogDirs", lambda n: _move(n.topic), 2, (cluster(_O.ALTER),)),
    Case(
        "DescribeLogDirs",
        lambda _: describe_log_dirs.DescribeLogDirsRequest(None),
        4,
        (cluster(_O.DESCRIBE),),
        shows=["orders"],
    ),
    Case(
        "CreatePartitions",
        lambda n: create_partitions.CreatePartitionsRequest(
            [create_partitions.CreatePartitionsTopic(n.topic, 5, None)], 5000, True
        ),
        3,
        (topic(_O.ALTER),),
    ),
    Case(
        "DeleteGroups",
        lambda n: delete_groups.DeleteGroupsRequest([n.group]),
        2,
        (group(_O.DELETE),),
        uses_missing=True,
    ),
    Case("ElectLeaders", lambda n: _elect(n.topic), 2, (cluster(_O.ALTER),)),
    Case("AlterPartitionReassignments", lambda n: _reassign(n.topic), 0, (cluster(_O.ALTER),)),
    Case("ListPartitionReassignments", lambda n: _reassignments(n.topic), 0, (cluster(_O.DESCRIBE),)),
    Case("OffsetDelete", _delete_offsets, 0, (group(_O.DELETE), topic(_O.READ)), uses_missing=True),
    Case(
        "DescribeClientQuotas",
        lambda _: describe_client_quotas.DescribeClientQuotasRequest(),
        1,
        (cluster(_O.DESCRIBE_CONFIGS),),
    ),
    Case("AlterClientQuotas", _alter_quotas, 1, (cluster(_O.ALTER_CONFIGS),)),
    Case(
        "DescribeUserScramCredentials",
        lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest([]),
        0,
        (cluster(_O.DESCRIBE),),
    ),
    Case("AlterUserScramCredentials", _delete_user, 0, (cluster(_O.ALTER),)),
    Case("DescribeQuorum", _quorum, 1, (cluster(_O.DESCRIBE),)),
    Case("UpdateFeatures", lambda _: update_features.UpdateFeaturesRequest(1000, [], True), 1, (cluster(_O.ALTER),)),
    Case(
        "DescribeProducers",
        lambda n: describe_producers.DescribeProducersRequest([describe_producers.TopicRequest(n.topic, [0])]),
        0,
        (topic(_O.READ),),
    ),
    Case("UnregisterBroker", lambda _: unregister_broker.UnregisterBrokerRequest(_NO_NODE), 0, (cluster(_O.ALTER),)),
    Case(
        "DescribeTransactions",
        lambda n: describe_transactions.DescribeTransactionsRequest([n.transaction]),
        0,
        (transaction(_O.DESCRIBE), topic(_O.DESCRIBE, LEFT_OUT)),
        shows=["orders"],
    ),
    Case(
        "ListTransactions",
        lambda _: list_transactions.ListTransactionsRequest(),
        0,
        (transaction(_O.DESCRIBE, LEFT_OUT),),
        shows=["pay-1"],
    ),
    Case(
        "ConsumerGroupHeartbeat",
        lambda n: _leave_band(n.band, n.topic),
        1,
        (group(_O.READ, name="band"), topic(_O.DESCRIBE)),
    ),
    Case(
        "ConsumerGroupDescribe",
        lambda n: consumer_group_describe.ConsumerGroupDescribeRequest([n.band], True),
        1,
        (group(_O.DESCRIBE, name="band"), topic(_O.DESCRIBE)),
        shows=["orders"],
    ),
    Case(
        "ListConfigResources",
        lambda _: list_config_resources.ListConfigResourcesRequest([2]),
        1,
        (cluster(_O.DESCRIBE_CONFIGS),),
        shows=["orders"],
    ),
    Case(
        "DescribeTopicPartitions",
        lambda n: describe_topic_partitions.DescribeTopicPartitionsRequest(
            [describe_topic_partitions.TopicRequest(n.topic)]
        ),
        0,
        (topic(_O.DESCRIBE),),
    ),
    Case(
        "DescribeTopicPartitions-all",
        lambda _: describe_topic_partitions.DescribeTopicPartitionsRequest([]),
        0,
        (topic(_O.DESCRIBE, LEFT_OUT),),
        shows=["orders"],
    ),
    Case("AddRaftVoter", _voter, 0, (cluster(_O.ALTER),)),
    Case(
        "RemoveRaftVoter",
        lambda _: remove_raft_voter.RemoveRaftVoterRequest(_OTHER_CLUSTER, _NO_NODE, b"v" * 16),
        0,
        (cluster(_O.ALTER),),
    ),
)
"""Requests to a broker."""


def _between_nodes(title: str, version: int, request: Callable[[Names], Message]) -> Case:
    return Case(title, request, version, _NODE, is_for_controller=True)


_METADATA_TOPIC: Final = "__cluster_metadata"
CONTROLLER_CASES: Final = (
    _between_nodes("Fetch-metadata", 13, lambda _: fetch.FetchRequest(_OTHER_CLUSTER, topics=[fetch.FetchTopic()])),
    _between_nodes("Vote", 0, lambda _: vote.VoteRequest(_OTHER_CLUSTER, topics=[vote.TopicData(_METADATA_TOPIC, [])])),
    _between_nodes("BeginQuorumEpoch", 0, lambda _: begin_quorum_epoch.BeginQuorumEpochRequest(_OTHER_CLUSTER)),
    _between_nodes("EndQuorumEpoch", 0, lambda _: end_quorum_epoch.EndQuorumEpochRequest(_OTHER_CLUSTER)),
    _between_nodes("AlterPartition", 3, lambda _: alter_partition.AlterPartitionRequest(_NO_NODE, 1)),
    _between_nodes("Envelope", 0, _inside),
    _between_nodes("FetchSnapshot", 0, lambda _: fetch_snapshot.FetchSnapshotRequest(_OTHER_CLUSTER, 7)),
    _between_nodes(
        "BrokerRegistration",
        1,
        lambda _: broker_registration.BrokerRegistrationRequest(_NO_NODE, _OTHER_CLUSTER, b"i" * 16, rack=None),
    ),
    _between_nodes("BrokerHeartbeat", 0, lambda _: broker_heartbeat.BrokerHeartbeatRequest(_NO_NODE, 1)),
    _between_nodes("AllocateProducerIds", 0, lambda _: allocate_producer_ids.AllocateProducerIdsRequest(_NO_NODE, 1)),
    _between_nodes(
        "ControllerRegistration",
        0,
        lambda _: controller_registration.ControllerRegistrationRequest(_NO_NODE, b"i" * 16),
    ),
    _between_nodes(
        "AssignReplicasToDirs", 0, lambda _: assign_replicas_to_dirs.AssignReplicasToDirsRequest(_NO_NODE, 1)
    ),
    _between_nodes(
        "UpdateRaftVoter",
        0,
        lambda _: update_raft_voter.UpdateRaftVoterRequest(_OTHER_CLUSTER, 1, _NO_NODE, b"v" * 16),
    ),
    Case(
        "DescribeCluster",
        lambda _: describe_cluster.DescribeClusterRequest(endpoint_type=2),
        1,
        (cluster(_O.ALTER),),
        is_for_controller=True,
    ),
    Case("CreateTopics-controller", lambda n: _create_topic(n.topic), 7, (topic(_O.CREATE),), is_for_controller=True),
)
"""Requests to a controller."""
