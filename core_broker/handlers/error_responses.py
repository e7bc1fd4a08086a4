"""Responses that say nothing but that the request failed, and why."""

from collections.abc import Callable
from typing import Any, Final

from core_broker.errors import BrokerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_configs,
    describe_user_scram_credentials,
    elect_leaders,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_partition_reassignments,
    offset_commit,
    txn_offset_commit,
    write_txn_markers,
)


def error_response(request: Message, response: type[Message], error: BrokerError) -> Message:
    """A response with the error: at its top, or else for each item of the request.

    Raises the error if the response has no place for it.
    """
    itemise = _ITEMISED.get(type(request))
    if itemise is not None:
        return itemise(request, int(error.code), error.message)
    if "error_code" not in response.__struct_fields__:
        raise error
    fields: dict[str, Any] = {"error_code": int(error.code)}
    if "error_message" in response.__struct_fields__:
        fields["error_message"] = error.message
    return response(**fields)


def _create_topics(request: create_topics.CreateTopicsRequest, code: int, message: str) -> Message:
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(topic.name, error_code=code, error_message=message, configs=None)
            for topic in request.topics
        ]
    )


def _delete_topics(request: delete_topics.DeleteTopicsRequest, code: int, message: str) -> Message:
    topics = request.topics or [delete_topics.DeleteTopicState(name) for name in request.topic_names]
    return delete_topics.DeleteTopicsResponse(
        responses=[delete_topics.DeletableTopicResult(topic.name, topic.topic_id, code, message) for topic in topics]
    )


def _create_partitions(request: create_partitions.CreatePartitionsRequest, code: int, message: str) -> Message:
    return create_partitions.CreatePartitionsResponse(
        results=[create_partitions.CreatePartitionsTopicResult(topic.name, code, message) for topic in request.topics]
    )


def _describe_configs(request: describe_configs.DescribeConfigsRequest, code: int, message: str) -> Message:
    return describe_configs.DescribeConfigsResponse(
        results=[
            describe_configs.DescribeConfigsResult(code, message, resource.resource_type, resource.resource_name)
            for resource in request.resources
        ]
    )


def _create_acls(request: create_acls.CreateAclsRequest, code: int, message: str) -> Message:
    return create_acls.CreateAclsResponse(
        results=[create_acls.AclCreationResult(code, message) for _ in request.creations]
    )


def _delete_acls(request: delete_acls.DeleteAclsRequest, code: int, message: str) -> Message:
    return delete_acls.DeleteAclsResponse(
        filter_results=[delete_acls.DeleteAclsFilterResult(code, message) for _ in request.filters]
    )


def _alter_configs(request: alter_configs.AlterConfigsRequest, code: int, message: str) -> Message:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
            for resource in request.resources
        ]
    )


def _alter_client_quotas(request: alter_client_quotas.AlterClientQuotasRequest, code: int, message: str) -> Message:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[alter_client_quotas.EntryResult(code, message, entry.entity) for entry in request.entries]
    )


def _incremental_alter_configs(
    request: incremental_alter_configs.IncrementalAlterConfigsRequest, code: int, message: str
) -> Message:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                code, message, resource.resource_type, resource.resource_name
            )
            for resource in request.resources
        ]
    )


def _alter_scram_credentials(
    request: alter_user_scram_credentials.AlterUserScramCredentialsRequest, code: int, message: str
) -> Message:
    names = {change.name for change in request.deletions} | {change.name for change in request.upsertions}
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(name, code, message) for name in sorted(names)
        ]
    )


def _describe_scram_credentials(
    request: describe_user_scram_credentials.DescribeUserScramCredentialsRequest, code: int, message: str
) -> Message:
    """The error at the top, and once for each user that was asked for, without the name, as Kafka does."""
    result = describe_user_scram_credentials.DescribeUserScramCredentialsResult("", code, message)
    return describe_user_scram_credentials.DescribeUserScramCredentialsResponse(
        error_code=code, error_message=message, results=[result for _ in request.users or ()]
    )


def _create_token(_request: create_delegation_token.CreateDelegationTokenRequest, code: int, _message: str) -> Message:
    return create_delegation_token.CreateDelegationTokenResponse(
        error_code=code, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1
    )


