"""Tab in a real bash, with a real broker, registry and worker behind it."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from deploy.commands.completion import SCRIPTS, Shell
from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.registry import RegistryProcess
from tests.support.service import REPOSITORY

_PRESS_TAB: Final = """
source {script}
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
_caudal_completion caudal
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_PATIENCE_S: Final = 60


class Bash:
    """A shell that was taught to complete, and whose `caudal` is ours."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "completion.bash"
        self._script.write_text(SCRIPTS[Shell.BASH])
        self._programs = folder / "bin"
        self._programs.mkdir()
        program = self._programs / "caudal"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deploy.cli "$@"\n')
        program.chmod(0o755)

    def tab(self, line: str, **environment: str) -> list[str]:
        """What is offered when Tab is pressed at the end of the line."""
        done = subprocess.run(
            ["bash", "--norc", "-c", _PRESS_TAB.format(script=self._script, line=f"'{line}'")],
            env={
                "PATH": f"{self._programs}:/usr/bin:/bin",
                "PYTHONPATH": str(REPOSITORY),
                "CAUDAL_COMPLETION_TIMEOUT": str(_PATIENCE_S),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=2 * _PATIENCE_S,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.split()


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)


def test_topics_of_the_cluster_that_the_line_names_are_offered(bash: Bash, broker: BrokerProcess, name: str) -> None:
    admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap))
    for topic in (f"{name}-one", f"{name}-two"):
        admin.create_topic(topic, partitions=1)
    # Bash takes the colon of the address for the end of a word; the script must not.
    found = bash.tab(f"caudal topic describe --bootstrap {broker.bootstrap} {name}-")
    assert sorted(found) == [f"{name}-one", f"{name}-two"]
    assert bash.tab(f"caudal group seek x --topic {name}-o", CAUDAL_BOOTSTRAP=broker.bootstrap) == [f"{name}-one"]


def test_groups_of_the_cluster_are_offered(bash: Bash, broker: BrokerProcess, name: str) -> None:
    admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap))
    admin.create_topic(name, partitions=1)
    admin.set_group_offsets(f"{name}-group", {(name, 0): 0})
    assert bash.tab(f"caudal group describe {name}", CAUDAL_BOOTSTRAP=broker.bootstrap) == [f"{name}-group"]


def test_subjects_are_offered_also_those_with_colons_of_which_bash_wants_only_the_end(
    bash: Bash, registry: RegistryProcess, name: str
) -> None:
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url})) as client:
        for subject in (f"{name}-value", f":.{name}:inner"):
            client.register(subject, SchemaDefinition('"string"'))
    assert bash.tab(f"caudal schema show {name}", CAUDAL_REGISTRY=registry.url) == [f"{name}-value"]
    assert bash.tab(f"caudal schema show :.{name}:in", CAUDAL_REGISTRY=registry.url) == ["inner"]


def test_connectors_of_the_worker_are_offered(bash: Bash, connect: ConnectProcess, name: str, tmp_path: Path) -> None:
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": name}
    connect.create(name, config)
    try:
        assert bash.tab(f"caudal connector status --connect {connect.url} {name}") == [name]
        assert bash.tab(f"caudal connector plugins --connect {connect.url} FileStreamSi") == ["FileStreamSinkConnector"]
    finally:
        connect.delete(name)
