import pytest

from connect.api.transform import Predicate, Transform
from connect.transforms.table import PREDICATES, TRANSFORMS

BOTH_SIDES = (
    "Cast",
    "ExtractField",
    "Flatten",
    "HeaderFrom",
    "HoistField",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "SetSchemaMetadata",
    "TimestampConverter",
)
ALONE = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")


def test_everything_of_kafka_is_there() -> None:
    package = "org.apache.kafka.connect.transforms."
    wanted = {f"{package}{name}${side}" for name in BOTH_SIDES for side in ("Key", "Value")}
    wanted |= {package + name for name in ALONE}
    assert wanted <= {alias for plugin in TRANSFORMS for alias in plugin.aliases}
    predicates = {f"{package}predicates.{name}" for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")}
    assert predicates == {alias for plugin in PREDICATES for alias in plugin.aliases}


def test_every_name_means_one_plugin() -> None:
    aliases = [alias for plugin in TRANSFORMS for alias in plugin.aliases]
    assert len(set(aliases)) == len(aliases)
    assert len({plugin.__name__ for plugin in TRANSFORMS}) == len(TRANSFORMS)


@pytest.mark.parametrize("plugin", [*TRANSFORMS, *PREDICATES], ids=lambda plugin: plugin.__name__)
def test_every_option_has_a_help(plugin: type[Transform] | type[Predicate]) -> None:
    assert plugin.aliases
    assert plugin.__doc__
    for key in plugin.config_class.OPTIONS:
        assert plugin.config_class.help_of(key), key
