"""What DescribeConfigs tells: every key with its value, where the value comes from, and what else it could be."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property

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


class Synonym(msgspec.Struct, frozen=True, kw_only=True):
    """One of the places a value could come from."""

    key: str
    value: str | None
    source: ConfigSource


class DescribedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One key, as DescribeConfigs answers it. The first synonym is the one in force."""

    definition: Definition
    synonyms: tuple[Synonym, ...]
    settings: type[Settings]

    @property
    def key(self) -> str:
        """Name of the key."""
        return self.definition.key

    @property
    def value(self) -> str | None:
        """The value in force; None when there is none, or when it is a secret."""
        return self.synonyms[0].value

    @property
    def source(self) -> ConfigSource:
        """Where the value in force comes from."""
        return self.synonyms[0].source

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
        """Raise BrokerError INVALID_CONFIG unless this key may be changed to this value while brokers run."""
        definition = BrokerSettings.DEFINITIONS.get(key)
        if definition is None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{key}={value}: unknown setting")
        if not definition.is_dynamic:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{key}={value}: cannot be changed while the broker runs")
        try:
            definition.parse(value)
        except SettingsError as error:
            raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def describe(self) -> list[DescribedSetting]:
        """Every key of the broker."""
        return [
            DescribedSetting(definition=definition, synonyms=tuple(self.places(key)), settings=BrokerSettings)
            for key, definition in BrokerSettings.DEFINITIONS.items()
            if not definition.is_internal
        ]

    def places(self, key: str) -> Iterator[Synonym]:
        """Where the value of a key may come from, the one in force first; the default always comes last."""
        definition = BrokerSettings.DEFINITIONS[key]
        for layer, source in (
            (self.own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster_wide, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ):
            if key in layer:
                yield _synonym(definition, layer[key], source)
        if self.static.is_set(key):
            yield _synonym(definition, self.static.text_of(key), ConfigSource.STATIC_BROKER_CONFIG)
        yield _synonym(definition, definition.text(definition.default), ConfigSource.DEFAULT_CONFIG)


def describe_topic(overrides: Mapping[str, str], broker: BrokerConfig) -> list[DescribedSetting]:
    """Every key of a topic that has these overrides, on this broker."""
    return [
        DescribedSetting(
            definition=definition,
            synonyms=tuple(_topic_places(definition, overrides, broker)),
            settings=TopicSettings,
        )
        for definition in TopicSettings.DEFINITIONS.values()
        if not definition.is_internal
    ]


def _topic_places(definition: Definition, overrides: Mapping[str, str], broker: BrokerConfig) -> Iterator[Synonym]:
    if definition.key in overrides:
        yield _synonym(definition, overrides[definition.key], ConfigSource.DYNAMIC_TOPIC_CONFIG)
    places = [place for key in definition.synonyms for place in broker.places(key) if place.value is not None]
    # What somebody set under any synonym goes before what nobody set under another.
    for place in sorted(places, key=lambda place: place.source is ConfigSource.DEFAULT_CONFIG):
        value = TopicSettings.in_topic_units(place.key, definition.kind.read(place.value or ""))
        yield Synonym(key=place.key, value=definition.text(value), source=place.source)
    if not definition.synonyms:
        yield _synonym(definition, definition.text(definition.default), ConfigSource.DEFAULT_CONFIG)


def _synonym(definition: Definition, value: str | None, source: ConfigSource) -> Synonym:
    return Synonym(key=definition.key, value=None if definition.is_sensitive else value, source=source)
