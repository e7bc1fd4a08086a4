"""The converters and transforms of one connector, made from its configuration and the worker's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connect.api.config import Config
from connect.api.converter import Converter, HeaderConverter
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.settings import ConnectSettings
from connect.transforms.chain import Chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What stands between the bytes of a topic and a task."""

    key: Converter
    value: Converter
    headers: HeaderConverter
    chain: Chain

    def close(self) -> None:
        """Leave nothing open."""
        for part in (self.key, self.value, self.headers, self.chain):
            part.close()


class ConverterChoice(NamedTuple):
    """The class of a converter as it was named, and its options, without prefix."""

    name: str
    options: Mapping[str, str]


class ConverterChoices(NamedTuple):
    """What a connector's configuration, and the worker's where it says nothing, choose."""

    key: ConverterChoice
    value: ConverterChoice
    headers: ConverterChoice


def converter_choices(config: Config, settings: ConnectSettings) -> ConverterChoices:
    """Which converters are meant."""
    header_options = settings.header_converter_properties
    return ConverterChoices(
        key=_chosen(config, "key.converter", settings.key_converter, settings.key_converter_properties),
        value=_chosen(config, "value.converter", settings.value_converter, settings.value_converter_properties),
        headers=_chosen(config, "header.converter", settings.header_converter, header_options),
    )


def conversion_of(config: ConnectorConfig, plugins: Plugins, settings: ConnectSettings) -> Conversion:
    """Make them; ConfigError when one cannot be."""
    key, value, headers = converter_choices(config, settings)
    return Conversion(
        key=plugins.converters.find(key.name)(key.options, is_key=True),
        value=plugins.converters.find(value.name)(value.options, is_key=False),
        headers=plugins.header_converters.find(headers.name)(headers.options),
        chain=Chain(config.given, plugins.transforms.find, plugins.predicates.find),
    )


def _chosen(
    config: Config, key: str, worker_class: str, worker_options: tuple[tuple[str, str], ...]
) -> ConverterChoice:
    """A class and its options: the worker's options are for the worker's class only."""
    named = config.given.get(key)
    if named:
        return ConverterChoice(named.strip(), config.below(f"{key}."))
    return ConverterChoice(worker_class, dict(worker_options))


def class_name_of(plugin: object) -> str:
    """What a plugin is called in headers and logs: Kafka Connect's name, where it has one."""
    kind = type(plugin)
    aliases: tuple[str, ...] = getattr(kind, "aliases", ())
    return aliases[0] if aliases else f"{kind.__module__}.{kind.__qualname__}"
