"""Classes are found by the names that configurations have for them."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import ClassVar

import pytest

from connect.api.config import Config
from connect.api.errors import ConfigError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.plugins import PluginInfo, Plugins
from tests.support import connect_plugins as quiet


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return quiet.quiet_plugins()


@pytest.mark.parametrize(
    "name",
    [
        "com.example.QuietSinkConnector",
        "net.example.OtherSinkConnector",
        "tests.support.connect_plugins.QuietSinkConnector",
        "QuietSinkConnector",
        "QuietSink",
        "OtherSink",
    ],
)
def test_a_connector_has_a_full_name_a_short_one_and_aliases(plugins: Plugins, name: str) -> None:
    assert plugins.connectors.find(name) is quiet.QuietSinkConnector


@pytest.mark.parametrize("name", [quiet.JSON, "JsonConverter", "Json", "PlainConverter"])
def test_a_converter_is_found(plugins: Plugins, name: str) -> None:
    assert plugins.converters.find(name) is quiet.PlainConverter


def test_other_kinds_are_found(plugins: Plugins) -> None:
    assert plugins.header_converters.find("SimpleHeaderConverter") is quiet.PlainHeaderConverter
    assert plugins.transforms.find("com.example.Mask$Value") is quiet.MaskValue
    assert plugins.transforms.find("Mask$Value") is quiet.MaskValue
    assert plugins.predicates.find("Always") is quiet.AlwaysPredicate


@pytest.mark.parametrize("name", ["Nothing", "", "com.example", "com.other.QuietSinkConnector", quiet.JSON])
def test_an_unknown_name_is_told_with_what_is_known(plugins: Plugins, name: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plugins.connectors.find(name)
    message = str(raised.value)
    assert message.startswith(f"Failed to find any class that implements Connector and which name matches {name}, ")
    assert "com.example.QuietSinkConnector" in message


class ASinkConnector(SinkConnector):
    aliases = ("one.TwinConnector",)


class BSinkConnector(SinkConnector):
    aliases = ("two.TwinConnector",)


class CSinkConnector(SinkConnector):
    aliases = ("three.OnlyConnector", "three.TwinConnector")


def test_a_short_name_of_two_classes_must_be_written_in_full() -> None:
    plugins = Plugins.of(connectors=[ASinkConnector, BSinkConnector])
    with pytest.raises(ConfigError, match="More than one connector matches alias Twin"):
        plugins.connectors.find("Twin")
    assert plugins.connectors.find("two.TwinConnector") is BSinkConnector


class DSinkConnector(SinkConnector):
    aliases = ("org.apache.kafka.connect.TwinConnector",)


def test_a_short_name_that_comes_with_kafka_means_that() -> None:
    plugins = Plugins.of(connectors=[ASinkConnector, DSinkConnector, BSinkConnector])
    assert plugins.connectors.find("Twin") is DSinkConnector


def test_a_short_name_means_the_class_whose_first_name_it_is() -> None:
    assert Plugins.of(connectors=[CSinkConnector, ASinkConnector]).connectors.find("Twin") is ASinkConnector


def test_connectors_are_listed_sinks_first() -> None:
    plugins = quiet.quiet_plugins()
    listed = plugins.infos(connectors_only=True)
    kinds = [info.type for info in listed]
    assert kinds == sorted(kinds)
    assert set(kinds) == {"sink", "source"}
    assert PluginInfo(name="com.example.QuietSinkConnector", type="sink", version="2.5") in listed


def test_all_plugins_are_listed_in_kafka_connects_order() -> None:
    kinds = [info.type for info in quiet.quiet_plugins().infos(connectors_only=False)]
    order = ["sink", "source", "transformation", "predicate", "converter", "header_converter"]
    assert list(dict.fromkeys(kinds)) == order


def test_what_has_no_version_has_that_of_the_release() -> None:
    listed = quiet.quiet_plugins().infos(connectors_only=False)
    assert PluginInfo(name="com.example.Mask$Value", type="transformation", version=version("caudal")) in listed


class Both(quiet.PlainConverter, quiet.PlainHeaderConverter):
    config_class: ClassVar[type[Config]] = Config
    aliases = ("com.example.BothConverter",)

    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        pass


def test_a_converter_of_values_and_headers_is_listed_as_both() -> None:
    plugins = Plugins.of(converters=[Both], header_converters=[Both])
    listed = [info.type for info in plugins.infos(connectors_only=False) if info.name == "com.example.BothConverter"]
    assert listed == ["converter", "header_converter"]
