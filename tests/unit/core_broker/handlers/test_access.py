"""What handlers learn about the rights of a client; `tests/integration/test_access.py` walks all APIs on the wire."""

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import (
    Purpose,
    check_request,
    config_refusal,
    may_see_token,
    may_use_cluster,
    may_use_groups,
    may_use_topics,
)
from core_broker.handlers.context import RequestContext
from core_broker.handlers.session import Session
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    add_partitions_to_txn,
    create_topics,
    delete_topics,
    describe_cluster,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    write_txn_markers,
)
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from core_broker.protocol.records import Record, build_batch
from core_broker.security.operations import CLUSTER_NAME, Operation, ResourceType
from core_broker.server.dispatch import call_handler
from tests.support.handler_world import HandlerWorld

TOPIC, GROUP, CLUSTER, USER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.USER
TRANSACTION, TOKEN = ResourceType.TRANSACTIONAL_ID, ResourceType.DELEGATION_TOKEN


def context(world: HandlerWorld, key: int, version: int = 0, *, is_controller: bool = False) -> RequestContext:
    session = Session(
        host="192.0.2.9", listener_name="PLAINTEXT", local_host="192.0.2.1", is_controller_listener=is_controller
    )
    return RequestContext(world.services, key, version, 1, None, session, world.services.authorizer)


def code_of(request: Message, asked: RequestContext) -> ErrorCode:
    try:
        check_request(request, asked)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


# --- the request as a whole -------------------------------------------------------------------------------------------


async def test_without_an_authorizer_everything_is_allowed(world: HandlerWorld) -> None:
    asked = context(world, 64)
    check_request(UnregisterBrokerRequest(9), asked)
    assert may_use_topics(context(world, 0))("orders")
    assert config_refusal(context(world, 32))(4, "1") is None


async def test_the_node_itself_may_do_everything(world: HandlerWorld) -> None:
    world.enforce()
    asked = UnregisterBrokerRequest(9)
    own = await call_handler(asked, world.services)
    assert isinstance(own, UnregisterBrokerResponse)
    assert own.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    other = await world.call(asked, UnregisterBrokerResponse, 0)
    assert other.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_an_api_without_a_row_is_refused(world: HandlerWorld) -> None:
    world.enforce((Operation.ALL, CLUSTER, CLUSTER_NAME))
    with pytest.raises(KeyError):
        check_request(UnregisterBrokerRequest(), context(world, 999))


@pytest.mark.parametrize("operation", [Operation.ALTER, Operation.CLUSTER_ACTION])
async def test_one_alternative_is_enough(world: HandlerWorld, operation: Operation) -> None:
    denials = world.enforce((operation, CLUSTER, CLUSTER_NAME))
    assert code_of(write_txn_markers.WriteTxnMarkersRequest(), context(world, 27, 1)) == ErrorCode.NONE
    assert denials == []


async def test_only_the_last_alternative_is_logged(world: HandlerWorld) -> None:
    denials = world.enforce()
    refused = code_of(write_txn_markers.WriteTxnMarkersRequest(), context(world, 27, 1))
    assert refused == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert [(denial.operation, denial.api) for denial in denials] == [(Operation.CLUSTER_ACTION, "WriteTxnMarkers")]


