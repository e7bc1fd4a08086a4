import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import PASSWORD, Kind, Settings, optional, setting
from core_broker.settings import (
    BrokerConfig,
    BrokerSettings,
    ConfigSource,
    DescribedSetting,
    GroupSettings,
    TopicSettings,
    describe_topic,
)
from core_broker.settings.without_effect import SECURITY_WITHOUT_EFFECT, WITHOUT_EFFECT


def topic_key(key: str, overrides: dict[str, str], broker: BrokerConfig) -> DescribedSetting:
    return next(described for described in describe_topic(overrides, broker) if described.key == key)


def broker_key(key: str, broker: BrokerConfig) -> DescribedSetting:
    return next(described for described in broker.describe() if described.key == key)


def test_untouched_topic_key_shows_the_default_under_the_brokers_name() -> None:
    described = topic_key("segment.bytes", {}, BrokerConfig(BrokerSettings()))
    assert (described.value, described.source) == ("1073741824", ConfigSource.DEFAULT_CONFIG)
    assert described.is_default
    assert [synonym.key for synonym in described.synonyms] == ["log.segment.bytes"]


def test_synonyms_come_in_order_of_precedence() -> None:
    broker = BrokerConfig(
        BrokerSettings(log_segment_bytes=2_000_000), {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"}
    )
    described = topic_key("segment.bytes", {"segment.bytes": "5000000"}, broker)
    assert [(synonym.value, synonym.source) for synonym in described.synonyms] == [
        ("5000000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ("4000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("3000000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("2000000", ConfigSource.STATIC_BROKER_CONFIG),
        ("1073741824", ConfigSource.DEFAULT_CONFIG),
    ]


def test_topic_value_is_told_in_the_topics_unit() -> None:
    described = topic_key("retention.ms", {}, BrokerConfig(BrokerSettings(log_retention_hours=1)))
    assert described.value == "3600000"


def test_synonyms_in_another_unit_are_not_told_before_the_one_in_the_topics_unit() -> None:
    described = topic_key("retention.ms", {}, BrokerConfig(BrokerSettings(log_retention_hours=1)))
    assert described.synonyms == ()
    assert described.source is ConfigSource.DEFAULT_CONFIG


def test_synonyms_are_told_in_their_own_unit() -> None:
    broker = BrokerConfig(BrokerSettings(log_retention_minutes=5), {"log.retention.ms": "17"})
    described = topic_key("retention.ms", {}, broker)
    assert [(synonym.key, synonym.value, synonym.source) for synonym in described.synonyms] == [
        ("log.retention.ms", "17", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.minutes", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]


def test_topic_key_unknown_to_brokers_has_no_synonyms() -> None:
    broker = BrokerConfig(BrokerSettings())
    unknown = [d for d in describe_topic({}, broker) if not d.definition.synonyms]
    assert unknown
    assert all(described.synonyms == () and described.is_default for described in unknown)


def test_broker_key_without_a_value_has_no_synonyms() -> None:
    described = broker_key("log.retention.ms", BrokerConfig(BrokerSettings()))
    assert (described.value, described.synonyms) == (None, ())


def test_described_value_is_always_the_one_in_force() -> None:
    broker = BrokerConfig(BrokerSettings(log_retention_minutes=5, log_roll_hours=3), {"log.retention.ms": "17"})
    assert topic_key("retention.ms", {}, broker).value == "17"
    assert broker.effective.log_retention_ms == 17
    assert broker.effective.log_roll_hours == 3


def test_broker_key_knows_type_mutability_and_help() -> None:
    described = broker_key("node.id", BrokerConfig(BrokerSettings(node_id=4)))
    assert (described.value, described.type_code, described.is_read_only) == ("4", 3, True)
    assert described.documentation == "Number of this node, unique in the cluster."
    assert not broker_key("log.segment.bytes", BrokerConfig(BrokerSettings())).is_read_only


def test_internal_keys_are_not_told() -> None:
    keys = {described.key for described in describe_topic({}, BrokerConfig(BrokerSettings()))}
    assert "internal.segment.bytes" not in keys
    assert "segment.bytes" in keys


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("node.id", "3", "cannot be changed while the broker runs"),
        ("nonsense", "3", "unknown setting"),
        ("log.segment.bytes", "3", "at least 1048576"),
    ],
)
def test_change_of_a_running_broker_is_refused_with_a_reason(key: str, value: str, reason: str) -> None:
    with pytest.raises(BrokerError, match=reason) as caught:
        BrokerConfig.check_dynamic(key, value)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    BrokerConfig.check_dynamic("log.segment.bytes", "3000000")


# -- secrets -----------------------------------------------------------------------------------------------------------

_SETTINGS = (BrokerSettings, TopicSettings, GroupSettings)
_PASSWORDS = sorted(
    {d.key for settings in _SETTINGS for d in settings.DEFINITIONS.values() if d.kind.wire == PASSWORD.wire}
    | {key for key, d in {**WITHOUT_EFFECT, **SECURITY_WITHOUT_EFFECT}.items() if d.kind.wire == PASSWORD.wire}
    | {
        "listener.name.external.ssl.keystore.password",
        "listener.name.external.sasl.jaas.config",
        "listener.name.external.scram-sha-256.sasl.jaas.config",
    }
)


def test_there_are_passwords_among_the_settings() -> None:
    assert len(_PASSWORDS) >= 7


@pytest.mark.parametrize("key", _PASSWORDS)
def test_password_is_sensitive_wherever_it_is_set_and_never_shown(key: str) -> None:
    definition = BrokerConfig.definition(key)
    assert definition is not None
    assert definition.is_sensitive
    static = BrokerSettings.parse({key: "user:SECRET"} if key in BrokerSettings.DEFINITIONS else {})
    broker = BrokerConfig(static, cluster_wide={key: "user:SECRET"}, own={key: "user:SECRET"})
    for described in (*broker.describe(), *broker.describe_cluster_wide(), *describe_topic({}, broker)):
        assert "SECRET" not in str(described.value)
        assert "SECRET" not in str([synonym.value for synonym in described.synonyms])
    shown = broker_key(key, broker)
    assert (shown.value, shown.is_sensitive) == (None, True)
    assert "SECRET" not in repr(static)


@pytest.mark.parametrize("kind", [PASSWORD, optional(PASSWORD)])
def test_every_setting_of_the_kind_password_is_sensitive(kind: Kind[str | None]) -> None:
    class Made(Settings):
        some_key: str | None = setting(kind, default=None)

    assert Made.DEFINITIONS["some.key"].is_sensitive


def test_keys_that_the_broker_does_not_know_are_not_described_at_all() -> None:
    """A controller of another version may have stored them; what they hold is unknown."""
    broker = BrokerConfig(BrokerSettings(), cluster_wide={"plugin.secret": "SECRET"}, own={"plugin.secret": "SECRET"})
    found = (*broker.describe(), *broker.describe_cluster_wide(), *describe_topic({"plugin.secret": "SECRET"}, broker))
    assert "plugin.secret" not in [described.key for described in found]
