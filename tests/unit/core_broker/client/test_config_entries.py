from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigSource

from core_broker.client.config_entries import changes_of, read_configs
from core_broker.client.models import Synonym


def entry(name: str, value: str | None, source: ConfigSource, *synonyms: ConfigEntry) -> ConfigEntry:
    return ConfigEntry(name, value, source=source, synonyms={item.name: item for item in synonyms})


def test_configs_are_read_by_key() -> None:
    entries = {key: entry(key, "1", ConfigSource.DEFAULT_CONFIG) for key in ("b", "a")}
    assert [config.key for config in read_configs(entries)] == ["a", "b"]


def test_place_that_counts_is_told_even_where_the_library_has_lost_it() -> None:
    default = entry("compression.type", "producer", ConfigSource.DEFAULT_CONFIG)
    (config,) = read_configs(
        {"compression.type": entry("compression.type", "gzip", ConfigSource.DYNAMIC_TOPIC_CONFIG, default)}
    )
    assert config.source == "DYNAMIC_TOPIC_CONFIG"
    assert config.synonyms == (
        Synonym(key="compression.type", value="gzip", source="DYNAMIC_TOPIC_CONFIG"),
        Synonym(key="compression.type", value="producer", source="DEFAULT_CONFIG"),
    )


def test_places_that_the_library_tells_are_not_told_twice() -> None:
    own = entry("cleanup.policy", "compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    default = entry("log.cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG)
    (config,) = read_configs(
        {"cleanup.policy": entry("cleanup.policy", "compact", ConfigSource.DYNAMIC_TOPIC_CONFIG, own, default)}
    )
    assert [item.key for item in config.synonyms] == ["cleanup.policy", "log.cleanup.policy"]


def test_source_without_a_name_is_unknown() -> None:
    (config,) = read_configs({"a": entry("a", None, ConfigSource.UNKNOWN_CONFIG)})
    assert config.source == "UNKNOWN"


def test_changes_say_what_is_set_and_what_returns() -> None:
    found = [(item.name, item.value, item.incremental_operation) for item in changes_of({"a": "1"}, ["b"])]
    assert found == [("a", "1", AlterConfigOpType.SET), ("b", "", AlterConfigOpType.DELETE)]
