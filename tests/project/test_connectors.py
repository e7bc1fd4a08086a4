"""Every connector has the same files: `config.py`, `source.py` or `sink.py`, and a README."""

import tomllib
from importlib import import_module
from typing import Final

import pytest

from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from tests.project.source import ROOT

_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
POINTS: Final[list[str]] = sorted(_PROJECT["entry-points"]["caudal.connectors"].values())


def load(point: str) -> type[SinkConnector] | type[SourceConnector]:
    """The class of an entry point."""
    module, _, name = point.partition(":")
    loaded: type[SinkConnector | SourceConnector] = getattr(import_module(module), name)
    return loaded


@pytest.mark.parametrize("point", POINTS)
def test_a_connector_is_in_source_or_sink_together_with_its_task(point: str) -> None:
    """`source.py` and `sink.py`; where a folder has several of a kind, a word in front says which."""
    connector = load(point)
    folder, _, module = connector.__module__.rpartition(".")
    kind = "sink" if issubclass(connector, SinkConnector) else "source"
    siblings = [other for other in POINTS if other.startswith(f"{folder}.") and other.split(":")[0].endswith(kind)]
    assert module == kind or (module.endswith(f"_{kind}") and len(siblings) > 1)
    assert connector.task_class.__module__ == connector.__module__


@pytest.mark.parametrize("point", POINTS)
def test_the_options_of_a_connector_are_in_config(point: str) -> None:
    connector = load(point)
    assert connector.config_class.__module__ == f"{connector.__module__.rpartition('.')[0]}.config"


@pytest.mark.parametrize("folder", sorted({point.split(".")[1] for point in POINTS}))
def test_a_connector_has_a_readme(folder: str) -> None:
    assert (ROOT / "connectors" / folder / "README.md").is_file()
