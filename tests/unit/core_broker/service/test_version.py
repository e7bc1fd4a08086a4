from importlib.metadata import version

import pytest

from core_broker.service.version import version_at, version_level


def test_the_level_stands_for_the_version_of_this_software() -> None:
    assert version_at(version_level()) == version("caudal")


def test_the_level_fits_into_the_protocol() -> None:
    assert version_level() < 1 << 15


@pytest.mark.parametrize("level,version", [(100, "0.1.0"), (10203, "1.2.3"), (1, "0.0.1"), (29999, "2.99.99")])
def test_a_level_is_read_as_a_version(level: int, version: str) -> None:
    assert version_at(level) == version
