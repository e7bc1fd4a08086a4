"""Apache Kafka itself behind the same handle as our broker: what our tests demand must be what Kafka does.

Set KAFKA_JARS to a folder with the jars of a Kafka release (its `libs`), and the tests of `tests/conformance` run
against that Kafka instead. A test that Kafka fails is wrong.
"""

import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.support.broker import BrokerProcess
from tests.support.service import READY_TIMEOUT_S, ServiceFailed

KAFKA_JARS: Final = os.environ.get("KAFKA_JARS")
_OUR_OWN: Final = {"metrics.listener"}
_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"


def start_class() -> type[BrokerProcess]:
    """What to start where a broker is asked for."""
    return BrokerProcess if KAFKA_JARS is None else KafkaProcess


class KafkaProcess(BrokerProcess):
    """One Kafka node, broker and controller in one."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings=settings)
        self._port = _free_port()
        self._controller_port = _free_port()

    @override
    def _command(self) -> list[str]:
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        java = ["java", "-Xmx700m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", f"{KAFKA_JARS}/*"]
        if not (self.data / "meta.properties").exists():
            format_command = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties)]
            subprocess.run(format_command, check=True, capture_output=True)
        return [*java, "kafka.Kafka", str(properties)]

    def _properties(self) -> dict[str, str]:
        ours = {key: value for key, value in self.settings.items() if key not in _OUR_OWN}
        controller = f"127.0.0.1:{self._controller_port}"
        return {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://{controller}",
            "log.dirs": str(self.data),
            **ours,
        }

    @override
    def _wait_until_ready(self, said: Path, position: int, deadline: float) -> str:
        while time.monotonic() < deadline + READY_TIMEOUT_S:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return f"127.0.0.1:{self._port}"
            if not self.is_running:
                break
        self.kill()
        raise ServiceFailed(f"Kafka did not start\n{self.log_tail()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
