"""Apache Kafka Connect itself, as a judge of ours: a worker in Java, with the same doors for tests."""

import os
import socket
import time
from pathlib import Path
from typing import Self

import httpx2
from typing_extensions import override

from tests.support.admin import eventually
from tests.support.connect import ConnectProcess

JARS = os.environ.get("CAUDAL_KAFKA_CONNECT")
"""The folder of its jars."""
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_START_TIMEOUT_S = 90.0
_OURS = ("logging.", "redrive.")


class RealConnect(ConnectProcess):
    """A worker of Kafka Connect; it takes the settings that ours takes, but for those that it does not know."""

    @override
    def start(self) -> Self:
        started = time.monotonic()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self.launch()
        eventually(self._is_ready, timeout_s=_START_TIMEOUT_S, pause_s=0.2)
        self.ready_after_s = time.monotonic() - started
        return self

    @override
    def _command(self) -> list[str]:
        own = {key: value for key, value in self.settings.items() if not key.startswith(_OURS)}
        converters = {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}
        factors = {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}
        settings = {**converters, **factors, **own, "listeners": self.address}
        path = Path(self.directory) / "worker.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", _MAIN, str(path)]

    def _is_ready(self) -> bool:
        assert self.is_running, self.log_tail()
        try:
            return isinstance(self.ask("GET", "/connectors").json(), list)
        except (httpx2.HTTPError, ValueError):
            return False