async def test_a_check_can_depend_on_the_version(world: HandlerWorld) -> None:
    world.enforce((Operation.WRITE, TRANSACTION, "t"))
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(v3_and_below_transactional_id="t")
    assert code_of(request, context(world, 24, 3)) == ErrorCode.NONE
    assert code_of(request, context(world, 24, 4)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "rule,code",
    [
        ((Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME), ErrorCode.NONE),
        ((Operation.WRITE, TOPIC, "some"), ErrorCode.NONE),
        ((Operation.READ, TOPIC, "some"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ((Operation.WRITE, TRANSACTION, "t"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
async def test_an_idempotent_producer_needs_a_right_to_write_anything(
    world: HandlerWorld, rule: tuple[Operation, ResourceType, str], code: ErrorCode
) -> None:
    world.enforce(rule)
    assert code_of(init_producer_id.InitProducerIdRequest(None), context(world, 22, 4)) == code


async def test_a_transactional_producer_needs_its_id_and_nothing_else(world: HandlerWorld) -> None:
    world.enforce((Operation.WRITE, TRANSACTION, "mine"))
    assert code_of(init_producer_id.InitProducerIdRequest("mine"), context(world, 22, 4)) == ErrorCode.NONE
    other = code_of(init_producer_id.InitProducerIdRequest("other"), context(world, 22, 4))
    assert other == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_controllers_ask_for_more_where_their_table_says_so(world: HandlerWorld) -> None:
    world.enforce()
    request = describe_cluster.DescribeClusterRequest()
    assert code_of(request, context(world, 60)) == ErrorCode.NONE
    refused = code_of(request, context(world, 60, is_controller=True))
    assert refused == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- items ------------------------------------------------------------------------------------------------------------


async def test_each_topic_is_asked_about_once(world: HandlerWorld) -> None:
    denials = world.enforce((Operation.WRITE, TOPIC, "orders"))
    may_write = may_use_topics(context(world, 0))
    assert [may_write(name) for name in ("orders", "secret", "orders", "secret", "secret")] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert [denial.name for denial in denials] == ["secret"]


async def test_what_the_client_did_not_ask_for_is_not_logged(world: HandlerWorld) -> None:
    denials = world.enforce()
    assert not may_use_topics(context(world, 3), is_logged=False)("orders")
    assert not may_use_groups(context(world, 16))("crew")
    assert denials == []


async def test_a_right_on_the_cluster_covers_all_topics(world: HandlerWorld) -> None:
    world.enforce((Operation.CREATE, CLUSTER, CLUSTER_NAME))
    assert may_use_topics(context(world, 3), Purpose.CREATE)("any")
    assert not may_use_topics(context(world, 3))("any")


async def test_a_question_that_the_table_does_not_have_is_an_error(world: HandlerWorld) -> None:
    world.enforce((Operation.ALL, GROUP, "*"))
    with pytest.raises(LookupError, match="Produce"):
        may_use_groups(context(world, 0))


@pytest.mark.parametrize("resource_type", [4, 8, 16, 77])
async def test_configs_of_anything_but_topics_and_groups_belong_to_the_cluster(
    world: HandlerWorld, resource_type: int
) -> None:
    world.enforce((Operation.DESCRIBE_CONFIGS, TOPIC, "orders"))
    refusal = config_refusal(context(world, 32))
    assert refusal(2, "orders") is None
    codes = [
        error.code for error in (refusal(2, "x"), refusal(32, "orders"), refusal(resource_type, "orders")) if error
    ]
    assert codes == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]


@pytest.mark.parametrize(
    "rule,is_visible",
    [
        ((Operation.DESCRIBE, TOKEN, "id"), True),
        ((Operation.DESCRIBE_TOKENS, USER, "User:bob"), True),
        ((Operation.DESCRIBE_TOKENS, USER, "User:carol"), False),
    ],
)
async def test_a_token_is_seen_with_a_right_on_it_or_on_its_owner(
    world: HandlerWorld, rule: tuple[Operation, ResourceType, str], is_visible: bool
) -> None:
    world.enforce(rule)
    assert may_see_token(context(world, 41), "id", "User:bob") is is_visible


async def test_a_replica_is_a_node_of_the_cluster(world: HandlerWorld) -> None:
    """CVE-2018-1288"""
    world.enforce((Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME))
    assert may_use_cluster(context(world, 1), Purpose.REPLICATE)
    world.enforce((Operation.ALTER, CLUSTER, CLUSTER_NAME))
    assert not may_use_cluster(context(world, 1), Purpose.REPLICATE)


# --- what handlers make of it -----------------------------------------------------------------------------------------


def produce_to(*names: str, acks: int = -1) -> ProduceRequest:
    batch = bytes(build_batch([Record(timestamp=1_700_000_000_000, value=b"v")]))
    return ProduceRequest(
        None,
        acks,
        1000,
        [TopicProduceData(name=name, partition_data=[PartitionProduceData(0, batch)]) for name in names],
    )


async def test_records_for_other_topics_are_written_all_the_same(world: HandlerWorld) -> None:
    for name in ("mine", "secret"):
        await world.create(name)
    world.enforce((Operation.WRITE, TOPIC, "mine"))
    response = await world.call(produce_to("secret", "mine", "absent"), ProduceResponse, 9)
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert [world.partition(name).log.end_offset for name in ("mine", "secret")] == [1, 0]


async def test_a_transactional_batch_without_an_id_is_refused(world: HandlerWorld) -> None:
    await world.create("mine")
    world.enforce((Operation.ALL, TOPIC, "*"), (Operation.ALL, TRANSACTION, "*"))
    request = produce_to("mine")
    batch = build_batch([Record(timestamp=1, value=b"v")], producer_id=1, producer_epoch=0, is_transactional=True)
    request.topic_data[0].partition_data[0].records = bytes(batch)
    response = await world.call(request, ProduceResponse, 9)
    code = response.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_an_id_of_a_topic_can_be_known_and_its_data_not(world: HandlerWorld) -> None:
    topic_id = await world.create("secret")
    world.enforce()
    for asked, code in ((topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
        request = metadata.MetadataRequest([metadata.MetadataRequestTopic(asked, None)])
        (found,) = (await world.call(request, metadata.MetadataResponse, 12)).topics
        assert (found.error_code, found.name, found.topic_id, found.partitions) == (code, None, asked, [])
        wanted = fetch.FetchTopic(topic_id=asked, partitions=[fetch.FetchPartition(partition_max_bytes=100)])
        read = fetch.FetchRequest(max_bytes=100, session_epoch=-1, topics=[wanted])
        answer = await world.call(read, fetch.FetchResponse, 16)
        assert answer.responses[0].partitions[0].error_code == code


async def test_a_right_that_is_taken_away_ends_a_fetch_session_at_its_next_request(world: HandlerWorld) -> None:
    await world.create("orders")
    world.append("orders", 1)
    world.enforce((Operation.READ, TOPIC, "orders"))
    wanted = fetch.FetchTopic(topic="orders", partitions=[fetch.FetchPartition(partition_max_bytes=100)])
    first = await world.call(
        fetch.FetchRequest(max_bytes=100, session_epoch=0, topics=[wanted]), fetch.FetchResponse, 12
    )
    assert first.responses[0].partitions[0].error_code == 0
    world.enforce()
    again = fetch.FetchRequest(max_bytes=100, session_id=first.session_id, session_epoch=1)
    second = await world.call(again, fetch.FetchResponse, 12)
    assert second.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert second.responses[0].partitions[0].high_watermark == -1


async def test_whoever_claims_to_be_a_replica_takes_no_session_from_consumers(world: HandlerWorld) -> None:
    """CVE-2018-1288"""
    await world.create("orders")
    world.enforce()
    wanted = fetch.FetchTopic(topic="orders", partitions=[fetch.FetchPartition(partition_max_bytes=100)])
    own = [
        await world.call(fetch.FetchRequest(max_bytes=100, session_epoch=0, topics=[wanted]), fetch.FetchResponse, 12)
        for _ in range(10)
    ]
    claimed = fetch.FetchRequest(replica_id=7, max_bytes=100, session_epoch=0, topics=[wanted])
    response = await world.call(claimed, fetch.FetchResponse, 12)
    assert response.session_id == 0
    assert response.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert all(answer.session_id for answer in own)


@pytest.mark.parametrize("is_node,end", [(True, 1), (False, 0)])
async def test_the_end_of_the_log_is_only_shown_to_nodes(world: HandlerWorld, is_node: bool, end: int) -> None:
    await world.create("orders")
    batch = build_batch(
        [Record(timestamp=1, value=b"v")], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    world.partition("orders").append(batch, acks_all=False)
    node = [(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)] if is_node else []
    denials = world.enforce((Operation.DESCRIBE, TOPIC, "orders"), *node)
    wanted = list_offsets.ListOffsetsTopic("orders", [list_offsets.ListOffsetsPartition(0, -1, -1)])
    response = await world.call(list_offsets.ListOffsetsRequest(7, 1, [wanted]), list_offsets.ListOffsetsResponse, 7)
    (found,) = response.topics[0].partitions
    assert (found.error_code, found.offset, denials) == (0, end, [])


async def test_a_new_topic_is_created_without_showing_its_configs(world: HandlerWorld) -> None:
    world.enforce((Operation.CREATE, TOPIC, "orders"))
    request = create_topics.CreateTopicsRequest(
        [create_topics.CreatableTopic(name, 1, 1) for name in ("orders", "other", "__cluster_metadata")]
    )
    orders, other, reserved = (await world.call(request, create_topics.CreateTopicsResponse, 7)).topics
    assert (orders.error_code, orders.topic_config_error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (orders.num_partitions, orders.replication_factor, orders.configs) == (-1, -1, [])
    assert "orders" in world.quorum.image.topics
    assert other.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert reserved.error_code == ErrorCode.INVALID_REQUEST


async def delete(
    world: HandlerWorld, *topics: delete_topics.DeleteTopicState
) -> list[delete_topics.DeletableTopicResult]:
    request = delete_topics.DeleteTopicsRequest(list(topics))
    return (await world.call(request, delete_topics.DeleteTopicsResponse, 6)).responses


async def test_who_may_describe_a_topic_learns_that_it_is_missing_and_no_more(world: HandlerWorld) -> None:
    topic_id = await world.create("there")
    world.enforce((Operation.DESCRIBE, TOPIC, "there"), (Operation.DESCRIBE, TOPIC, "gone"))
    by_name = {
        name: (await delete(world, delete_topics.DeleteTopicState(name)))[0].error_code
        for name in ("there", "gone", "secret")
    }
    assert by_name == {
        "there": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    (by_id,) = await delete(world, delete_topics.DeleteTopicState(None, topic_id))
    assert (by_id.error_code, by_id.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "there")
    world.enforce()
    (hidden,) = await delete(world, delete_topics.DeleteTopicState(None, topic_id))
    assert (hidden.error_code, hidden.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert "there" in world.quorum.image.topics


async def test_the_order_of_deleted_topics_tells_nothing(world: HandlerWorld) -> None:
    names = [f"t{number}" for number in range(30)]
    world.enforce()
    results = await delete(world, *(delete_topics.DeleteTopicState(name) for name in names))
    assert sorted(result.name or "" for result in results) == sorted(names)
    assert [result.name for result in results] != names


async def test_all_topics_are_those_that_the_client_may_describe(world: HandlerWorld) -> None:
    for name in ("mine", "secret"):
        await world.create(name)
    denials = world.enforce((Operation.READ, TOPIC, "mine"))
    request = metadata.MetadataRequest(None, include_topic_authorized_operations=True)
    (mine,) = (await world.call(request, metadata.MetadataResponse, 9)).topics
    assert mine.name == "mine"
    assert mine.topic_authorized_operations == (1 << Operation.READ) | (1 << Operation.DESCRIBE)
    assert denials == []


async def test_a_topic_is_created_only_for_who_may_create_it(world: HandlerWorld) -> None:
    world.enforce((Operation.DESCRIBE, TOPIC, "new"))
    request = metadata.MetadataRequest([metadata.MetadataRequestTopic(name="new")])
    (refused,) = (await world.call(request, metadata.MetadataResponse, 12)).topics
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.enforce((Operation.DESCRIBE, TOPIC, "new"), (Operation.CREATE, TOPIC, "new"))
    (created,) = (await world.call(request, metadata.MetadataResponse, 12)).topics
    assert (created.error_code, len(created.partitions)) == (0, 3)


async def test_operations_on_the_cluster_are_shown_to_who_may_describe_it(world: HandlerWorld) -> None:
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    world.enforce((Operation.ALTER, CLUSTER, CLUSTER_NAME))
    shown = await world.call(request, describe_cluster.DescribeClusterResponse, 1)
    assert shown.cluster_authorized_operations == (1 << Operation.ALTER) | (1 << Operation.DESCRIBE)
    denials = world.enforce((Operation.CREATE, CLUSTER, CLUSTER_NAME))
    hidden = await world.call(request, describe_cluster.DescribeClusterResponse, 1)
    assert (hidden.error_code, hidden.cluster_authorized_operations, len(hidden.brokers), denials) == (0, 0, 1, [])


async def test_no_coordinator_is_created_for_a_group_that_the_client_may_not_describe(world: HandlerWorld) -> None:
    world.enforce()
    request = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["crew"])
    (found,) = (await world.call(request, find_coordinator.FindCoordinatorResponse, 4)).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)
    assert "__consumer_offsets" not in world.quorum.image.topics
