"""The content of DescribeConfigs: every key with its value, the source of the value, and its synonyms."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from itertools import dropwhile
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import Definition, Settings, SettingsError
from core_broker.settings.broker import BrokerSettings
from core_broker.settings.listener_overrides import PREFIX, base_key
from core_broker.settings.topic import TopicSettings
from core_broker.settings.without_effect import find_dynamic, is_per_broker, needs_listener


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
    """One of the possible sources of a value."""

    key: str
    value: str | None
    source: ConfigSource


class DescribedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One key in a response to DescribeConfigs."""

    definition: Definition
    value: str | None
    """The effective value; None if there is none, or if it is a secret."""
    synonyms: tuple[Synonym, ...]
    """The possible sources of the value, the effective one first."""
    settings: type[Settings]

    @property
    def key(self) -> str:
        """Name of the key."""
        return self.definition.key

    @property
    def source(self) -> ConfigSource:
        """The source of the effective value."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT_CONFIG

    @property
    def is_default(self) -> bool:
        """Whether the key is not set for this resource."""
        return self.source is ConfigSource.DEFAULT_CONFIG

    @property
    def is_read_only(self) -> bool:
        """Whether the key cannot be changed at run time."""
        return not self.definition.is_dynamic

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is never returned."""
        return self.definition.is_sensitive

    @property
    def type_code(self) -> int:
        """Type of the key, as numbered in DescribeConfigs (KIP-569)."""
        return self.definition.kind.wire

    @property
    def documentation(self) -> str:
        """Help of the key."""
        why = self.definition.without_effect
        return f"Without effect: {why}." if why else self.settings.help_of(self.key)


class BrokerConfig:
    """A broker's settings in layers: those it was started with, changes for all brokers, changes for this one."""

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
        """The effective settings."""
        changes = {**self.cluster_wide, **self.own}
        changed = BrokerSettings.parse({key: changes[key] for key in changes if key in BrokerSettings.DEFINITIONS})
        names = [BrokerSettings.DEFINITIONS[key].name for key in changed.set]
        effective = self.static.replace(**{name: getattr(changed, name) for name in names})
        of_listeners = {key.removeprefix(PREFIX): changes[key] for key in changes if base_key(key) is not None}
        if not of_listeners:
            return effective
        return effective.replace(listener_overrides=tuple({**self._static_overrides, **of_listeners}.items()))

    @cached_property
    def _static_overrides(self) -> dict[str, str]:
        """What the broker was started with for single listeners, without `listener.name.`."""
        return dict(self.static.listener_overrides)

    @classmethod
    def definition(cls, key: str) -> Definition | None:
        """The definition of a key, including those without effect; None if it is unknown."""
        return find_dynamic(key, BrokerSettings.DEFINITIONS)

    @classmethod
    def check_dynamic(cls, key: str, value: str, *, cluster_wide: bool = False) -> None:
        """Raise BrokerError INVALID_REQUEST unless this key may be changed to this value at run time.

        INVALID_CONFIG would be clearer, but clients expect Kafka's error (KAFKA-13609).
        """
        definition = cls.definition(key)
        reason = None
        if definition is None:
            reason = "unknown setting"
        elif not definition.is_dynamic:
            reason = "cannot be changed while the broker runs"
        elif needs_listener(key):
            reason = f"can be changed for one listener only, as listener.name.<name>.{key}"
        elif cluster_wide and is_per_broker(key):
            reason = "can be changed for one broker only, not for all"
        else:
            try:
                definition.parse(value)
            except SettingsError as error:
                raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None
        if reason is not None:
            shown = "******" if definition is not None and definition.is_sensitive else value
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{key}={shown}: {reason}")

    def describe(self) -> list[DescribedSetting]:
        """Every key of the broker, and those without effect that were set."""
        of_listeners = (f"{PREFIX}{rest}" for rest in self._static_overrides)
        keys = dict.fromkeys((*BrokerSettings.DEFINITIONS, *of_listeners, *self.cluster_wide, *self.own))
        found = (definition for definition in map(self.definition, keys) if definition is not None)
        return [
            self._describe(definition) for definition in found if not definition.is_internal and not definition.prefix
        ]

    def _describe(self, definition: Definition) -> DescribedSetting:
        sources = tuple(self.sources(definition.key))
        if definition.key in BrokerSettings.DEFINITIONS:
            value = _text(definition, self.effective.text_of(definition.key))
        else:
            value = sources[0].value
        return DescribedSetting(definition=definition, value=value, synonyms=sources, settings=BrokerSettings)

    def describe_cluster_wide(self) -> list[DescribedSetting]:
        """What was set for all brokers."""
        return [
            DescribedSetting(
                definition=definition,
                value=_text(definition, self.cluster_wide[definition.key]),
                synonyms=tuple(
                    found
                    for found in self.sources(definition.key)
                    if found.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
                ),
                settings=BrokerSettings,
            )
            for definition in map(self.definition, self.cluster_wide)
            if definition
        ]

    def sources(self, *keys: str) -> Iterator[Synonym]:
        """The possible sources of a key and its synonyms, the effective one first, the default last."""
        for source in _BROKER_SOURCES:
            for key in keys:
                value = self._value_from(source, key)
                definition = self.definition(key)
                if value is not None and definition is not None:
                    yield Synonym(key=key, value=_text(definition, value), source=source)

    def _value_from(self, source: ConfigSource, key: str) -> str | None:
        if source is ConfigSource.DYNAMIC_BROKER_CONFIG:
            return self.own.get(key)
        if source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG:
            return self.cluster_wide.get(key)
        definition = self.definition(key)
        if definition is None:
            return None
        if source is ConfigSource.STATIC_BROKER_CONFIG:
            if base_key(key) is not None:
                return self._static_overrides.get(key.removeprefix(PREFIX))
            is_set = key in BrokerSettings.DEFINITIONS and self.static.is_set(key)
            return self.static.text_of(key) if is_set else None
        return definition.text(definition.default)


def describe_topic(overrides: Mapping[str, str], broker: BrokerConfig) -> list[DescribedSetting]:
    """Every key of a topic that has these overrides, on this broker."""
    return [
        DescribedSetting(
            definition=definition,
            value=_topic_value(definition, overrides, broker),
            synonyms=tuple(_topic_sources(definition, overrides, broker)),
            settings=TopicSettings,
        )
        for definition in TopicSettings.DEFINITIONS.values()
        if not definition.is_internal
    ]


def _topic_value(definition: Definition, overrides: Mapping[str, str], broker: BrokerConfig) -> str | None:
    if definition.key in overrides:
        return overrides[definition.key]
    return definition.text(TopicSettings.inherited_value(definition, broker.effective))


def _topic_sources(definition: Definition, overrides: Mapping[str, str], broker: BrokerConfig) -> Iterator[Synonym]:
    if definition.key in overrides:
        value = overrides[definition.key]
        yield Synonym(key=definition.key, value=value, source=ConfigSource.DYNAMIC_TOPIC_CONFIG)
    # As in Kafka, the list starts with the broker's key in the topic's unit; hours and minutes before it are left out.
    first = definition.synonyms[0] if definition.synonyms else None
    yield from dropwhile(lambda found: found.key != first, broker.sources(*definition.synonyms))


def _text(definition: Definition, value: str | None) -> str | None:
    return None if definition.is_sensitive else value
