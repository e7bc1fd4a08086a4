import asyncio
import os
import socket

import pytest

from core_broker.cluster.controller.configs import ConfigChange, ConfigOperation
from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.controller.topics import CreatedTopic, MorePartitions, NewTopic, internal_topic
from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.effective_settings import broker_settings, topic_settings
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.metadata import ResourceType, TopicImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.registration_request import registration_request
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.stored.metadata import PartitionChangeRecord
from core_broker.settings import BrokerSettings, Listener

TOPIC = (ResourceType.TOPIC, "t")
CONFIGS_OF_A_NEW_CLUSTER = {(4, ""): {"min.insync.replicas": "1"}}
SET = ConfigOperation.SET


async def create(controller: Controller, **topic: object) -> CreatedTopic:
    (result,) = await controller.create_topics([NewTopic(**{"name": "t", **topic})])  # type: ignore[arg-type] # by name
    if isinstance(result, BrokerError):
        raise result
    return result


async def refusal(controller: Controller, **topic: object) -> BrokerError:
    with pytest.raises(BrokerError) as refused:
        await create(controller, **topic)
    return refused.value


async def alter(
    controller: Controller, resource: tuple[int, str], **changes: tuple[int, str | None]
) -> BrokerError | None:
    listed = [
        ConfigChange(key=key.replace("_", "."), operation=operation, value=value)
        for key, (operation, value) in changes.items()
    ]
    (outcome,) = await controller.alter_configs([(resource, listed)])
    return outcome


async def restart(controller: Controller, *, was_clean: bool = True) -> int:
    """Register broker 1 again, as a node does that is its own controller."""
    request = registration_request(
        BrokerSettings(),
        AdvertisedEndpoints(endpoints=()),
        cluster_id="test-cluster",
        incarnation_id=os.urandom(16),
        log_dirs=[b"d" * 16],
        previous_epoch=controller.image.brokers[1].epoch if was_clean else -1,
    )
    return await controller.register_broker(request, unfence=True)


# -- registration ------------------------------------------------------------------------------------------------------


async def test_a_registered_broker_is_live_under_its_endpoint(controller: Controller) -> None:
    (broker,) = controller.image.live_brokers()
    endpoint = broker.endpoint("PLAINTEXT")
    assert endpoint is not None
    assert endpoint.port == 9092
    assert broker.broker_id == 1


async def test_the_broker_epoch_is_the_offset_of_its_registration(controller: Controller) -> None:
    first = controller.image.brokers[1].epoch
    assert first == 8  # after the three control records of the quorum, four features and min.insync.replicas
    second = await restart(controller)
    assert second == first + 2
    assert controller.image.brokers[1].epoch == second


async def test_a_new_cluster_has_its_features_and_a_restart_does_not_reset_them(controller: Controller) -> None:
    assert controller.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    await controller.update_features({"transaction.version": 1})
    await restart(controller)
    assert controller.image.features["transaction.version"] == 1


async def test_after_an_unclean_stop_every_partition_gets_a_new_leader_epoch(controller: Controller) -> None:
    await create(controller)
    await restart(controller)
    assert controller.image.topics["t"].partitions[0].leader_epoch == 0
    await restart(controller, was_clean=False)
    partition = controller.image.topics["t"].partitions[0]
    assert (partition.leader_id, partition.isr, partition.elr) == (1, (1,), ())
    assert partition.leader_epoch > 0


async def test_a_registering_broker_leads_what_waits_for_it(controller: Controller, quorum: MetadataQuorum) -> None:
    created = await create(controller, partition_count=1)
    await quorum.append([PartitionChangeRecord(partition_id=0, topic_id=created.topic_id, leader=-1)])
    await restart(controller)
    assert controller.image.topics["t"].partitions[0].leader_id == 1


@pytest.mark.parametrize(
    "advertised,expected",
    [
        (None, (socket.gethostname(), 50123)),
        ((Listener("PLAINTEXT", "kafka.example", 0),), ("kafka.example", 50123)),
        ((Listener("PLAINTEXT", "kafka.example", 443),), ("kafka.example", 443)),
    ],
)
def test_the_advertised_address_goes_before_the_bound_one(
    advertised: tuple[Listener, ...] | None, expected: tuple[str, int]
) -> None:
    settings = BrokerSettings(advertised_listeners=advertised)
    (endpoint,) = AdvertisedEndpoints.of([Listener("PLAINTEXT", "", 50123)], settings).endpoints
    assert (endpoint.host, endpoint.port) == expected


# -- creating topics ---------------------------------------------------------------------------------------------------


async def test_a_topic_gets_the_brokers_defaults(controller: Controller) -> None:
    created = await create(controller)
    assert (created.partition_count, created.replication_factor) == (2, 1)
    partition = controller.image.topics["t"].partitions[1]
    assert (partition.replicas, partition.isr, partition.leader_id, partition.leader_epoch) == ((1,), (1,), 1, 0)
    assert controller.image.topics_by_id[created.topic_id].name == "t"


