"""The commands of deploy/SECURITY.md, run as they are written, with Caudal's broker or Apache Kafka."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from typing_extensions import override

from core_broker.client.java_properties import to_librdkafka
from core_broker.service.properties import read_file
from tests.support.broker import BrokerProcess
from tests.support.cluster import free_port
from tests.support.kafka import KAFKA_JARS, SMALL_JAVA, KafkaNode
from tests.support.secret_search import places_with_secrets
from tests.support.secured import write_properties
from tests.support.service import REPOSITORY, run_module

pytestmark = pytest.mark.timeout(300)

GUIDE = REPOSITORY / "deploy" / "SECURITY.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START = "caudal broker --config server.properties\n"
OFFLINE = "caudal user create admin --offline"
WAIT_FOR_THREE = """
until [ "$(caudal cluster -o json | grep -c '"fenced": false')" = 3 ]; do sleep 0.5; done
"""


class GuidedKafka(KafkaNode):
    """Apache Kafka with the settings of the guide, and the guide's first user."""

    def __init__(self, folder: Path, port: int) -> None:
        settings = read_file(folder / "server.properties")
        password = (folder / "admin.password").read_text().strip()
        super().__init__(
            folder,
            settings={
                **settings,
                **{key: str(folder / value) for key, value in settings.items() if key.endswith(".location")},
                "log.dirs": str(folder / "data"),
                "offsets.topic.replication.factor": "1",
            },
            java_options=SMALL_JAVA,
            format_options=["--add-scram", f"SCRAM-SHA-512=[name=admin,password={password}]"],
        )
        self._port = port
        self.controller_port = int(settings["listeners"].rpartition(":")[2])
        self.quorum = {"controller.quorum.voters": f"1@localhost:{self.controller_port}"}


class GuidedBroker(BrokerProcess):
    """Caudal's broker, as the guide starts it."""

    ready = re.compile(rb"ready:?.*?CLIENTS://([\w.\[\]:-]+:\d+)")

    @override
    def _command(self) -> list[str]:
        there = ["env", "-C", str(self.directory), f"PYTHONPATH={REPOSITORY}"]
        return [*there, *run_module("core_broker", {}), "--config", "server.properties"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose `caudal` is ours."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "caudal"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deploy.cli "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}


class Guide:
    """The blocks of the guide, run one after the other in one folder, with free ports."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.ports = {number: free_port() for number in ("9092", "9093", "9094")}
        text = re.sub("|".join(self.ports), lambda match: str(self.ports[match[0]]), GUIDE.read_text())
        blocks = BLOCK.findall(text)
        self.before_start, self.after_start = blocks[: blocks.index(START)], blocks[blocks.index(START) + 1 :]
        self._environment = environment
        folder.mkdir()
        (folder / ".environment").touch()

    def run(self, block: str) -> None:
        """Run the commands of a block, which must succeed; variables last."""
        commands = [_as_tested(line) for line in block.splitlines()]
        done = subprocess.run(
            ["bash", "-c", "\n".join([". ./.environment", "set -e", *commands, "export -p > .environment"])],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def _as_tested(line: str) -> str:
    """The line; one that must fail ends the script if it does not, which the shell's `set -e` leaves out."""
    return f"if {line[2:]}; then exit 1; fi" if line.startswith("! ") else line


@pytest.fixture
def guide(tmp_path: Path, environment: dict[str, str]) -> Guide:
    return Guide(tmp_path / "guide", environment)


def test_every_command_of_the_guide_works(guide: Guide) -> None:
    for block in guide.before_start:
        guide.run(block)
    with GuidedBroker(guide.folder) as broker:
        for block in guide.after_start:
            guide.run(block)
        assert _places_with_secrets(guide, broker) == []


def _places_with_secrets(guide: Guide, broker: GuidedBroker) -> list[str]:
    """Where a password is, other than in the files that the guide writes."""
    given = read_file(guide.folder / "admin.properties")
    given["ssl.truststore.location"] = str(guide.folder / given["ssl.truststore.location"])
    from_elsewhere = write_properties(guide.folder / "from-elsewhere.properties", given)
    passwords = list(guide.folder.glob("*.password"))
    return places_with_secrets(
        broker,
        [file.read_text().strip() for file in passwords],
        client=to_librdkafka(given.items()),
        tool_options=("--client-config", str(from_elsewhere)),
        known=[*passwords, *guide.folder.glob("*.properties"), guide.folder / ".environment"],
        has_metrics=False,  # they are at their usual port, which another broker may have
    )


@pytest.mark.skipif(KAFKA_JARS is None, reason="KAFKA_JARS names no folder with Apache Kafka")
def test_every_command_of_the_guide_works_with_apache_kafka(guide: Guide) -> None:
    for block in guide.before_start:
        guide.run("".join(line for line in block.splitlines(keepends=True) if OFFLINE not in line))
    with GuidedKafka(guide.folder, guide.ports["9092"]):
        for block in guide.after_start:
            guide.run(block)


def test_three_brokers_share_users_and_rules(guide: Guide) -> None:
    for block in guide.before_start:
        guide.run(block)
    with ExitStack() as stack:
        stack.enter_context(GuidedBroker(guide.folder))
        others = [stack.enter_context(_joining(guide, number)) for number in (2, 3)]
        for block in guide.after_start[:1]:
            guide.run(block)
        properties = guide.folder / "admin.properties"
        text = properties.read_text()
        properties.write_text(text.replace(f"localhost:{guide.ports['9092']}", others[-1].address))
        guide.run(WAIT_FOR_THREE)
        for block in guide.after_start[1:]:
            guide.run(block)


def _joining(guide: Guide, number: int) -> GuidedBroker:
    """One more broker, with the settings that the guide names for it."""
    folder = guide.folder / f"broker-{number}"
    folder.mkdir()
    for file in ("broker.pem", "ca.pem"):
        shutil.copy(guide.folder / file, folder)
    text = (guide.folder / "server.properties").read_text().replace("node.id=1\n", f"node.id={number}\n")
    for port in guide.ports.values():
        text = text.replace(f":{port}", f":{free_port()}")
    text += f"controller.quorum.bootstrap.servers=localhost:{guide.ports['9093']}\n"
    text += "controller.quorum.auto.join.enable=true\n"
    (folder / "server.properties").write_text(text)
    return GuidedBroker(folder)
