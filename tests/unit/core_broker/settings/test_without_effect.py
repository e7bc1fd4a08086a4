"""Kafka's dynamic broker settings, all of them: known, checked by type, refused where Kafka refuses them."""

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.settings import BrokerConfig, BrokerSettings, ConfigSource

ALL_DYNAMIC_CONFIGS = """
background.threads int any
compression.gzip.level int any
compression.lz4.level int any
compression.type string any
compression.zstd.level int any
config.providers list any
cordoned.log.dirs list broker
follower.fetch.last.tiered.offset.enable boolean any
follower.replication.throttled.rate long any
group.consumer.assignment.interval.ms int any
group.coordinator.cached.buffer.max.bytes int any
group.share.assignment.interval.ms int any
group.streams.assignment.interval.ms int any
leader.replication.throttled.rate long any
listener.security.protocol.map string broker
listeners list broker
log.cleaner.backoff.ms long any
log.cleaner.dedupe.buffer.size long any
log.cleaner.delete.retention.ms long any
log.cleaner.io.buffer.load.factor double any
log.cleaner.io.buffer.size int any
log.cleaner.io.max.bytes.per.second double any
log.cleaner.max.compaction.lag.ms long any
log.cleaner.min.cleanable.ratio double any
log.cleaner.min.compaction.lag.ms long any
log.cleaner.threads int any
log.cleanup.policy list any
log.flush.interval.messages long any
log.flush.interval.ms long any
log.index.interval.bytes int any
log.index.size.max.bytes int any
log.local.retention.bytes long any
log.local.retention.ms long any
log.message.timestamp.after.max.ms long any
log.message.timestamp.before.max.ms long any
log.message.timestamp.type string any
log.preallocate boolean any
log.retention.bytes long any
log.retention.ms long any
log.roll.jitter.ms long any
log.roll.ms long any
log.segment.bytes int any
log.segment.delete.delay.ms long any
max.connection.creation.rate int any
max.connections int any
max.connections.per.ip int any
max.connections.per.ip.overrides string any
message.max.bytes int any
metric.reporters list any
min.insync.replicas int any
num.io.threads int any
num.network.threads int any
num.recovery.threads.per.data.dir int any
num.replica.fetchers int any
principal.builder.class class broker
producer.id.expiration.ms int any
remote.fetch.max.wait.ms int any
remote.list.offsets.request.timeout.ms long any
remote.log.index.file.cache.total.size.bytes long any
remote.log.manager.copier.thread.pool.size int any
remote.log.manager.copy.max.bytes.per.second long any
remote.log.manager.expiration.thread.pool.size int any
remote.log.manager.fetch.max.bytes.per.second long any
remote.log.manager.follower.thread.pool.size int any
remote.log.reader.threads int any
replica.alter.log.dirs.io.max.bytes.per.second long any
sasl.enabled.mechanisms list broker
sasl.jaas.config password broker
sasl.kerberos.kinit.cmd string broker
sasl.kerberos.min.time.before.relogin long broker
sasl.kerberos.principal.to.local.rules list broker
sasl.kerberos.service.name string broker
sasl.kerberos.ticket.renew.jitter double broker
sasl.kerberos.ticket.renew.window.factor double broker
sasl.login.refresh.buffer.seconds short broker
sasl.login.refresh.min.period.seconds short broker
sasl.login.refresh.window.factor double broker
sasl.login.refresh.window.jitter double broker
sasl.mechanism.inter.broker.protocol string broker
share.coordinator.cached.buffer.max.bytes int any
ssl.cipher.suites list broker
ssl.client.auth string broker
ssl.enabled.protocols list broker
ssl.endpoint.identification.algorithm string broker
ssl.engine.factory.class class broker
ssl.key.password password listener
ssl.keymanager.algorithm string broker
ssl.keystore.certificate.chain password listener
ssl.keystore.key password listener
ssl.keystore.location string listener
ssl.keystore.password password listener
ssl.keystore.type string listener
ssl.protocol string broker
ssl.provider string broker
ssl.secure.random.implementation string broker
ssl.trustmanager.algorithm string broker
ssl.truststore.certificates password listener
ssl.truststore.location string listener
ssl.truststore.password password listener
ssl.truststore.type string listener
transaction.partition.verification.enable boolean any
unclean.leader.election.enable boolean any
"""
"""What Kafka 4.3 lists as dynamic, with its type and whom it may be changed for."""
DYNAMIC = [tuple(line.split()) for line in ALL_DYNAMIC_CONFIGS.strip().splitlines()]
FIXED = {"listeners", "listener.security.protocol.map"}
"""Those that have an effect here, but only at the start."""
EXAMPLES = {"boolean": "true", "class": "com.example.Some", "double": "0.25", "list": "a", "string": "text"}
SPECIAL = {
    "compression.type": "zstd",
    "log.cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "log.segment.bytes": "2000000",
    "max.connections.per.ip.overrides": "10.0.0.7:3",
    "ssl.client.auth": "required",
    "ssl.enabled.protocols": "TLSv1.3",
    "ssl.endpoint.identification.algorithm": "https",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "group.coordinator.cached.buffer.max.bytes": "600000",
    "share.coordinator.cached.buffer.max.bytes": "600000",
}


