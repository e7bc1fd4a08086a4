"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources together: they show the same state."""

import pytest

from core_broker.cluster.metadata import ResourceType
from core_broker.errors import ErrorCode
from core_broker.protocol.messages import alter_configs, incremental_alter_configs
from core_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from core_broker.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support.handler_world import BROKEN_STORE, HandlerWorld

TOPIC = (ResourceType.TOPIC, "t")
THIS_BROKER = (ResourceType.BROKER, "1")
ALL_BROKERS = (ResourceType.BROKER, "")


async def describe(
    world: HandlerWorld, resource: tuple[int, str], *keys: str, version: int = 4, details: bool = True
) -> DescribeConfigsResult:
    wanted = DescribeConfigsResource(*resource, list(keys) or None)
    request = DescribeConfigsRequest([wanted], include_synonyms=details, include_documentation=details)
    (result,) = (await world.call(request, DescribeConfigsResponse, version)).results
    return result


async def described(
    world: HandlerWorld, resource: tuple[int, str], key: str, version: int = 4
) -> DescribeConfigsResourceResult:
    (config,) = (await describe(world, resource, key, version=version)).configs
    return config


async def change(
    world: HandlerWorld, resource: tuple[int, str], key: str, value: str | None, operation: int = 0
) -> int:
    wanted = incremental_alter_configs.AlterConfigsResource(
        *resource, [incremental_alter_configs.AlterableConfig(key, operation, value)]
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([wanted])
    response = await world.call(request, incremental_alter_configs.IncrementalAlterConfigsResponse, 1)
    return response.responses[0].error_code


# -- describing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 5))
async def test_every_version_describes_a_topic(world: HandlerWorld, version: int) -> None:
    await world.create("t", retention_ms="7")
    config = await described(world, TOPIC, "retention.ms", version)
    assert (config.value, config.config_source, config.read_only, config.is_sensitive) == ("7", 1, False, False)
    assert config.config_type == (5 if version >= 3 else 0)
    assert bool(config.documentation) == (version >= 3)


async def test_synonyms_tell_what_would_be_without_the_override(world: HandlerWorld) -> None:
    await world.create("t", retention_ms="7")
    assert await change(world, ALL_BROKERS, "log.retention.ms", "9") == 0
    config = await described(world, TOPIC, "retention.ms")
    assert [(s.name, s.value, s.source) for s in config.synonyms] == [
        ("retention.ms", "7", 1),
        ("log.retention.ms", "9", 3),
        ("log.retention.hours", "168", 5),
    ]


async def test_all_keys_of_a_topic_are_described_without_details_nobody_asked_for(world: HandlerWorld) -> None:
    await world.create("t")
    result = await describe(world, TOPIC, details=False)
    assert len(result.configs) > 25
    assert all(config.synonyms == [] and config.documentation is None for config in result.configs)


async def test_a_broker_describes_itself(world: HandlerWorld) -> None:
    config = await described(world, THIS_BROKER, "num.partitions")
    assert (config.value, config.config_source, config.config_type) == ("3", 4, 3)
    assert (await described(world, THIS_BROKER, "log.dirs")).read_only


async def test_the_empty_broker_name_describes_what_was_set_for_all(world: HandlerWorld) -> None:
    assert [config.name for config in (await describe(world, ALL_BROKERS)).configs] == ["min.insync.replicas"]
    assert await change(world, ALL_BROKERS, "num.partitions", "8") == 0
    (_, config) = (await describe(world, ALL_BROKERS)).configs
    assert (config.name, config.value, config.config_source) == ("num.partitions", "8", 3)
    assert (await described(world, THIS_BROKER, "num.partitions")).value == "8"


async def test_a_group_describes_its_time_outs(world: HandlerWorld) -> None:
    group = (ResourceType.GROUP, "g")
    assert (await described(world, group, "consumer.session.timeout.ms")).config_source == 5
    assert await change(world, group, "consumer.session.timeout.ms", "50000") == 0
    config = await described(world, group, "consumer.session.timeout.ms")
    assert (config.value, config.config_source) == ("50000", 8)


@pytest.mark.parametrize(
    "resource,code",
    [
        ((2, "no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((2, "a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((4, "2"), ErrorCode.INVALID_REQUEST),
        ((8, "1"), ErrorCode.INVALID_REQUEST),
        ((16, "m"), ErrorCode.INVALID_REQUEST),
        ((32, ""), ErrorCode.INVALID_REQUEST),
        ((99, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_cannot_be_described_is_refused_with_a_message(
    world: HandlerWorld, resource: tuple[int, str], code: ErrorCode
) -> None:
    result = await describe(world, resource)
    assert result.error_code == code
    assert result.error_message
    assert (result.resource_type, result.resource_name) == resource


async def test_a_type_of_resource_that_does_not_exist_fails_the_whole_request(world: HandlerWorld) -> None:
    denials = world.enforce()
    wanted = [DescribeConfigsResource(4, "1", None), DescribeConfigsResource(99, "x", None)]
    results = (await world.call(DescribeConfigsRequest(wanted), DescribeConfigsResponse, 4)).results
    assert [(result.resource_type, result.resource_name) for result in results] == [(4, "1"), (99, "x")]
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert not any(result.configs for result in results)
    assert denials == []


# -- altering ----------------------------------------------------------------------------------------------------------


async def test_a_change_reaches_the_log_of_the_topic(world: HandlerWorld) -> None:
    await world.create("t")
    assert await change(world, TOPIC, "retention.ms", "5") == 0
    assert world.partition("t").log.settings.retention_ms == 5
    assert await change(world, TOPIC, "retention.ms", None, operation=1) == 0
    assert world.partition("t").log.settings.retention_ms == 7 * 24 * 3_600_000


@pytest.mark.parametrize("version", [0, 1])
async def test_a_refused_change_names_key_value_and_what_is_allowed(world: HandlerWorld, version: int) -> None:
    await world.create("t")
    bad = incremental_alter_configs.AlterableConfig("min.cleanable.dirty.ratio", 0, "1.5")
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        [incremental_alter_configs.AlterConfigsResource(2, "t", [bad])]
    )
    response = await world.call(request, incremental_alter_configs.IncrementalAlterConfigsResponse, version)
    (result,) = response.responses
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message == "min.cleanable.dirty.ratio=1.5: must be between 0 and 1"


async def test_a_resource_that_is_changed_twice_is_left_alone(world: HandlerWorld) -> None:
    await world.create("t")
    one = incremental_alter_configs.AlterConfigsResource(
        2, "t", [incremental_alter_configs.AlterableConfig("retention.ms", 0, "1")]
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([one, one])
    response = await world.call(request, incremental_alter_configs.IncrementalAlterConfigsResponse, 1)
    assert [result.error_code for result in response.responses] == [ErrorCode.INVALID_REQUEST]
    assert world.quorum.image.config_of(2, "t") == {}


@pytest.mark.parametrize("version", range(3))
async def test_alter_configs_sets_exactly_what_it_names(world: HandlerWorld, version: int) -> None:
    await world.create("t", retention_ms="7", segment_ms="8")
    wanted = alter_configs.AlterConfigsResource(2, "t", [alter_configs.AlterableConfig("segment.ms", "9")])
    request = alter_configs.AlterConfigsRequest([wanted])
    (result,) = (await world.call(request, alter_configs.AlterConfigsResponse, version)).responses
    assert (result.error_code, result.error_message) == (0, None)
    assert world.quorum.image.config_of(2, "t") == {"segment.ms": "9"}


async def test_alter_configs_only_validates_when_told_so(world: HandlerWorld) -> None:
    await world.create("t")
    good = alter_configs.AlterConfigsResource(2, "t", [alter_configs.AlterableConfig("segment.ms", "9")])
    bad = alter_configs.AlterConfigsResource(4, "1", [alter_configs.AlterableConfig("node.id", "9")])
    request = alter_configs.AlterConfigsRequest([good, bad], validate_only=True)
    results = (await world.call(request, alter_configs.AlterConfigsResponse, 2)).responses
    assert [result.error_code for result in results] == [0, ErrorCode.INVALID_REQUEST]
    assert world.quorum.image.config_of(2, "t") == {}


@pytest.mark.parametrize(
    "key",
    [
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ],
)
async def test_the_throttle_of_a_reassignment_is_set_and_taken_back(world: HandlerWorld, key: str) -> None:
    config = await described(world, THIS_BROKER, key)
    assert (config.value, config.config_source, config.config_type, config.read_only) == (str(2**63 - 1), 5, 5, False)
    assert await change(world, ALL_BROKERS, key, "2000000") == 0
    assert await change(world, THIS_BROKER, key, "1000000") == 0
    config = await described(world, THIS_BROKER, key)
    assert [(s.value, s.source) for s in config.synonyms] == [("1000000", 2), ("2000000", 3), (str(2**63 - 1), 5)]
    assert await change(world, THIS_BROKER, key, "-1") == ErrorCode.INVALID_REQUEST
    assert await change(world, THIS_BROKER, key, "fast") == ErrorCode.INVALID_REQUEST
    assert await change(world, THIS_BROKER, key, None, operation=1) == 0
    assert (await described(world, THIS_BROKER, key)).value == "2000000"


async def test_throttled_replicas_of_a_topic_are_pairs_or_all(world: HandlerWorld) -> None:
    await world.create("t")
    key = "leader.replication.throttled.replicas"
    assert await change(world, TOPIC, key, "0:1,1:1") == 0
    assert await change(world, TOPIC, key, "2:1", operation=2) == 0
    assert (await described(world, TOPIC, key)).value == "0:1,1:1,2:1"
    assert await change(world, TOPIC, key, "*") == 0
    assert await change(world, TOPIC, key, "0") == ErrorCode.INVALID_CONFIG


async def test_a_setting_of_kafka_without_effect_is_kept_for_one_broker(world: HandlerWorld) -> None:
    key = "sasl.kerberos.min.time.before.relogin"
    assert await change(world, ALL_BROKERS, key, "70000") == ErrorCode.INVALID_REQUEST
    assert await change(world, THIS_BROKER, key, "soon") == ErrorCode.INVALID_REQUEST
    wanted = alter_configs.AlterConfigsResource(4, "1", [alter_configs.AlterableConfig(key, "70000")])
    response = await world.call(alter_configs.AlterConfigsRequest([wanted]), alter_configs.AlterConfigsResponse, 2)
    assert [result.error_code for result in response.responses] == [0]
    config = await described(world, THIS_BROKER, key)
    assert (config.value, config.config_source, config.config_type) == ("70000", 2, 5)
    assert await change(world, THIS_BROKER, "sasl.enabled.mechanisms", "PLAIN", operation=2) == 0
    assert (await described(world, THIS_BROKER, "sasl.enabled.mechanisms")).value == "GSSAPI,PLAIN"


async def test_the_cluster_wide_minimum_of_replicas_in_sync_counts_for_topics_without_their_own(
    world: HandlerWorld,
) -> None:
    await world.create("t")
    await world.create("own", min_insync_replicas="3")
    assert await change(world, ALL_BROKERS, "min.insync.replicas", "2") == 0
    await world.create("later")
    in_force = {name: world.partition(name).log.settings.min_insync_replicas for name in ("t", "own", "later")}
    assert in_force == {"t": 2, "own": 3, "later": 2}
    config = await described(world, TOPIC, "min.insync.replicas")
    assert (config.value, config.config_source) == ("2", 3)
    key = "min.insync.replicas"
    assert [(s.name, s.value, s.source) for s in config.synonyms] == [(key, "2", 3), (key, "1", 5)]
    config = await described(world, (ResourceType.TOPIC, "own"), key)
    assert [(s.value, s.source) for s in config.synonyms] == [("3", 1), ("2", 3), ("1", 5)]
    (config,) = (await describe(world, ALL_BROKERS)).configs
    assert (config.name, config.value, config.config_source) == (key, "2", 3)


async def test_while_elr_is_on_every_broker_has_the_same_minimum_of_replicas_in_sync(world: HandlerWorld) -> None:
    key = "min.insync.replicas"
    assert await change(world, THIS_BROKER, key, "2") == ErrorCode.INVALID_REQUEST
    assert await change(world, ALL_BROKERS, key, None, operation=1) == ErrorCode.INVALID_REQUEST
    assert await change(world, ALL_BROKERS, key, "2") == 0


# -- what a broker refuses before the controller sees it ---------------------------------------------------------------

STORE_KEY = "listener.name.external.ssl.keystore.location"


@pytest.mark.parametrize("validate_only", [False, True])
async def test_a_store_that_the_broker_cannot_use_is_refused_and_the_rest_is_changed(
    world: HandlerWorld, validate_only: bool
) -> None:
    wire = incremental_alter_configs
    broken = wire.AlterConfigsResource(*THIS_BROKER, [wire.AlterableConfig(STORE_KEY, 0, BROKEN_STORE)])
    good = wire.AlterConfigsResource(*ALL_BROKERS, [wire.AlterableConfig("num.partitions", 0, "8")])
    request = wire.IncrementalAlterConfigsRequest([broken, good], validate_only)
    response = await world.call(request, wire.IncrementalAlterConfigsResponse, 1)
    results = {item.resource_name: (item.error_code, item.error_message) for item in response.responses}
    assert results == {"1": (ErrorCode.INVALID_REQUEST, f"cannot read {BROKEN_STORE}"), "": (0, None)}
    assert world.quorum.image.config_of(*THIS_BROKER) == {}
    assert world.quorum.image.config_of(*ALL_BROKERS).get("num.partitions") == (None if validate_only else "8")


async def test_alter_configs_refuses_a_store_that_the_broker_cannot_use(world: HandlerWorld) -> None:
    wanted = alter_configs.AlterConfigsResource(*THIS_BROKER, [alter_configs.AlterableConfig(STORE_KEY, BROKEN_STORE)])
    response = await world.call(alter_configs.AlterConfigsRequest([wanted]), alter_configs.AlterConfigsResponse, 2)
    assert [item.error_code for item in response.responses] == [ErrorCode.INVALID_REQUEST]
    assert world.quorum.image.config_of(*THIS_BROKER) == {}
    assert await change(world, THIS_BROKER, STORE_KEY, "good.pem") == 0


async def test_only_a_broker_itself_takes_changes_of_its_configs(world: HandlerWorld) -> None:
    wire = incremental_alter_configs
    config = wire.AlterableConfig("log.cleaner.threads", 0, "2")
    request = wire.IncrementalAlterConfigsRequest([wire.AlterConfigsResource(ResourceType.BROKER, "2", [config])])
    (result,) = (await world.call(request, wire.IncrementalAlterConfigsResponse, 1)).responses
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Unexpected broker id, expected 1, but received 2"


async def test_a_client_without_the_right_does_not_learn_whether_a_store_can_be_used(world: HandlerWorld) -> None:
    denials = world.enforce()
    assert await change(world, THIS_BROKER, STORE_KEY, BROKEN_STORE) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert await change(world, THIS_BROKER, STORE_KEY, "good.pem") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(denials) == 2


# -- listing -----------------------------------------------------------------------------------------------------------


async def test_resources_are_listed_by_type(world: HandlerWorld) -> None:
    await world.create("t")
    await change(world, (32, "g"), "consumer.session.timeout.ms", "50000")

    async def listed(*kinds: int, version: int = 1) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(list(kinds))
        response = await world.call(request, ListConfigResourcesResponse, version)
        return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]

    assert await listed(2) == [(2, "t")]
    assert await listed(32, 4) == [(32, "g"), (4, "1")]
    assert await listed() == [(2, "t"), (4, "1"), (8, "1"), (32, "g")]
    assert await listed(version=0) == []


async def test_an_unknown_type_cannot_be_listed(world: HandlerWorld) -> None:
    response = await world.call(ListConfigResourcesRequest([77]), ListConfigResourcesResponse, 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
