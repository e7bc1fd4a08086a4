"""Effective settings: those the broker was started with, dynamic changes, and the overrides of topics."""

from core_broker.cluster.metadata import MetadataImage, ResourceType
from core_broker.settings import BrokerConfig, BrokerSettings, TopicSettings

EVERY_BROKER = ""
"""The name of the broker resource that means all brokers."""


def broker_config(image: MetadataImage, settings: BrokerSettings) -> BrokerConfig:
    """The layers of settings of the broker that was started with `settings`."""
    return BrokerConfig(
        static=settings,
        cluster_wide=image.config_of(ResourceType.BROKER, EVERY_BROKER),
        own=image.config_of(ResourceType.BROKER, str(settings.node_id)),
    )


def broker_settings(image: MetadataImage, settings: BrokerSettings) -> BrokerSettings:
    """The effective settings of the broker that was started with `settings`."""
    config = broker_config(image, settings)
    return config.effective if config.cluster_wide or config.own else settings


def topic_settings(image: MetadataImage, topic: str, settings: BrokerSettings) -> TopicSettings:
    """The effective settings of a topic."""
    return TopicSettings.resolve(image.config_of(ResourceType.TOPIC, topic), broker_settings(image, settings))
