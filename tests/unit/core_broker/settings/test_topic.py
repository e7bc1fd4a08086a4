import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings, TopicSettings


def refusal(overrides: dict[str, str]) -> str:
    with pytest.raises(BrokerError) as caught:
        TopicSettings.resolve(overrides, BrokerSettings())
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_topic_on_a_default_broker_has_kafkas_defaults() -> None:
    assert TopicSettings.resolve({}, BrokerSettings()) == TopicSettings()
    assert TopicSettings().retention_ms == 604_800_000
    assert TopicSettings().flush_messages == LONG_MAX


def test_override_goes_before_the_broker() -> None:
    broker = BrokerSettings(log_segment_bytes=5_000_000)
    assert TopicSettings.resolve({}, broker).segment_bytes == 5_000_000
    assert TopicSettings.resolve({"segment.bytes": "2000000"}, broker).segment_bytes == 2_000_000


def test_broker_time_is_taken_from_the_finest_unit_that_is_set() -> None:
    assert TopicSettings.resolve({}, BrokerSettings(log_retention_hours=2)).retention_ms == 7_200_000
    minutes = BrokerSettings(log_retention_hours=2, log_retention_minutes=3)
    assert TopicSettings.resolve({}, minutes).retention_ms == 180_000
    milliseconds = BrokerSettings(log_retention_hours=2, log_retention_minutes=3, log_retention_ms=5)
    assert TopicSettings.resolve({}, milliseconds).retention_ms == 5


def test_minus_one_hour_means_for_ever_not_minus_an_hour() -> None:
    assert TopicSettings.resolve({}, BrokerSettings(log_retention_hours=-1)).retention_ms == -1


@pytest.mark.parametrize(
    "text,policies",
    [("compact", {"compact"}), ("compact,delete", {"compact", "delete"}), (" delete ", {"delete"}), ("", set())],
    ids=["compact", "both", "spaces", "empty"],
)
def test_cleanup_policy_is_a_set(text: str, policies: set[str]) -> None:
    assert TopicSettings.resolve({"cleanup.policy": text}, BrokerSettings()).cleanup_policy == policies


@pytest.mark.parametrize(
    "key,value,allowed",
    [
        ("segment.bytes", "1000", "at least 1048576"),
        ("retention.ms", "-2", "at least -1"),
        ("cleanup.policy", "shred", "compact, delete"),
        ("min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
        ("message.timestamp.type", "Now", "one of CreateTime, LogAppendTime"),
        ("compression.type", "rar", "one of uncompressed"),
        ("preallocate", "1", "true or false"),
        ("remote.storage.enable", "true", "tiered storage is not supported"),
        ("segment.byte", "1", "did you mean segment.bytes"),
        ("min.compaction.lag.ms", str(LONG_MAX + 1), "between"),
    ],
)
def test_refusal_names_key_value_and_what_is_allowed(key: str, value: str, allowed: str) -> None:
    message = refusal({key: value})
    assert message.startswith(f"{key}={value}: ")
    assert allowed in message


def test_minimum_lag_above_maximum_lag_is_refused() -> None:
    assert "at most max.compaction.lag.ms=5" in refusal({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})


def test_internal_segment_bytes_allows_tiny_segments_for_tests() -> None:
    assert TopicSettings.resolve({"internal.segment.bytes": "500"}, BrokerSettings()).segment_bytes == 500


@pytest.mark.parametrize("package", ["", "io.confluent.kafka.serializers.subject."])
@pytest.mark.parametrize("name", ["TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"])
def test_subject_strategies_go_by_their_java_class_or_its_last_word(package: str, name: str) -> None:
    settings = TopicSettings.resolve({"confluent.value.subject.name.strategy": package + name}, BrokerSettings())
    assert settings.confluent_value_subject_name_strategy == name
    text = settings.text_of("confluent.value.subject.name.strategy")
    assert text == f"io.confluent.kafka.serializers.subject.{name}"


def test_an_unknown_subject_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BrokerError, match="TopicNameStrategy.*RecordNameStrategy.*TopicRecordNameStrategy") as refusal:
        TopicSettings.resolve({"confluent.key.subject.name.strategy": "org.example.Mine"}, BrokerSettings())
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("side", ["key", "value"])
def test_guarding_a_topic_needs_a_registry(side: str) -> None:
    overrides = {f"confluent.{side}.schema.validation": "true"}
    with pytest.raises(BrokerError, match=r"confluent\.schema\.registry\.url") as refusal:
        TopicSettings.resolve_change(overrides, BrokerSettings())
    assert refusal.value.code is ErrorCode.INVALID_CONFIG
    broker = BrokerSettings(confluent_schema_registry_url=("http://localhost:8081",))
    assert TopicSettings.resolve_change(overrides, broker).is_guarded
    assert not TopicSettings.resolve_change({}, BrokerSettings()).is_guarded
