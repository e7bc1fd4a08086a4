"""DescribeCluster, DescribeQuorum, DescribeLogDirs and the elections and reassignments of one node."""

import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers import describe_cluster
from core_broker.handlers.context import RequestContext
from core_broker.handlers.session import Session
from core_broker.protocol.messages import (
    alter_partition_reassignments as alter,
)
from core_broker.protocol.messages import (
    describe_quorum,
    elect_leaders,
    list_partition_reassignments,
    update_features,
)
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from core_broker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from core_broker.protocol.stored.metadata import ControllerEndpoint, FenceBrokerRecord, RegisterControllerRecord
from tests.support.handler_world import HandlerWorld

SESSION = Session(host="10.0.0.2", listener_name="CONTROLLER", local_host="10.0.0.1")


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_described_in_every_version(world: HandlerWorld, version: int) -> None:
    response = await world.call(DescribeClusterRequest(True), DescribeClusterResponse, version)
    assert (response.cluster_id, response.controller_id) == (world.quorum.cluster_id, 1)
    assert response.cluster_authorized_operations == 8096
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "192.0.2.1", 9092, "rack-a")


async def test_a_quorum_whose_voters_can_change_has_kraft_version_1(world: HandlerWorld) -> None:
    request = ApiVersionsRequest("test", "1.0")
    response = await world.call(request, ApiVersionsResponse, 4)
    assert {feature.name: feature.max_version_level for feature in response.finalized_features}["kraft.version"] == 1


async def test_fenced_brokers_are_described_to_who_asks(world: HandlerWorld) -> None:
    await world.quorum.append([FenceBrokerRecord(id=1, epoch=0)])
    assert (await world.call(DescribeClusterRequest(), DescribeClusterResponse, 2)).brokers == []
    request = DescribeClusterRequest(include_fenced_brokers=True)
    (broker,) = (await world.call(request, DescribeClusterResponse, 2)).brokers
    assert broker.is_fenced


