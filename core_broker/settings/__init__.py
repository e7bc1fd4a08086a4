"""Broker and topic settings: one definition per Kafka config key drives parsing, DescribeConfigs and docs. A door."""

from core_broker.settings.broker import BrokerSettings
from core_broker.settings.describe import BrokerConfig, ConfigSource, DescribedSetting, Synonym, describe_topic
from core_broker.settings.group import GroupSettings
from core_broker.settings.listeners import Listener
from core_broker.settings.topic import TopicSettings

__all__ = [
    "BrokerConfig",
    "BrokerSettings",
    "ConfigSource",
    "DescribedSetting",
    "GroupSettings",
    "Listener",
    "Synonym",
    "TopicSettings",
    "describe_topic",
]