def _elect_leaders(request: elect_leaders.ElectLeadersRequest, code: int, message: str) -> Message:
    """The error twice, since version 0 has none at the top."""
    return elect_leaders.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            elect_leaders.ReplicaElectionResult(
                topic.topic, [elect_leaders.PartitionResult(index, code, message) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _find_coordinator(request: find_coordinator.FindCoordinatorRequest, code: int, message: str) -> Message:
    """The error twice, since versions with many keys have none at the top."""
    return find_coordinator.FindCoordinatorResponse(
        error_code=code,
        error_message=message,
        node_id=-1,
        port=-1,
        coordinators=[find_coordinator.Coordinator(key, -1, "", -1, code, message) for key in request.coordinator_keys],
    )


def _init_producer_id(_request: init_producer_id.InitProducerIdRequest, code: int, _message: str) -> Message:
    return init_producer_id.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def _offset_commit(request: offset_commit.OffsetCommitRequest, code: int, _message: str) -> Message:
    return offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [offset_commit.OffsetCommitResponsePartition(item.partition_index, code) for item in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _txn_offset_commit(request: txn_offset_commit.TxnOffsetCommitRequest, code: int, _message: str) -> Message:
    wire = txn_offset_commit
    return wire.TxnOffsetCommitResponse(
        topics=[
            wire.TxnOffsetCommitResponseTopic(
                topic.name,
                [wire.TxnOffsetCommitResponsePartition(item.partition_index, code) for item in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _add_partitions_to_txn(
    request: add_partitions_to_txn.AddPartitionsToTxnRequest, code: int, _message: str
) -> Message:
    """At the partitions up to version 3, at the top from version 4 on."""
    wire = add_partitions_to_txn
    return wire.AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=[
            wire.AddPartitionsToTxnTopicResult(
                topic.name, [wire.AddPartitionsToTxnPartitionResult(index, code) for index in topic.partitions]
            )
            for topic in request.v3_and_below_topics
        ],
    )


def _write_txn_markers(request: write_txn_markers.WriteTxnMarkersRequest, code: int, _message: str) -> Message:
    wire = write_txn_markers
    return wire.WriteTxnMarkersResponse(
        [
            wire.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    wire.WritableTxnMarkerTopicResult(
                        topic.name,
                        [wire.WritableTxnMarkerPartitionResult(index, code) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _alter_replica_log_dirs(
    request: alter_replica_log_dirs.AlterReplicaLogDirsRequest, code: int, _message: str
) -> Message:
    wire = alter_replica_log_dirs
    return wire.AlterReplicaLogDirsResponse(
        results=[
            wire.AlterReplicaLogDirTopicResult(
                topic.name, [wire.AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions]
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _alter_partition_reassignments(
    request: alter_partition_reassignments.AlterPartitionReassignmentsRequest, code: int, message: str
) -> Message:
    wire = alter_partition_reassignments
    return wire.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            wire.ReassignableTopicResponse(
                topic.name,
                [wire.ReassignablePartitionResponse(item.partition_index, code, message) for item in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _list_partition_reassignments(
    request: list_partition_reassignments.ListPartitionReassignmentsRequest, code: int, message: str
) -> Message:
    """As in Kafka, with the partitions of the request."""
    wire = list_partition_reassignments
    return wire.ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        topics=[
            wire.OngoingTopicReassignment(
                topic.name, [wire.OngoingPartitionReassignment(index) for index in topic.partition_indexes]
            )
            for topic in request.topics or ()
        ],
    )


_ITEMISED: Final[dict[type[Message], Callable[[Any, int, str], Message]]] = {
    alter_client_quotas.AlterClientQuotasRequest: _alter_client_quotas,
    add_partitions_to_txn.AddPartitionsToTxnRequest: _add_partitions_to_txn,
    alter_configs.AlterConfigsRequest: _alter_configs,
    alter_partition_reassignments.AlterPartitionReassignmentsRequest: _alter_partition_reassignments,
    alter_replica_log_dirs.AlterReplicaLogDirsRequest: _alter_replica_log_dirs,
    alter_user_scram_credentials.AlterUserScramCredentialsRequest: _alter_scram_credentials,
    create_acls.CreateAclsRequest: _create_acls,
    create_delegation_token.CreateDelegationTokenRequest: _create_token,
    create_partitions.CreatePartitionsRequest: _create_partitions,
    create_topics.CreateTopicsRequest: _create_topics,
    delete_acls.DeleteAclsRequest: _delete_acls,
    delete_topics.DeleteTopicsRequest: _delete_topics,
    describe_configs.DescribeConfigsRequest: _describe_configs,
    describe_user_scram_credentials.DescribeUserScramCredentialsRequest: _describe_scram_credentials,
    elect_leaders.ElectLeadersRequest: _elect_leaders,
    find_coordinator.FindCoordinatorRequest: _find_coordinator,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
    init_producer_id.InitProducerIdRequest: _init_producer_id,
    list_partition_reassignments.ListPartitionReassignmentsRequest: _list_partition_reassignments,
    offset_commit.OffsetCommitRequest: _offset_commit,
    txn_offset_commit.TxnOffsetCommitRequest: _txn_offset_commit,
    write_txn_markers.WriteTxnMarkersRequest: _write_txn_markers,
}