def example(key: str, kind: str) -> str:
    return SPECIAL.get(key) or EXAMPLES.get(kind, "9")


def refusal(key: str, value: str, *, cluster_wide: bool = False) -> str:
    with pytest.raises(BrokerError) as caught:
        BrokerConfig.check_dynamic(key, value, cluster_wide=cluster_wide)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    return caught.value.message


def test_the_list_is_whole() -> None:
    assert len(DYNAMIC) == 102


@pytest.mark.parametrize("key,kind,scope", [row for row in DYNAMIC if row[0] not in FIXED])
def test_every_dynamic_setting_of_kafka_can_be_changed_for_whom_kafka_allows_it(
    key: str, kind: str, scope: str
) -> None:
    value = example(key, kind)
    BrokerConfig.check_dynamic(key if scope == "any" or scope == "broker" else f"listener.name.external.{key}", value)
    if scope == "any":
        BrokerConfig.check_dynamic(key, value, cluster_wide=True)
    elif scope == "broker":
        assert "for one broker only" in refusal(key, value, cluster_wide=True)
    else:
        assert f"as listener.name.<name>.{key}" in refusal(key, value)


@pytest.mark.parametrize("key", sorted(FIXED))
def test_listeners_are_known_and_cannot_be_changed_while_the_broker_runs(key: str) -> None:
    assert "cannot be changed while the broker runs" in refusal(key, "PLAINTEXT://:9092")


@pytest.mark.parametrize(
    "key", [key for key, kind, _ in DYNAMIC if kind in {"boolean", "double", "int", "long", "short"}]
)
def test_a_value_of_the_wrong_type_is_refused(key: str) -> None:
    assert "must be" in refusal(key, "nonsense")


def test_the_settings_of_a_mechanism_are_known_for_a_listener() -> None:
    BrokerConfig.check_dynamic("listener.name.external.plain.sasl.jaas.config", "some login module;")
    BrokerConfig.check_dynamic("listener.name.external.connections.max.reauth.ms", "7")
    assert "whole number" in refusal("listener.name.external.plain.connections.max.reauth.ms", "soon")


def test_limits_of_connections_are_known_for_a_listener_and_for_all_brokers() -> None:
    BrokerConfig.check_dynamic("listener.name.external.max.connections", "7", cluster_wide=True)
    assert "for one broker only" in refusal("listener.name.external.ssl.keystore.type", "PEM", cluster_wide=True)


@pytest.mark.parametrize("key", ["listener.name.external.nonsense", "listener.name.external.node.id", "nonsense"])
def test_an_unknown_setting_is_refused(key: str) -> None:
    assert "unknown setting" in refusal(key, "1")


def test_a_refusal_does_not_tell_a_password() -> None:
    assert "s3cret" not in refusal("ssl.keystore.password", "s3cret")


def test_a_setting_without_effect_is_shown_once_it_was_set_and_changes_nothing() -> None:
    key = "sasl.kerberos.min.time.before.relogin"
    untouched = BrokerConfig(BrokerSettings())
    changed = BrokerConfig(BrokerSettings(), {"num.io.threads": "4"}, {key: "70000", "num.io.threads": "5"})
    assert changed.effective == untouched.effective
    assert key not in {described.key for described in untouched.describe()}
    found = {described.key: described for described in changed.describe()}
    assert (found[key].value, found[key].source, found[key].type_code) == (
        "70000",
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        5,
    )
    assert "Without effect" in found[key].documentation
    assert [(place.value, place.source) for place in found["num.io.threads"].synonyms] == [
        ("5", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("4", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("8", ConfigSource.DEFAULT_CONFIG),
    ]
    (cluster_wide,) = changed.describe_cluster_wide()
    assert (cluster_wide.key, cluster_wide.value) == ("num.io.threads", "4")


def test_a_password_of_a_listener_is_never_shown() -> None:
    key = "listener.name.external.ssl.keystore.password"
    found = {described.key: described for described in BrokerConfig(BrokerSettings(), {}, {key: "s3cret"}).describe()}
    assert (found[key].value, found[key].is_sensitive) == (None, True)
    assert [place.value for place in found[key].synonyms] == [None]


def test_settings_without_effect_are_told_at_the_start_and_security_is_refused() -> None:
    assert BrokerSettings.ignored(["num.io.threads", "log.local.retention.ms"]).keys() == {
        "num.io.threads",
        "log.local.retention.ms",
    }
    assert BrokerSettings.ignored(["sasl.kerberos.min.time.before.relogin"]) == {}
