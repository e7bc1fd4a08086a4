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
    """The steps between the bytes of a topic and a task."""

    key: Converter
    value: Converter
    headers: HeaderConverter
    chain: Chain

    def close(self) -> None:
        """Close all of them."""
        for part in (self.key, self.value, self.headers, self.chain):
            part.close()


class ConverterChoice(NamedTuple):
    """The name of a converter's class, and its options, without prefix."""

    name: str
    options: Mapping[str, str]


class ConverterChoices(NamedTuple):
    """The converters of a connector: its own, or the worker's."""

    key: ConverterChoice
    value: ConverterChoice
    headers: ConverterChoice


def converter_choices(config: Config, settings: ConnectSettings) -> ConverterChoices:
    """The converters that a configuration names; the worker's where it names none."""
    header_options = settings.header_converter_properties
    return ConverterChoices(
        key=_choose(config, "key.converter", settings.key_converter, settings.key_converter_properties),
        value=_choose(config, "value.converter", settings.value_converter, settings.value_converter_properties),
        headers=_choose(config, "header.converter", settings.header_converter, header_options),
    )


def conversion_of(config: ConnectorConfig, plugins: Plugins, settings: ConnectSettings) -> Conversion:
    """Make the converters and transforms; ConfigError when one is invalid."""
    key, value, headers = converter_choices(config, settings)
    return Conversion(
        key=plugins.converters.find(key.name)(key.options, is_key=True),
        value=plugins.converters.find(value.name)(value.options, is_key=False),
        headers=plugins.header_converters.find(headers.name)(headers.options),
        chain=Chain(config.given, plugins.transforms.find, plugins.predicates.find),
    )


def _choose(
    config: Config, key: str, worker_class: str, worker_options: tuple[tuple[str, str], ...]
) -> ConverterChoice:
    """A class and its options; the worker's options only apply to the worker's class."""
    named = config.given.get(key)
    if named:
        return ConverterChoice(named.strip(), config.below(f"{key}."))
    return ConverterChoice(worker_class, dict(worker_options))


def class_name_of(plugin: object) -> str:
    """The name of a plugin in headers and logs: Kafka Connect's, if it has one."""
    kind = type(plugin)
    aliases: tuple[str, ...] = getattr(kind, "aliases", ())
    return aliases[0] if aliases else f"{kind.__module__}.{kind.__qualname__}"
