"""The skeleton of a connector passes the standard suites as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from connect.api.errors import ConfigError
from connect.testing.scaffold import Kind, write_connector

PARTS = {Kind.SOURCE: {"source.py"}, Kind.SINK: {"sink.py"}, Kind.BOTH: {"source.py", "sink.py"}}


@pytest.mark.processes
@pytest.mark.parametrize("kind", Kind)
def test_a_new_connector_passes_the_standard_suites(tmp_path: Path, kind: Kind) -> None:
    files = write_connector("north-star", tmp_path, kind=kind)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        command, cwd=tmp_path / "north-star", capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    tests = {f"test_{part}" for part in PARTS[kind]}
    assert {path.name for path in files} == {
        *("README.md", "pyproject.toml", "__init__.py", "config.py"),
        *PARTS[kind],
        *tests,
    }


@pytest.mark.parametrize("kind", Kind)
def test_a_new_connector_speaks_only_of_what_it_has(tmp_path: Path, kind: Kind) -> None:
    texts = "".join(path.read_text() for path in write_connector("north-star", tmp_path, kind=kind))
    assert ("NorthStarSource" in texts) == (kind is not Kind.SINK)
    assert ("NorthStarSink" in texts) == (kind is not Kind.SOURCE)
    assert not [line for line in texts.splitlines() if line.startswith("%")]


@pytest.mark.processes
@pytest.mark.parametrize("kind", Kind)
def test_a_new_connector_is_clean_code(tmp_path: Path, kind: Kind) -> None:
    write_connector("north-star", tmp_path, kind=kind)
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--select", "E,F,W,B,D1,UP"]
    style = ["--line-length", "120", str(tmp_path / "north-star" / "north_star")]
    done = subprocess.run([*command, *style], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["", "Big", "a b", "../up", "1st", "a--b", "class", "json", "x" * 51, "connectors"])
def test_names_that_make_no_package_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name"):
        write_connector(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "north").mkdir()
    with pytest.raises(ConfigError, match="already"):
        write_connector("north", tmp_path)