async def test_a_topic_gets_the_configs_it_was_created_with(controller: Controller) -> None:
    await create(controller, configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    settings = topic_settings(controller.image, "t", BrokerSettings())
    assert (settings.retention_ms, settings.cleanup_policy) == (1000, frozenset({"compact", "delete"}))


@pytest.mark.parametrize(
    "topic,code,named",
    [
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
        ({"name": ".."}, ErrorCode.INVALID_TOPIC_EXCEPTION, ".."),
        ({"name": "a" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION, "249"),
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "a/b"),
        ({"name": "é"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "é"),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "metadata"),
        ({"partition_count": 0}, ErrorCode.INVALID_PARTITIONS, "0"),
        ({"partition_count": -2}, ErrorCode.INVALID_PARTITIONS, "-2"),
        ({"partition_count": 10_001}, ErrorCode.POLICY_VIOLATION, "10001"),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, "0"),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 broker(s)"),
        ({"assignments": {0: [1], 2: [1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "0, 1, 2"),
        ({"assignments": {0: []}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty"),
        ({"assignments": {0: [7]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 7"),
        ({"assignments": {0: [1, 1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        ({"assignments": {0: [1]}, "partition_count": 1}, ErrorCode.INVALID_REQUEST, "-1"),
        ({"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG, "retention.ms=soon"),
        ({"configs": {"no.such.key": "1"}}, ErrorCode.INVALID_CONFIG, "no.such.key"),
        ({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG, "retention.ms"),
    ],
)
async def test_a_bad_topic_is_refused_with_a_message_that_names_it(
    controller: Controller, topic: dict[str, object], code: ErrorCode, named: str
) -> None:
    error = await refusal(controller, **topic)
    assert error.code is code
    assert named in error.message
    assert controller.image.topics == {}


@pytest.mark.parametrize("name", ["a", ".a", "a" * 249, "Az09._-"])
async def test_every_legal_name_can_be_created(controller: Controller, name: str) -> None:
    assert (await create(controller, name=name)).name == name


async def test_an_existing_topic_is_not_created_again(controller: Controller) -> None:
    await create(controller)
    assert (await refusal(controller)).code is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_names_that_differ_only_in_dots_and_underscores_collide(controller: Controller) -> None:
    await create(controller, name="a.b_c")
    error = await refusal(controller, name="a_b.c")
    assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "a.b_c" in error.message


async def test_topics_of_one_request_collide_with_each_other(controller: Controller) -> None:
    first, second = await controller.create_topics([NewTopic(name="a.b"), NewTopic(name="a_b")])
    assert isinstance(first, CreatedTopic)
    assert isinstance(second, BrokerError)


async def test_one_bad_topic_does_not_stop_the_good_ones(controller: Controller) -> None:
    bad, good = await controller.create_topics([NewTopic(name="a/b"), NewTopic(name="b")])
    assert isinstance(bad, BrokerError)
    assert isinstance(good, CreatedTopic)
    assert list(controller.image.topics) == ["b"]


async def test_validation_only_creates_nothing(controller: Controller) -> None:
    (result,) = await controller.create_topics([NewTopic(name="t")], validate_only=True)
    assert isinstance(result, CreatedTopic)
    assert controller.image.topics == {}


async def test_two_clients_that_create_the_same_topic_at_once_get_one_topic(controller: Controller) -> None:
    results = await asyncio.gather(*(controller.create_topics([NewTopic(name="t")]) for _ in range(5)))
    assert sum(isinstance(result, CreatedTopic) for (result,) in results) == 1


async def test_a_cancelled_creation_is_not_repeated_by_the_next(controller: Controller) -> None:
    task = asyncio.ensure_future(create(controller))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    results = await controller.create_topics([NewTopic(name="t")])
    assert isinstance(results[0], BrokerError) or len(controller.image.topics) == 1
    assert len(controller.image.topics_by_id) == 1


async def test_a_manual_assignment_is_followed(controller: Controller) -> None:
    created = await create(controller, assignments={1: [1], 0: [1], 2: [1]})
    assert created.partition_count == 3


# -- internal topics ---------------------------------------------------------------------------------------------------


async def create_internal(controller: Controller, name: str) -> TopicImage:
    topic = internal_topic(name, BrokerSettings(), broker_count=len(controller.image.live_brokers()))
    await controller.create_topics([topic])
    return controller.image.topics[name]


async def test_the_offsets_topic_is_compacted_and_as_replicated_as_the_cluster_allows(controller: Controller) -> None:
    topic = await create_internal(controller, OFFSETS_TOPIC)
    settings = topic_settings(controller.image, OFFSETS_TOPIC, BrokerSettings())
    assert (len(topic.partitions), topic.partitions[0].replicas) == (50, (1,))
    assert (settings.cleanup_policy, settings.segment_bytes) == (frozenset({"compact"}), 100 * 1024 * 1024)


async def test_the_transactions_topic_never_needs_more_replicas_than_it_has(controller: Controller) -> None:
    await create_internal(controller, TRANSACTIONS_TOPIC)
    assert topic_settings(controller.image, TRANSACTIONS_TOPIC, BrokerSettings()).min_insync_replicas == 1


async def test_an_internal_topic_cannot_grow(controller: Controller) -> None:
    await create_internal(controller, OFFSETS_TOPIC)
    (outcome,) = await controller.create_partitions([MorePartitions(name=OFFSETS_TOPIC, count=60)])
    assert outcome is not None
    assert outcome.code is ErrorCode.INVALID_PARTITIONS


# -- deleting and growing ----------------------------------------------------------------------------------------------


async def test_a_deleted_topic_is_gone_and_its_name_free(controller: Controller) -> None:
    created = await create(controller, configs={"retention.ms": "1"})
    assert await controller.delete_topics([created.topic_id]) == [None]
    assert (controller.image.topics, controller.image.configs) == ({}, CONFIGS_OF_A_NEW_CLUSTER)
    assert (await create(controller)).topic_id != created.topic_id


async def test_deleting_an_unknown_id_is_refused(controller: Controller) -> None:
    (outcome,) = await controller.delete_topics([b"x" * 16])
    assert outcome is not None
    assert outcome.code is ErrorCode.UNKNOWN_TOPIC_ID


async def test_topics_stay_when_deletion_is_disabled(quorum: MetadataQuorum, controller: Controller) -> None:
    created = await create(controller)
    strict = Controller(quorum, BrokerSettings(delete_topic_enable=False), quorum._clock)
    (outcome,) = await strict.delete_topics([created.topic_id])
    assert outcome is not None
    assert outcome.code is ErrorCode.TOPIC_DELETION_DISABLED
    assert "t" in controller.image.topics


async def test_a_topic_grows_to_the_new_count(controller: Controller) -> None:
    await create(controller)
    assert await controller.create_partitions([MorePartitions(name="t", count=5)]) == [None]
    assert sorted(controller.image.topics["t"].partitions) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "growth,code",
    [
        (MorePartitions(name="t", count=1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(name="t", count=2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(name="t", count=20_000), ErrorCode.POLICY_VIOLATION),
        (MorePartitions(name="other", count=5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions(name="t", count=4, assignments=[[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(name="t", count=3, assignments=[[2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_a_growth_that_makes_no_sense_is_refused(
    controller: Controller, growth: MorePartitions, code: ErrorCode
) -> None:
    await create(controller)
    (outcome,) = await controller.create_partitions([growth])
    assert outcome is not None
    assert outcome.code is code
    assert len(controller.image.topics["t"].partitions) == 2


# -- configs -----------------------------------------------------------------------------------------------------------


async def test_an_increment_changes_one_key_and_leaves_the_others(controller: Controller) -> None:
    await create(controller, configs={"retention.ms": "1", "segment.ms": "2"})
    assert await alter(controller, TOPIC, retention_ms=(SET, "9")) is None
    assert controller.image.config_of(*TOPIC) == {"retention.ms": "9", "segment.ms": "2"}
    assert await alter(controller, TOPIC, segment_ms=(ConfigOperation.DELETE, None)) is None
    assert controller.image.config_of(*TOPIC) == {"retention.ms": "9"}


async def test_a_replacement_drops_the_keys_it_does_not_name(controller: Controller) -> None:
    await create(controller, configs={"retention.ms": "1", "segment.ms": "2"})
    assert await controller.replace_configs([(TOPIC, {"retention.ms": "9"})]) == [None]
    assert controller.image.config_of(*TOPIC) == {"retention.ms": "9"}


async def test_lists_are_appended_to_and_subtracted_from_starting_at_their_default(controller: Controller) -> None:
    await create(controller)
    assert await alter(controller, TOPIC, cleanup_policy=(ConfigOperation.APPEND, "compact,delete")) is None
    assert controller.image.config_of(*TOPIC) == {"cleanup.policy": "delete,compact"}
    assert await alter(controller, TOPIC, cleanup_policy=(ConfigOperation.SUBTRACT, "delete")) is None
    assert controller.image.config_of(*TOPIC) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    "resource,change,code,named",
    [
        (TOPIC, ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "retention.ms=x"),
        (TOPIC, ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "retention.ms"),
        (TOPIC, ("retention.ms", ConfigOperation.APPEND, "1"), ErrorCode.INVALID_CONFIG, "not a list"),
        (TOPIC, ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "operation 9"),
        (TOPIC, ("no.such", SET, "1"), ErrorCode.INVALID_CONFIG, "no.such"),
        ((2, "other"), ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "other"),
        ((2, "a/b"), ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, "a/b"),
        ((4, "1"), ("log.dirs", SET, "/x"), ErrorCode.INVALID_REQUEST, "log.dirs"),
        ((4, "1"), ("no.such", SET, "/x"), ErrorCode.INVALID_REQUEST, "no.such"),
        ((4, "7"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "7"),
        ((4, "x"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "x"),
        ((4, ""), ("log.cleaner.max.compaction.lag.ms", SET, "0"), ErrorCode.INVALID_REQUEST, "at least 1"),
        ((8, "1"), ("root", SET, "DEBUG"), ErrorCode.INVALID_REQUEST, "logging.level"),
        ((16, "m"), ("metrics", SET, "*"), ErrorCode.INVALID_REQUEST, "16"),
        ((32, ""), ("consumer.session.timeout.ms", SET, "45000"), ErrorCode.INVALID_REQUEST, "empty"),
        ((32, "g"), ("consumer.session.timeout.ms", SET, "1"), ErrorCode.INVALID_CONFIG, "between 45000 and 60000"),
    ],
)
async def test_a_bad_config_is_refused_with_a_message_that_names_it(
    controller: Controller,
    resource: tuple[int, str],
    change: tuple[str, int, str | None],
    code: ErrorCode,
    named: str,
) -> None:
    await create(controller)
    key, operation, value = change
    (outcome,) = await controller.alter_configs([(resource, [ConfigChange(key=key, operation=operation, value=value)])])
    assert outcome is not None
    assert outcome.code is code
    assert named in outcome.message
    assert controller.image.configs == CONFIGS_OF_A_NEW_CLUSTER


async def test_a_key_that_is_changed_twice_in_one_request_is_refused(controller: Controller) -> None:
    await create(controller)
    changes = [ConfigChange(key="retention.ms", value="1"), ConfigChange(key="retention.ms", value="2")]
    (outcome,) = await controller.alter_configs([(TOPIC, changes)])
    assert outcome is not None
    assert "retention.ms" in outcome.message


async def test_validation_only_changes_no_config(controller: Controller) -> None:
    await create(controller)
    changes = [ConfigChange(key="retention.ms", value="1")]
    assert await controller.alter_configs([(TOPIC, changes)], validate_only=True) == [None]
    assert await controller.replace_configs([(TOPIC, {"retention.ms": "1"})], validate_only=True) == [None]
    assert controller.image.configs == CONFIGS_OF_A_NEW_CLUSTER


async def test_a_brokers_own_value_goes_before_that_of_all_brokers(controller: Controller) -> None:
    assert await alter(controller, (4, ""), log_retention_ms=(SET, "10")) is None
    await create(controller)
    assert topic_settings(controller.image, "t", BrokerSettings()).retention_ms == 10
    assert await alter(controller, (4, "1"), log_retention_ms=(SET, "20")) is None
    assert broker_settings(controller.image, BrokerSettings()).log_retention_ms == 20
    assert topic_settings(controller.image, "t", BrokerSettings()).retention_ms == 20


async def test_a_changed_default_is_used_for_the_next_topic(controller: Controller) -> None:
    assert await alter(controller, (4, ""), num_partitions=(SET, "7")) is None
    assert (await create(controller)).partition_count == 7


async def test_a_group_has_time_outs_of_its_own(controller: Controller) -> None:
    assert await alter(controller, (32, "g"), consumer_session_timeout_ms=(SET, "50000")) is None
    assert controller.image.config_of(ResourceType.GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert controller.image.config_of(ResourceType.GROUP, "h") == {}


# -- producer ids and features -----------------------------------------------------------------------------------------


async def test_no_producer_id_is_ever_handed_out_twice(controller: Controller, quorum: MetadataQuorum) -> None:
    blocks = await asyncio.gather(*(controller.allocate_producer_ids(1000) for _ in range(5)))
    assert sorted(block.start for block in blocks) == [0, 1000, 2000, 3000, 4000]
    assert quorum.image.next_producer_id == 5000


async def test_an_unclean_start_skips_a_block_of_producer_ids(controller: Controller) -> None:
    await controller.allocate_producer_ids(1000)
    await restart(controller, was_clean=False)
    assert await controller.allocate_producer_ids(1000) == range(2000, 3000)


@pytest.mark.parametrize("name,level", [("transaction.version", 3), ("metadata.version", 1), ("no.such.feature", 1)])
async def test_a_level_that_is_not_supported_is_refused(controller: Controller, name: str, level: int) -> None:
    with pytest.raises(BrokerError, match=name) as refused:
        await controller.update_features({name: level})
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
