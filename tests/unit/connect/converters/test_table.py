"""The converters that come with Connect, all together."""

import pytest

from connect.api.converter import Converter, HeaderConverter
from connect.converters.table import CONVERTERS, HEADER_CONVERTERS

EVERY = sorted({*CONVERTERS, *HEADER_CONVERTERS}, key=lambda kind: kind.__name__)
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


@pytest.mark.parametrize("kind", EVERY)
def test_each_is_known_by_its_name_in_kafka_connect(kind: type[Converter | HeaderConverter]) -> None:
    assert kind.aliases
    assert kind.aliases[0].rpartition(".")[2] == kind.__name__


@pytest.mark.parametrize("kind", EVERY)
def test_each_option_has_a_help(kind: type[Converter | HeaderConverter]) -> None:
    config = kind.config_class

    assert all(config.help_of(key) for key in config.OPTIONS)


def test_headers_have_a_converter_that_needs_no_options() -> None:
    default = next(kind for kind in HEADER_CONVERTERS if SIMPLE in kind.aliases)

    assert default({}).to_connect_header("topic", "key", b"1")[1] == 1
