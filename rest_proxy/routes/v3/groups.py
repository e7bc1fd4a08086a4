"""Consumer groups in API v3: `/v3/clusters/{cluster_id}/consumer-groups…`."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from core_broker.client.models import Group
from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from rest_proxy.admin import groups, lag
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.models.v3.groups import (
    AssignmentData,
    AssignmentDataList,
    ConsumerData,
    ConsumerDataList,
    GroupData,
    GroupDataList,
    LagData,
    LagDataList,
    LagSummaryData,
)
from rest_proxy.routes.parameters import PartitionId, TopicName
from rest_proxy.routes.services import Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import json_response, reads

_GROUPS = "/v3/clusters/{cluster_id}/consumer-groups"
_CONSUMERS = _GROUPS + "/{consumer_group_id}/consumers"
_ASSIGNMENTS = _CONSUMERS + "/{consumer_id}/assignments"
_LAGS = _GROUPS + "/{consumer_group_id}/lags"

GroupId = Annotated[Segment, Path(description="The id of the group, percent-encoded.", examples=["billing"])]
ConsumerId = Annotated[Segment, Path(description="The member id, percent-encoded.", examples=["billing-1-9f0a"])]


routes = APIRouter(tags=["v3 consumer groups"], route_class=BoundedRoute)


@routes.get(_GROUPS, **reads(GroupDataList, "listKafkaConsumerGroups"))
def list_consumer_groups(cluster: Cluster, links: ClusterLinks) -> Response:
    """Every consumer group of the cluster."""
    with cluster.admin() as admin:
        listed = groups.list_all(admin)
    data = [groups.group_data(group, links) for group in listed]
    return json_response(GroupDataList(metadata=links.collection("consumer-groups"), data=data))


@routes.get(_GROUPS + "/{consumer_group_id}", **reads(GroupData, "getKafkaConsumerGroup"))
def get_consumer_group(consumer_group_id: GroupId, cluster: Cluster, links: ClusterLinks) -> Response:
    """A consumer group: its state, its type, and links to its members and its lag."""
    return json_response(groups.group_data(_get_group(cluster, consumer_group_id), links))


@routes.get(_CONSUMERS, **reads(ConsumerDataList, "listKafkaConsumers"))
def list_consumers(consumer_group_id: GroupId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The members of a consumer group."""
    group = _get_group(cluster, consumer_group_id)
    members = sorted(group.members, key=lambda member: member.member_id)
    data = [groups.consumer_data(group, member, links) for member in members]
    metadata = links.collection("consumer-groups", group.group_id, "consumers")
    return json_response(ConsumerDataList(metadata=metadata, data=data))


@routes.get(_CONSUMERS + "/{consumer_id}", **reads(ConsumerData, "getKafkaConsumer"))
def get_consumer(
    consumer_group_id: GroupId, consumer_id: ConsumerId, cluster: Cluster, links: ClusterLinks
) -> Response:
    """A member of a consumer group."""
    group = _get_group(cluster, consumer_group_id)
    return json_response(groups.consumer_data(group, groups.member(group, consumer_id), links))


@routes.get(_ASSIGNMENTS, **reads(AssignmentDataList, "listKafkaConsumerAssignments"))
def list_consumer_assignments(
    consumer_group_id: GroupId, consumer_id: ConsumerId, cluster: Cluster, links: ClusterLinks
) -> Response:
    """The partitions that a member of a consumer group reads."""
    group = _get_group(cluster, consumer_group_id)
    member = groups.member(group, consumer_id)
    data = [groups.assignment_data(group, member, key, links) for key in sorted(member.partitions)]
    metadata = links.collection("consumer-groups", group.group_id, "consumers", member.member_id, "assignments")
    return json_response(AssignmentDataList(metadata=metadata, data=data))


@routes.get(
    _ASSIGNMENTS + "/{topic_name}/partitions/{partition_id}", **reads(AssignmentData, "getKafkaConsumerAssignment")
)
def get_consumer_assignment(
    consumer_group_id: GroupId,
    consumer_id: ConsumerId,
    topic_name: TopicName,
    partition_id: PartitionId,
    cluster: Cluster,
    links: ClusterLinks,
) -> Response:
    """One partition that a member of a consumer group reads."""
    group = _get_group(cluster, consumer_group_id)
    member = groups.member(group, consumer_id)
    groups.check_assigned(member, topic_name, partition_id)
    return json_response(groups.assignment_data(group, member, (topic_name, partition_id), links))


@routes.get(_GROUPS + "/{consumer_group_id}/lag-summary", **reads(LagSummaryData, "getKafkaConsumerGroupLagSummary"))
def get_consumer_group_lag_summary(consumer_group_id: GroupId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The total lag of a consumer group, and the partition with the most."""
    group, measured = _get_lags(cluster, consumer_group_id)
    return json_response(lag.summary_data(group, measured, links))


@routes.get(_LAGS, **reads(LagDataList, "listKafkaConsumerLags"))
def list_consumer_lags(consumer_group_id: GroupId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The lag of a consumer group in each partition in which it has committed."""
    group, measured = _get_lags(cluster, consumer_group_id)
    data = [lag.lag_data(group, one, links) for one in measured]
    return json_response(LagDataList(metadata=links.collection("consumer-groups", group.group_id, "lags"), data=data))


@routes.get(_LAGS + "/{topic_name}/partitions/{partition_id}", **reads(LagData, "getKafkaConsumerLag"))
def get_consumer_lag(
    consumer_group_id: GroupId, topic_name: TopicName, partition_id: PartitionId, cluster: Cluster, links: ClusterLinks
) -> Response:
    """The lag of a consumer group in one partition."""
    group, measured = _get_lags(cluster, consumer_group_id)
    return json_response(lag.lag_data(group, lag.of_partition(measured, topic_name, partition_id), links))


def _get_group(cluster: KafkaCluster, group_id: str) -> Group:
    with cluster.admin() as admin:
        return groups.get(admin, group_id)


def _get_lags(cluster: KafkaCluster, group_id: str) -> tuple[Group, list[lag.PartitionLag]]:
    with cluster.admin() as admin:
        group = groups.get(admin, group_id)
        return group, lag.lags(admin, group)
