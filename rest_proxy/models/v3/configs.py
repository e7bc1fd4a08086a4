"""Configs of topics, brokers and the whole cluster in API v3. The route limits the number of values in a body."""

from enum import StrEnum
from typing import Self

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

    @classmethod
    def build(
        cls, config: Config, links: Links, path: tuple[str | int, ...], name: tuple[str | int, ...], **owner: str | int
    ) -> Self:
        """A config, by the path and name of its owner, who has further fields."""
        synonyms = [ConfigSynonymData(name=item.key, value=item.value, source=item.source) for item in config.synonyms]
        return cls(
            metadata=links.resource((*path, config.key), (*name, config.key)),
            cluster_id=links.cluster_id,
            name=config.key,
            value=config.value,
            is_read_only=config.is_read_only,
            is_sensitive=config.is_sensitive,
            is_default=config.is_default,
            source=config.source,
            synonyms=synonyms,
            **owner,  # type: ignore[arg-type]  # the fields of subclasses
        )


class TopicConfigData(ConfigData):
    """A config of a topic."""

    kind: str = Field(default="KafkaTopicConfig", description="The kind of this object.")
    topic_name: str = Field(description="The topic.", examples=["orders"])

    @classmethod
    def of(cls, topic: str, config: Config, links: Links) -> Self:
        """A config of a topic."""
        return cls.build(config, links, ("topics", topic, "configs"), ("topic", topic, "config"), topic_name=topic)


class BrokerConfigData(ConfigData):
    """A config of a broker."""

    kind: str = Field(default="KafkaBrokerConfig", description="The kind of this object.")
    broker_id: int = Field(description="The broker.", examples=[1])

    @classmethod
    def of(cls, broker: int, config: Config, links: Links) -> Self:
        """A config of a broker."""
        return cls.build(config, links, ("brokers", broker, "configs"), ("broker", broker, "config"), broker_id=broker)


class ClusterConfigData(ConfigData):
    """A config of all brokers."""

    kind: str = Field(default="KafkaClusterConfig", description="The kind of this object.")
    config_type: str = Field(default="BROKER", description="The type of the config.")

    @classmethod
    def of(cls, config: Config, links: Links) -> Self:
        """A config of all brokers."""
        return cls.build(config, links, ("broker-configs",), ("broker-config",))


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
