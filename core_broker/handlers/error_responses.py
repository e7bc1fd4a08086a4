"""Responses that say nothing but that the request failed, and why."""

from collections.abc import Callable
from typing import Any, Final

from core_broker.errors import BrokerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    alter_configs,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
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


_ITEMISED: Final[dict[type[Message], Callable[[Any, int, str], Message]]] = {
    alter_configs.AlterConfigsRequest: _alter_configs,
    create_acls.CreateAclsRequest: _create_acls,
    create_partitions.CreatePartitionsRequest: _create_partitions,
    create_topics.CreateTopicsRequest: _create_topics,
    delete_acls.DeleteAclsRequest: _delete_acls,
    delete_topics.DeleteTopicsRequest: _delete_topics,
    elect_leaders.ElectLeadersRequest: _elect_leaders,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
}
