"""Configs of topics, brokers and the whole cluster in API v3. The route limits the number of values in a body."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from core_broker.client.models import Config
from rest_proxy.models.v3.resources import Links, Resource, ResourceCollection


class ConfigSynonymData(BaseModel):
    """A source of a config."""

    name: str = Field(description="The name of the config in this source.", examples=["log.cleanup.policy"])
    value: str | None = Field(description="The value in this source; null for secrets.", examples=["delete"])
    source: str = Field(description="The source.", examples=["DEFAULT_CONFIG"])


class ConfigData(Resource):
    """One config, and where it comes from."""

    cluster_id: str = Field(description="The cluster.")
    name: str = Field(description="The name of the config.", examples=["cleanup.policy"])
    value: str | None = Field(description="The value; null for secrets, or if there is none.", examples=["compact"])
    is_read_only: bool = Field(description="Whether a change needs a restart.")
    is_sensitive: bool = Field(description="Whether it is a secret.")
    is_default: bool = Field(description="Whether it has its default.")
    source: str = Field(description="Where the value comes from.", examples=["DYNAMIC_TOPIC_CONFIG"])
    synonyms: list[ConfigSynonymData] = Field(description="Every source with a value, the effective one first.")


class TopicConfigData(ConfigData):
    """A config of a topic."""

    kind: str = Field(default="KafkaTopicConfig", description="The kind of this object.")
    topic_name: str = Field(description="The topic.", examples=["orders"])


class BrokerConfigData(ConfigData):
    """A config of a broker."""

    kind: str = Field(default="KafkaBrokerConfig", description="The kind of this object.")
    broker_id: int = Field(description="The broker.", examples=[1])


class ClusterConfigData(ConfigData):
    """A config of all brokers."""

    kind: str = Field(default="KafkaClusterConfig", description="The kind of this object.")
    config_type: str = Field(default="BROKER", description="The type of the config.")


class TopicConfigDataList(ResourceCollection):
    """Configs of topics, by name."""

    kind: str = Field(default="KafkaTopicConfigList", description="The kind of this object.")
    data: list[TopicConfigData] = Field(description="The configs.")


class BrokerConfigDataList(ResourceCollection):
    """Configs of brokers, by name."""

    kind: str = Field(default="KafkaBrokerConfigList", description="The kind of this object.")
    data: list[BrokerConfigData] = Field(description="The configs.")


class ClusterConfigDataList(ResourceCollection):
    """Configs that are set for all brokers, by name."""

    kind: str = Field(default="KafkaClusterConfigList", description="The kind of this object.")
    data: list[ClusterConfigData] = Field(description="The configs.")


def topic_config(topic: str, config: Config, links: Links) -> TopicConfigData:
    """A config of a topic."""
    return TopicConfigData(
        metadata=links.resource(("topics", topic, "configs", config.key), ("topic", topic, "config", config.key)),
        topic_name=topic,
        cluster_id=links.cluster_id,
        name=config.key,
        value=config.value,
        is_read_only=config.is_read_only,
        is_sensitive=config.is_sensitive,
        is_default=config.is_default,
        source=config.source,
        synonyms=_synonyms(config),
    )


def broker_config(broker_id: int, config: Config, links: Links) -> BrokerConfigData:
    """A config of a broker."""
    return BrokerConfigData(
        metadata=links.resource(
            ("brokers", broker_id, "configs", config.key), ("broker", broker_id, "config", config.key)
        ),
        broker_id=broker_id,
        cluster_id=links.cluster_id,
        name=config.key,
        value=config.value,
        is_read_only=config.is_read_only,
        is_sensitive=config.is_sensitive,
        is_default=config.is_default,
        source=config.source,
        synonyms=_synonyms(config),
    )


def cluster_config(config: Config, links: Links) -> ClusterConfigData:
    """A config of all brokers."""
    return ClusterConfigData(
        metadata=links.resource(("broker-configs", config.key), ("broker-config", config.key)),
        cluster_id=links.cluster_id,
        name=config.key,
        value=config.value,
        is_read_only=config.is_read_only,
        is_sensitive=config.is_sensitive,
        is_default=config.is_default,
        source=config.source,
        synonyms=_synonyms(config),
    )


def _synonyms(config: Config) -> list[ConfigSynonymData]:
    return [ConfigSynonymData(name=item.key, value=item.value, source=item.source) for item in config.synonyms]


class UpdateConfigBody(BaseModel):
    """The new value of a config."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "compact"}]})

    value: str | None = Field(default=None, description="The value.", examples=["compact"])


class UpdateBrokerConfigBody(UpdateConfigBody):
    """The new value of a config of brokers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "604800000"}]})


class AlterOperation(StrEnum):
    """What is done to a config."""

    SET = "SET"
    DELETE = "DELETE"


class ConfigChangeBody(BaseModel):
    """A change of one config."""

    name: str = Field(description="The name of the config.", examples=["cleanup.policy"], min_length=1)
    operation: AlterOperation | None = Field(default=None, description="By default SET.", examples=["SET"])
    value: str | None = Field(default=None, description="The value to set.", examples=["compact"])


class AlterConfigsBody(BaseModel):
    """Changes of configs, applied all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "data": [
                        {"name": "cleanup.policy", "operation": "SET", "value": "compact"},
                        {"name": "retention.ms", "operation": "DELETE"},
                    ],
                    "validate_only": False,
                }
            ]
        }
    )

    data: list[ConfigChangeBody] = Field(description="The changes.")
    validate_only: bool | None = Field(default=None, description="Whether to only check the changes.")


class AlterBrokerConfigsBody(AlterConfigsBody):
    """Changes of brokers' configs, applied all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "data": [
                        {"name": "log.retention.ms", "operation": "SET", "value": "604800000"},
                        {"name": "log.cleanup.policy", "operation": "DELETE"},
                    ],
                    "validate_only": False,
                }
            ]
        }
    )


class TopicChangesBody(BaseModel):
    """A topic, and the changes of its configs."""

    topic_name: str = Field(description="The topic.", examples=["orders"], min_length=1)
    configs: list[ConfigChangeBody] = Field(description="The changes.")


class AlterTopicsConfigsBody(BaseModel):
    """Changes of several topics' configs; those of one topic are applied all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"data": [{"topic_name": "orders", "configs": [{"name": "retention.ms", "value": "86400000"}]}]}
            ]
        }
    )

    data: list[TopicChangesBody] = Field(description="The topics.")
    validate_only: bool | None = Field(default=None, description="Whether to only check the changes.")


class TopicFailure(BaseModel):
    """A topic whose configs could not be changed."""

    topic_name: str = Field(description="The topic.", examples=["orders"])
    error_code: int = Field(description="The error code.", examples=[40403])
    message: str = Field(description="The error message.")


class AlterTopicsConfigsFailures(BaseModel):
    """The topics whose configs could not be changed; those of all others were."""

    failures: list[TopicFailure] = Field(description="The topics.")
