"""What DescribeConfigs tells: every key with its value, where the value comes from, and what else it could be."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from itertools import dropwhile
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import Definition, Settings, SettingsError
from core_broker.settings.broker import BrokerSettings
from core_broker.settings.topic import TopicSettings


class ConfigSource(IntEnum):
    """Where a value comes from, as numbered in DescribeConfigs (KIP-226)."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


_BROKER_SOURCES: Final = (
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
)
"""The layers of a broker's settings, the strongest first."""


class Synonym(msgspec.Struct, frozen=True, kw_only=True):
    """One of the places a value could come from."""

    key: str
    value: str | None
    source: ConfigSource


class DescribedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One key, as DescribeConfigs answers it."""

    definition: Definition
    value: str | None
    """The value in force; None when there is none, or when it is a secret."""
    synonyms: tuple[Synonym, ...]
    """The places the value may come from, the one in force first."""
    settings: type[Settings]

    @property
    def key(self) -> str:
        """Name of the key."""
        return self.definition.key

    @property
    def source(self) -> ConfigSource:
        """Where the value in force comes from."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT_CONFIG

    @property
    def is_default(self) -> bool:
        """True when nobody has set the key for this resource."""
        return self.source is ConfigSource.DEFAULT_CONFIG

    @property
    def is_read_only(self) -> bool:
        """True when the key cannot change while the broker runs."""
        return not self.definition.is_dynamic

    @property
    def is_sensitive(self) -> bool:
        """True when the value is never told."""
        return self.definition.is_sensitive

    @property
    def type_code(self) -> int:
        """Type of the key, as numbered in DescribeConfigs (KIP-569)."""
        return self.definition.kind.wire

    @property
    def documentation(self) -> str:
        """Help of the key."""
        return self.settings.help_of(self.key)


class BrokerConfig:
    """A broker's settings in layers: as started, then as changed since for all brokers, then for this one."""

    def __init__(
        self,
        static: BrokerSettings,
        cluster_wide: Mapping[str, str] | None = None,
        own: Mapping[str, str] | None = None,
    ) -> None:
        self.static = static
        self.cluster_wide = dict(cluster_wide or {})
        self.own = dict(own or {})

    @cached_property
    def effective(self) -> BrokerSettings:
        """The settings in force."""
        changed = BrokerSettings.parse({**self.cluster_wide, **self.own})
        names = [BrokerSettings.DEFINITIONS[key].name for key in changed.set]
        return self.static.replace(**{name: getattr(changed, name) for name in names})

    @classmethod
    def check_dynamic(cls, key: str, value: str) -> None:
        """Raise BrokerError INVALID_REQUEST unless this key may be changed to this value while brokers run.

        INVALID_CONFIG would say it better, but clients know Kafka's answer (KAFKA-13609).
        """
        definition = BrokerSettings.DEFINITIONS.get(key)
        if definition is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{key}={value}: unknown setting")
        if not definition.is_dynamic:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{key}={value}: cannot be changed while the broker runs")
        try:
            definition.parse(value)
        except SettingsError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def describe(self) -> list[DescribedSetting]:
        """Every key of the broker."""
        return [
            DescribedSetting(
                definition=definition,
                value=_text(definition, self.effective.text_of(key)),
                synonyms=tuple(self.places(key)),
                settings=BrokerSettings,
            )
            for key, definition in BrokerSettings.DEFINITIONS.items()
            if not definition.is_internal
        ]

    def places(self, *keys: str) -> Iterator[Synonym]:
        """Where the value of a key or of its other names may come from, the one in force first; defaults come last."""
        for source in _BROKER_SOURCES:
            for key in keys:
                value = self._value_from(source, key)
                if value is not None:
                    yield Synonym(key=key, value=_text(BrokerSettings.DEFINITIONS[key], value), source=source)

    def _value_from(self, source: ConfigSource, key: str) -> str | None:
        if source is ConfigSource.DYNAMIC_BROKER_CONFIG:
            return self.own.get(key)
        if source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG:
            return self.cluster_wide.get(key)
        if source is ConfigSource.STATIC_BROKER_CONFIG:
            return self.static.text_of(key) if self.static.is_set(key) else None
        definition = BrokerSettings.DEFINITIONS[key]
        return definition.text(definition.default)


def describe_topic(overrides: Mapping[str, str], broker: BrokerConfig) -> list[DescribedSetting]:
    """Every key of a topic that has these overrides, on this broker."""
    return [
        DescribedSetting(
            definition=definition,
            value=_topic_value(definition, overrides, broker),
            synonyms=tuple(_topic_places(definition, overrides, broker)),
            settings=TopicSettings,
        )
        for definition in TopicSettings.DEFINITIONS.values()
        if not definition.is_internal
    ]


def _topic_value(definition: Definition, overrides: Mapping[str, str], broker: BrokerConfig) -> str | None:
    if definition.key in overrides:
        return overrides[definition.key]
    return definition.text(TopicSettings.inherited(definition, broker.effective))


def _topic_places(definition: Definition, overrides: Mapping[str, str], broker: BrokerConfig) -> Iterator[Synonym]:
    if definition.key in overrides:
        value = overrides[definition.key]
        yield Synonym(key=definition.key, value=value, source=ConfigSource.DYNAMIC_TOPIC_CONFIG)
    # As Kafka does it: the broker's key in the topic's unit opens the list. Before it, hours and minutes are not told.
    first = definition.synonyms[0] if definition.synonyms else None
    yield from dropwhile(lambda place: place.key != first, broker.places(*definition.synonyms))


def _text(definition: Definition, value: str | None) -> str | None:
    return None if definition.is_sensitive else value
