"""A Connect worker as its users meet it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from typing_extensions import override

from tests.support.admin import eventually
from tests.support.service import ServiceProcess, run_module

_QUICK = {
    "offset.flush.interval.ms": "500",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "offset.storage.partitions": "3",
    "status.storage.partitions": "2",
    "logging.format": "text",
}
_TIMEOUT_SECONDS = 60.0


class ConnectProcess(ServiceProcess):
    """One worker process; what it remembers is in topics named after it."""

    ready = re.compile(rb"connect ready: listeners=(http://[\w.\[\]:-]+:\d+)")

    def __init__(
        self, directory: Path, *, bootstrap: str, group: str = "connect", settings: Mapping[str, str] | None = None
    ) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
            "redrive.storage.topic": f"{group}-redriven",
            **_QUICK,
        }
        super().__init__(directory, settings={**own, **(settings or {})})

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return self.address

    @override
    def _command(self) -> list[str]:
        return run_module("connect", {"listeners": f"http://127.0.0.1:{self._port}", **self.settings})

    def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """One request; whatever the answer is."""
        return httpx2.request(method, self.url + path, json=body, timeout=_TIMEOUT_SECONDS)

    def json(self, method: str, path: str, body: object = None) -> Any:
        """What a request is answered with; it must succeed."""
        answer = self.ask(method, path, body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def create(self, name: str, config: Mapping[str, object]) -> None:
        """Create a connector."""
        self.json("POST", "/connectors", {"name": name, "config": dict(config)})

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self.json("DELETE", f"/connectors/{name}")

    def status(self, name: str) -> Any:
        """The status of a connector."""
        return self.json("GET", f"/connectors/{name}/status")

    def wait_for(self, name: str, state: str, *, tasks: int | None = None) -> Any:
        """Wait until all tasks of a connector (of that number, if it is given) are in a state; returns its status."""
        seen: dict[str, Any] = {}

        def is_there() -> bool:
            answer = self.ask("GET", f"/connectors/{name}/status")
            if not answer.is_success:
                return False
            seen.update(answer.json())
            states = [task["state"] for task in seen["tasks"]]
            count = len(states) == tasks if tasks is not None else bool(states)
            return count and all(found == state for found in states)

        try:
            eventually(is_there, timeout_s=_TIMEOUT_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{name} is not {state}: {seen}\n{self.log_tail(20)}") from error
        return seen