@pytest.mark.parametrize(
    "endpoint_type,code", [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
async def test_endpoints_of_controllers_are_not_told_by_a_broker(
    world: HandlerWorld, endpoint_type: int, code: ErrorCode
) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    assert (await world.call(request, DescribeClusterResponse, 1)).error_code == code


async def test_a_controller_describes_the_controllers_that_have_registered(world: HandlerWorld) -> None:
    endpoints = [ControllerEndpoint("CONTROLLER", "there", 9093, 0), ControllerEndpoint("OTHER", "hidden", 1, 0)]
    await world.quorum.append([RegisterControllerRecord(controller_id=7, end_points=endpoints)])
    context = RequestContext(world.services, 60, 2, 1, "admin", SESSION, world.services.authorizer)
    response = describe_cluster.handle(DescribeClusterRequest(endpoint_type=2), context)
    assert response.controller_id == world.quorum.node_id
    assert [(node.broker_id, node.host, node.port) for node in response.brokers] == [(7, "there", 9093)]


@pytest.mark.parametrize("version", range(3))
async def test_the_quorum_is_this_node(world: HandlerWorld, version: int) -> None:
    topic = describe_quorum.TopicData("__cluster_metadata", [describe_quorum.PartitionData(0)])
    request = describe_quorum.DescribeQuorumRequest([topic])
    response = await world.call(request, describe_quorum.DescribeQuorumResponse, version)
    (partition,) = response.topics[0].partitions
    (voter,) = partition.current_voters
    assert (partition.leader_id, partition.leader_epoch, voter.replica_id) == (1, 1, 1)
    assert partition.high_watermark == voter.log_end_offset == world.quorum.end_offset
    assert [node.node_id for node in response.nodes] == ([1] if version >= 2 else [])


async def test_other_topics_have_no_quorum(world: HandlerWorld) -> None:
    request = describe_quorum.DescribeQuorumRequest(
        [describe_quorum.TopicData("t", [describe_quorum.PartitionData(0)])]
    )
    response = await world.call(request, describe_quorum.DescribeQuorumResponse, 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_directories_tell_the_size_of_their_partitions(world: HandlerWorld, version: int) -> None:
    await world.create("t", 2)
    world.append("t", 1, 2, 3)
    (result,) = (await world.call(DescribeLogDirsRequest(None), DescribeLogDirsResponse, version)).results
    sizes = {(t.name, p.partition_index): p.partition_size for t in result.topics for p in t.partitions}
    assert sizes == {("t", 0): world.partition("t").log.size_bytes, ("t", 1): 0}
    assert (result.usable_bytes > 0) == (version >= 4)


async def test_log_directories_of_chosen_partitions(world: HandlerWorld) -> None:
    await world.create("t", 3)
    request = DescribeLogDirsRequest([DescribableLogDirTopic("t", [1]), DescribableLogDirTopic("no", [0])])
    (result,) = (await world.call(request, DescribeLogDirsResponse, 4)).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in result.topics] == [("t", [1])]


@pytest.mark.parametrize("version", range(3))
async def test_no_election_is_needed_on_one_node(world: HandlerWorld, version: int) -> None:
    await world.create("t")
    request = elect_leaders.ElectLeadersRequest(0, [elect_leaders.TopicPartitions("t", [0, 9])])
    (result,) = (await world.call(request, elect_leaders.ElectLeadersResponse, version)).replica_election_results
    assert [item.error_code for item in result.partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_electing_everywhere_lists_nothing_and_an_unknown_type_is_refused(world: HandlerWorld) -> None:
    await world.create("t")
    response = await world.call(elect_leaders.ElectLeadersRequest(0, None), elect_leaders.ElectLeadersResponse, 2)
    assert (response.error_code, response.replica_election_results) == (0, [])
    response = await world.call(elect_leaders.ElectLeadersRequest(9, []), elect_leaders.ElectLeadersResponse, 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "replicas,code",
    [
        ([1], 0),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_replicas_stay_where_they_are(world: HandlerWorld, replicas: list[int] | None, code: int) -> None:
    await world.create("t")
    topic = alter.ReassignableTopic("t", [alter.ReassignablePartition(0, replicas)])
    request = alter.AlterPartitionReassignmentsRequest(topics=[topic])
    response = await world.call(request, alter.AlterPartitionReassignmentsResponse, 1)
    assert response.responses[0].partitions[0].error_code == code


async def test_nothing_is_on_the_move(world: HandlerWorld) -> None:
    await world.create("t")
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)
    response = await world.call(request, list_partition_reassignments.ListPartitionReassignmentsResponse, 0)
    assert (response.error_code, response.topics) == (0, [])


@pytest.mark.parametrize("version,upgrade_type,level", [(1, 1, 2), (1, 2, 1), (2, 1, 2), (2, 3, 1)])
async def test_a_feature_is_lowered_only_on_purpose(
    world: HandlerWorld, version: int, upgrade_type: int, level: int
) -> None:
    key = update_features.FeatureUpdateKey("transaction.version", 1, upgrade_type=upgrade_type)
    request = update_features.UpdateFeaturesRequest(feature_updates=[key])
    await world.call(request, update_features.UpdateFeaturesResponse, version)
    assert world.quorum.image.features["transaction.version"] == level


async def test_version_2_changes_all_features_or_none(world: HandlerWorld) -> None:
    good = update_features.FeatureUpdateKey("transaction.version", 1, upgrade_type=2)
    bad = update_features.FeatureUpdateKey("group.version", 7)
    request = update_features.UpdateFeaturesRequest(feature_updates=[good, bad])
    response = await world.call(request, update_features.UpdateFeaturesResponse, 2)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert world.quorum.image.features["transaction.version"] == 2
    response = await world.call(request, update_features.UpdateFeaturesResponse, 1)
    assert [result.error_code for result in response.results] == [0, ErrorCode.INVALID_UPDATE_VERSION]
